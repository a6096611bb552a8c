#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/incline_planes.py: what a topology file of planes becomes, and what is refused in one. That its switches forward by it:
tests/unit/dataplane/test_planes.c."""
import ipaddress
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
from incline_fabric import Folder, LabError  # noqa: E402
from incline_planes import topology  # noqa: E402

FOLDER = Folder('/x')
SIZES = [(1, 1, 1, 1), (2, 2, 2, 4), (3, 4, 2, 12), (15, 1, 31, 1), (1, 31, 1, 62), (4, 2, 8, 48)]


def doc(planes=2, t0=2, t1=2, hosts=4, **more):
    return {'name': 'f', 'planes': {'count': planes, 't0': t0, 't1': t1, 'hosts': hosts, **more}}


class Configurations(unittest.TestCase):
    def test_both_ends_of_every_link_agree(self):
        for size in SIZES:
            topo = topology(doc(*size))
            ports = {(s['name'], p['name']): p for s in topo.switches
                     for p in topo.switch_config(FOLDER, s['name'])['ports']}
            rnics = {p['port']['name']: p for h in topo.hosts for _, device in topo.devices(FOLDER, h) for p in device['ports']}
            self.assertEqual(len(rnics), len(topo.ports))
            for s in topo.switches:
                macs = {e['data']['port']: e['data']['mac'] for e in topo.switch_config(FOLDER, s['name'])['tables']['neigh']}
                for port, far in topo.links(s['name']):
                    near = ports[s['name'], port]
                    if far in rnics:
                        mac, other = rnics[far]['mac'], rnics[far]['port']
                    else:
                        other = ports[far, next(p for p, n in topo.links(far) if n == s['name'])]
                        mac = other['mac']
                    self.assertEqual((mac, other['socket']), (macs[port], near['socket']))
                    self.assertEqual({near['role'], other['role']}, {'server', 'client'})
                    self.assertEqual(near['mtu'], topo.mtu + 128)

    def test_a_host_knows_what_its_packets_arrive_with(self):
        """The last uSID of every path to it, which its T0 has a route for; and its address is that of all its ports."""
        for size in SIZES:
            topo = topology(doc(*size))
            for h in topo.hosts:
                (_, device), = topo.devices(FOLDER, h)
                self.assertEqual(len(device['ports']), len(topo.planes))
                for config, port in zip(device['ports'], topo.ports_of_host(h['name'])):
                    routes = {e['key']['dst']: e['data'] for e in topo.switch_config(FOLDER, port['switch'])['tables']['route6']
                              if e['action'] == 'via'}
                    self.assertEqual(routes[config['sid'] + '/48'], {'nexthop': port['ip']})
                    self.assertEqual(config['ip'], [port['ip'], h['ip']])
                    self.assertEqual((config['mtu'], config['port']['mtu']), (topo.mtu + 64,) * 2)

    def test_nobody_has_the_name_address_or_mac_of_another(self):
        for size in SIZES:
            topo = topology(doc(*size))
            for key in 'name', 'ip':
                values = [n[key] for n in topo.switches + topo.hosts + topo.ports]
                self.assertEqual(len(values), len(set(values)))
            for ip in [n['ip'] for n in topo.switches + topo.hosts + topo.ports]:
                ipaddress.IPv6Address(ip)
            macs = [p['mac'] for p in topo.ports] + [p['mac'] for s in topo.switches
                                                     for p in topo.switch_config(FOLDER, s['name'])['ports']]
            self.assertEqual(len(macs), len(set(macs)))

    def test_a_prefix_is_in_one_row(self):
        for size in SIZES:
            topo = topology(doc(*size))
            for s in topo.switches:
                tables = topo.switch_config(FOLDER, s['name'])['tables']
                prefixes = [e['key'].get('sid') or e['key']['dst'] for e in tables['local_sid'] + tables['route6']]
                self.assertEqual(len(prefixes), len(set(prefixes)))

    def test_marks_in_the_fabric_and_none_on_the_last_hop(self):
        topo = topology(doc())
        for s in topo.switches:
            for p in topo.switch_config(FOLDER, s['name'])['ports']:
                host = p['name'] in [h['name'] for h in topo.hosts]
                self.assertEqual((p['queue'].get('last_hop', False), 'mark_max_kb' in p['queue']), (host, not host))
                self.assertEqual(p['queue']['trim_bytes'], 152)

    def test_the_shipped_examples_are_switches_of_the_shipped_fabric(self):
        with open(os.path.join(TOP, 'tools/fabrics/planes-2x2x2.json')) as f:
            topo = topology(json.load(f))
        for plane in 1, 2:
            with open(os.path.join(TOP, f'pmd-configs/srv6-plane{plane}.json')) as f:
                shipped = json.load(f)
            made = topo.switch_config(FOLDER, f'p{plane}-t0-0')
            for key in 'name', 'addresses', 'tables':
                self.assertEqual(shipped[key], made[key])
            self.assertEqual([(p['name'], p['mac'], p['mtu']) for p in shipped['ports']],
                             [(p['name'], p['mac'], p['mtu']) for p in made['ports']])


class Refused(unittest.TestCase):
    def test_errors_name_the_field(self):
        for bad, said in ((doc(0), 'planes.count: 0, must be 1..15'), (doc(16), 'planes.count: 16'), (doc(t0='2'), "planes.t0: '2'"),
                          (doc(hosts=5), 'planes.hosts: 5, must be a multiple of the 2 T0s'),
                          (doc(hosts=62), 'planes: a T0 would have 33 ports, at most 32'), (doc(rails=1), 'planes.rails: unknown field'),
                          ({**doc(), 'mtu': 1000}, 'mtu: 1000, must be 1280..9472'), ({**doc(), 'hosts': []}, 'hosts: unknown field'),
                          ({'name': 'f', 'planes': 2}, 'planes: must be an object')):
            with self.assertRaises(LabError) as raised:
                topology(bad)
            self.assertIn(said, str(raised.exception))


if __name__ == '__main__':
    unittest.main()
