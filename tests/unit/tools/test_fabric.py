#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/incline_fabric.py: what a topology file becomes, and what is refused in one."""
import copy
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
from incline_fabric import Folder, LabError, Topology, group_config, rnic_config, switch_config  # noqa: E402

DOC = {'name': 'two', 'mtu': 1500,
       'switches': [{'name': 's0', 'ip': '10.0.255.1'}, {'name': 's1', 'ip': '10.0.255.2', 'parent': 's0'}],
       'hosts': [{'name': 'h0', 'ip': '10.0.0.1', 'switch': 's0'}, {'name': 'h1', 'ip': '10.0.0.2', 'switch': 's1'}]}
FOLDER = Folder('/x')


def changed(change):
    doc = copy.deepcopy(DOC)
    change(doc)
    return doc


class Configurations(unittest.TestCase):
    def test_both_ends_of_every_link_agree(self):
        for name in sorted(os.listdir(os.path.join(TOP, 'tools/fabrics'))):
            with open(os.path.join(TOP, 'tools/fabrics', name)) as f:
                doc = json.load(f)
            if 'planes' in doc:
                continue  # test_planes.py
            topo = Topology(doc)
            switches = [switch_config(topo, FOLDER, s['name']) for s in topo.switches]
            ports = {(s['name'], p['name']): p for s in switches for p in s['ports']}
            for s in switches:
                for entry in s['tables']['neigh']:
                    near = entry['data']['port']
                    if near == 'up':
                        far = ports[topo.switch[s['name']]['parent'], s['name']]
                    elif near in topo.switch:
                        far = ports[near, 'up']
                    else:
                        port = next(p for p in topo.ports if p['name'] == near)
                        far = {'mac': port['mac'], 'socket': rnic_config(topo, FOLDER, port)['port']['socket']}
                    self.assertEqual((far['mac'], far['socket']), (entry['data']['mac'], ports[s['name'], near]['socket']), name)

    def test_the_upper_end_is_the_server(self):
        topo = Topology(copy.deepcopy(DOC))
        roles = {(s, p['name']): p['role'] for s in ('s0', 's1') for p in switch_config(topo, FOLDER, s)['ports']}
        self.assertEqual(roles, {('s0', 's1'): 'server', ('s0', 'h0'): 'server', ('s1', 'h1'): 'server', ('s1', 'up'): 'client'})

    def test_routes_lead_over_the_neighbour_on_the_way(self):
        topo = Topology(copy.deepcopy(DOC))
        for switch, dst, via in ('s0', '10.0.0.2/32', '10.0.255.2'), ('s1', '10.0.0.1/32', '10.0.255.1'):
            self.assertEqual(switch_config(topo, FOLDER, switch)['tables']['route4'],
                             [{'key': {'dst': dst}, 'action': 'via', 'data': {'nexthop': via}}])

    def test_every_port_has_impairments_of_its_own(self):
        topo = Topology(copy.deepcopy(DOC))
        seeds = [p['impair']['seed'] for s in ('s0', 's1') for p in switch_config(topo, FOLDER, s, {'loss': .1})['ports']]
        self.assertEqual(len(set(seeds)), 4)

    def test_hosts_of_a_bridge_answer_for_themselves(self):
        ports = switch_config(Topology(changed(lambda d: d.update(bridge=True))), FOLDER, 's1')['ports']
        self.assertEqual([(p['name'], p['bridge'], 'proxy_arp' in p) for p in ports], [('h1', [0], False), ('up', [0], False)])
        self.assertEqual([(p['proxy_arp'], 'bridge' in p) for p in switch_config(Topology(copy.deepcopy(DOC)), FOLDER, 's1')['ports']],
                         [(True, False)] * 2)

    def test_a_namespace_has_its_interface_on_the_first_port(self):
        topo = Topology(changed(lambda d: d['hosts'][0].update(ports=2)))
        self.assertEqual(['netdev' in rnic_config(topo, FOLDER, p, True) for p in topo.ports_of_host('h0')], [True, False])

    def test_a_group_is_the_tree(self):
        group = group_config(Topology(copy.deepcopy(DOC)), FOLDER, 'g', 'unix:/x/g', False)
        self.assertEqual([r['ip'] for r in group['ranks']], ['10.0.0.1', '10.0.0.2'])
        self.assertEqual([s['children'] for s in group['switches']],
                         [[{'switch': 's1', 'port': 's1'}, {'rank': 0, 'port': 'h0'}], [{'rank': 1, 'port': 'h1'}]])


class Refused(unittest.TestCase):
    def test_errors_name_the_field(self):
        for change, said in ((lambda d: d.update(mtu=1), 'mtu: 1, must be 576..9600'),
                             (lambda d: d.update(hosts=[]), 'hosts: must be a list'),
                             (lambda d: d.update(color=1), 'color: unknown field'),
                             (lambda d: d.update(bridge=[0]), 'bridge: must be true or false'),
                             (lambda d: d['hosts'][0].update(ip='x'), "hosts.h0.ip: 'x' is no address"),
                             (lambda d: d['hosts'][0].update(switch='s9'), "hosts.h0.switch: 's9' is no switch"),
                             (lambda d: d['hosts'][0].update(nic='x'), "hosts.h0.nic: 'x' is none of incline, soft-roce"),
                             (lambda d: d['hosts'][0].update(transport='x'), "hosts.h0.transport: 'x' is none of roce, iwarp"),
                             (lambda d: d['hosts'][0].update(transport='iwarp', ports=2),
                              'hosts.h0.transport: iwarp is for a software RNIC with one port'),
                             (lambda d: d['hosts'][0].update(ports=17), 'hosts.h0.ports: 17, must be 1..16'),
                             (lambda d: d['hosts'][1].update(ip='10.0.0.1'), 'ip: 10.0.0.1 is used twice'),
                             (lambda d: d['switches'][1].pop('parent'), 'switches.parent: 2 switches have none'),
                             (lambda d: d['switches'][1].update(parent='s1'), "switches.s1.parent: 's1' leads nowhere")):
            with self.assertRaises(LabError) as raised:
                Topology(changed(change))
            self.assertIn(said, str(raised.exception))


if __name__ == '__main__':
    unittest.main()
