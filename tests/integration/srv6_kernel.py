#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The switch's SRv6 beside the Linux kernel's, in network namespaces: host a - the switch - a kernel that is a hop - host c.
The switch before the kernel and behind it, uSIDs, SRHs as Linux makes them, tunnels from either to the other. And a
plane of tools/lab, one of whose two T1s is a kernel; and a fabric of two planes with such a T1, over which hosts write by MRC.
Run by meson test, or by hand: tests/integration/srv6_kernel.py [TEST...]."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from fabric_case import Fabric, Lab, app, free_port, listening, run_tests  # noqa: E402
from incline_fabric import Folder  # noqa: E402
import incline_netns  # noqa: E402
import incline_planes as planes  # noqa: E402

PATIENCE = 60  # seconds: hangs only
BLOCK = 'fcbb:bb00'
MACS = {'a0': '02:00:00:00:a0:00', 'k0': '02:00:00:00:b0:00', 'k1': '02:00:00:00:b1:00', 'c0': '02:00:00:00:c0:00'}
PREFIX = f'srv6-{os.getpid()}-'
# Uplinks as in MRC's worked example: the switch is 5012, the kernel 542a, the hosts unpack at 587e and 587f.
SIDS = [('5012', 'un', {}), ('d001', 'dt46', {}), ('e001', 'ua', {'nexthop': 'fd02::b'})]
ROUTES = [(f'{BLOCK}:542a::/48', 'via', {'nexthop': 'fd02::b'}), (f'{BLOCK}:587f::/48', 'via', {'nexthop': 'fd02::b'}),
          (f'{BLOCK}:587e::/48', 'via', {'nexthop': 'fd01::a'}), ('fd03::/16', 'via', {'nexthop': 'fd02::b'}),
          ('fd0c::1/128', 'encap', {'src': 'fd01::1', 'sid1': f'{BLOCK}:542a:587f::'}),
          ('fd0a::1/128', 'via', {'nexthop': 'fd01::a'}),
          ('fd0c::2/128', 'encap', {'src': 'fd01::1', 'sid1': f'{BLOCK}:542a::', 'sid2': f'{BLOCK}:587f::'})]
NEXT_CSID = 'flavors next-csid lblen 32 nflen 16'


def ip(node, *lines):
    incline_netns.ip(lines, PREFIX + node)


def sysctl(node, **values):
    for name, value in values.items():
        subprocess.run(['ip', 'netns', 'exec', PREFIX + node, 'sh', '-c', 'echo "$1" > "/proc/sys/net/ipv6/conf/$0"',
                        name.replace('__', '/'), str(value)], check=True, timeout=PATIENCE)


def make():
    incline_netns.ip([f'netns add {PREFIX}{node}' for node in 'aSkc'])
    ip('S', 'link set lo up', f'link add sw0 type veth peer name a0 address {MACS["a0"]} netns {PREFIX}a',
       f'link add sw1 type veth peer name k0 address {MACS["k0"]} netns {PREFIX}k', 'link set sw0 up', 'link set sw1 up')
    ip('k', f'link add k1 address {MACS["k1"]} type veth peer name c0 address {MACS["c0"]} netns {PREFIX}c')
    for node, device, address in (('a', 'a0', 'fd01::a/64'), ('k', 'k0', 'fd02::b/64'), ('k', 'k1', 'fd03::b/64'),
                                  ('c', 'c0', 'fd03::c/64')):
        sysctl(node, **{'all__forwarding': 1, 'all__seg6_enabled': 1, f'{device}__seg6_enabled': 1,
                        f'{device}__accept_dad': 0})
        ip(node, 'link set lo up', f'link set {device} up', f'addr add {address} dev {device} nodad')
    ip('k', f'route add {BLOCK}:542a::/48 encap seg6local action End {NEXT_CSID} dev k1',
       f'route add {BLOCK}:587f::/48 via fd03::c dev k1', 'route add fd0c::/16 via fd03::c dev k1')
    ip('c', f'route add {BLOCK}:587f::/48 encap seg6local action End.DT6 table local dev c0',
       'addr add fd0c::1/128 dev lo', 'addr add fd0c::2/128 dev lo', 'route add default via fd03::b dev c0')
    ip('a', f'route add {BLOCK}:587e::/48 encap seg6local action End.DT6 table local dev a0',
       'addr add fd0a::1/128 dev lo')


def router_neighbours(sw0, sw1):
    ip('a', f'neigh replace fd01::1 lladdr {sw0} dev a0', 'route add default via fd01::1 dev a0')
    ip('k', f'neigh replace fd02::1 lladdr {sw1} dev k0', 'route add default via fd02::1 dev k0',
       f'neigh replace fd03::c lladdr {MACS["c0"]} dev k1')
    ip('c', f'neigh replace fd03::b lladdr {MACS["k1"]} dev c0')


def remove(nodes='aSkc'):
    for node in nodes:
        subprocess.run(['ip', 'netns', 'del', PREFIX + node], stderr=subprocess.DEVNULL, timeout=PATIENCE)


def ctl(socket, *words):
    done = subprocess.run([app('inclinectl'), '-s', socket, '--json', *words], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def start_switch(cls, node, config):
    """In this node's namespace, until the end of the class; waits for its control socket."""
    path = os.path.join(cls.dir, config['name'] + '.json')
    with open(path, 'w', encoding='utf-8') as f:
        json.dump(config, f)
    log = open(path + '.log', 'w+', encoding='utf-8')  # pylint: disable=consider-using-with
    cls.addClassCleanup(log.close)
    switch = subprocess.Popen(['ip', 'netns', 'exec', PREFIX + node, app('incline-switch'), '-c', path], stdout=log, stderr=log)
    cls.addClassCleanup(switch.wait, PATIENCE)
    cls.addClassCleanup(switch.terminate)
    deadline = time.monotonic() + PATIENCE
    while not os.path.exists(config['control']):
        if switch.poll() is not None or time.monotonic() > deadline:
            log.seek(0)
            raise AssertionError(log.read())
        time.sleep(0.02)


def echoes(node, source, to):
    """Three, each answered before the next one goes: ping waits as long as -W says only while nothing has come. What it
    printed of one without an answer; None: all have one."""
    for _ in range(3):
        done = subprocess.run(['ip', 'netns', 'exec', PREFIX + node, 'ping', '-6', '-n', '-c', '1', '-W', '30', '-I', source, to],
                              capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            return done.stdout + done.stderr
    return None


WHY_NOT = incline_netns.why_no_next_csid()


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Kernel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(remove)
        make()
        cls.dir = tempfile.mkdtemp(prefix='incline-')
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.socket = os.path.join(cls.dir, 's')
        neigh = [{'key': {'ip': a}, 'action': 'rewrite', 'data': {'port': p, 'mac': MACS[m]}}
                 for a, p, m in (('fd01::a', 'sw0', 'a0'), ('fd02::b', 'sw1', 'k0'))]
        config = {'name': 's', 'addresses': ['fd01::1', 'fd02::1'], 'idle': 'sleep', 'control': cls.socket,
                  'ports': [{'name': n, 'type': 'af_packet', 'iface': n, 'mtu': 1500} for n in ('sw0', 'sw1')],
                  'tables': {'neigh': neigh,
                             'route6': [{'key': {'dst': d}, 'action': a, 'data': v} for d, a, v in ROUTES],
                             'local_sid': [{'key': {'sid': f'{BLOCK}:{s}::/48'}, 'action': a, 'data': v}
                                           for s, a, v in SIDS]}}
        start_switch(cls, 'S', config)
        macs = {p['name']: p['mac'] for p in cls.ctl('ports')['ports']}
        router_neighbours(macs['sw0'], macs['sw1'])

    @classmethod
    def ctl(cls, *words):
        return ctl(cls.socket, *words)

    def hits(self):
        return {e['key']['sid'].split(':')[2]: e['hits'] for e in self.ctl('table', 'read', 'local_sid')['entries']}

    def ping(self, source, to, **expected):
        """Three echoes there and back; what the switch's SIDs have seen of them."""
        before = self.hits()
        unanswered = echoes('a', source, to)
        self.assertFalse(unanswered, f"{unanswered}\n{[d for d in self.ctl('drops')['drops'] if d['count']]}")
        after = self.hits()
        self.assertEqual({k: after[k] - before[k] for k in after if after[k] != before[k]}, expected)

    def route(self, node, dst, segments, mode='encap'):
        device = {'a': 'a0', 'c': 'c0'}[node]
        ip(node, f'route replace {dst} encap seg6 mode {mode} segs {segments} dev {device}')
        self.addCleanup(ip, node, f'route del {dst}')

    def test_both_orders(self):
        """There over the switch and the kernel, back over the kernel and the switch, by uSIDs alone."""
        self.route('a', 'fd0c::1/128', f'{BLOCK}:5012:542a:587f::', 'encap.red')
        self.route('c', 'fd0a::1/128', f'{BLOCK}:542a:5012:587e::', 'encap.red')
        self.ping('fd0a::1', 'fd0c::1', **{'5012': 6})

    def test_adjacency(self):
        self.route('a', 'fd0c::1/128', f'{BLOCK}:e001:542a:587f::', 'encap.red')
        self.route('c', 'fd0a::1/128', f'{BLOCK}:542a:5012:587e::', 'encap.red')
        self.ping('fd0a::1', 'fd0c::1', e001=3, **{'5012': 3})

    def test_srh_of_linux(self):
        """All segments in the list, and the first of them active in the switch, then the kernel; and the reverse."""
        self.route('a', 'fd0c::1/128', f'{BLOCK}:5012::,{BLOCK}:542a:587f::')
        self.route('c', 'fd0a::1/128', f'{BLOCK}:542a::,{BLOCK}:5012::,{BLOCK}:587e::')
        self.ping('fd0a::1', 'fd0c::1', **{'5012': 6})

    def test_kernel_unpacks_ours(self):
        """The switch's route leads into the tunnel, and its end is Linux's; with a SRH to fd0c::2."""
        self.route('c', 'fd0a::1/128', f'{BLOCK}:542a:d001::', 'encap.red')
        self.ping('fd0a::1', 'fd0c::1', d001=3)
        self.ping('fd0a::1', 'fd0c::2', d001=3)

    def test_we_unpack_linux(self):
        """With a SRH that has been used up."""
        self.route('a', 'fd0c::1/128', f'{BLOCK}:5012:542a:587f::', 'encap.red')
        self.route('c', 'fd0a::1/128', f'{BLOCK}:542a::,{BLOCK}:d001::')
        self.ping('fd0a::1', 'fd0c::1', d001=3, **{'5012': 3})


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Plane(unittest.TestCase):
    """Two T0s, of one host each, and two T1s: number 0 is a kernel, the others are switches of ours. Hosts (P, Q) are
    kernels that pack and unpack. All paths there and all paths back. Each has a namespace of its own: in one, DPDK's
    af_packet ports of two processes may meet (lib/port/README.md)."""
    HOSTS, KERNEL = {'P': 'h0-p1', 'Q': 'h1-p1'}, 'p1-t1-0'
    NODES = {'p1-t0-0': 'X', 'p1-t0-1': 'Y', 'p1-t1-1': 'Z', KERNEL: 'K'}

    @classmethod
    def setUpClass(cls):
        cls.addClassCleanup(remove, 'PQKXYZ')
        cls.topo = planes.topology({'name': 'mixed', 'mtu': 1500 - 2 * planes.OUTER, 'planes': {'count': 1, 't0': 2, 't1': 2, 'hosts': 2}})
        cls.dir = tempfile.mkdtemp(prefix='incline-')
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.folder = Folder(cls.dir)
        incline_netns.ip([f'netns add {PREFIX}{node}' for node in 'PQKXYZ'])
        for node in 'PQK':
            sysctl(node, all__forwarding=1, all__seg6_enabled=1, default__seg6_enabled=1, default__accept_dad=0)
        for node in 'KXYZ':
            ip(node, 'link set lo up')
        cls.cables()
        for s in cls.topo.switches:
            if s['name'] != cls.KERNEL:
                start_switch(cls, cls.NODES[s['name']], cls.config(s['name']))
        cls.kernel_t1()
        for i, node in enumerate('PQ'):
            cls.host(node, i)

    @classmethod
    def port(cls, name, port):
        """The interface of a switch's port: by numbers, for names are short."""
        me = cls.topo.switches.index(cls.topo.switch[name])
        return f's{me}x{[p for p, _ in cls.topo.links(name)].index(port)}'

    @classmethod
    def cables(cls):
        """From each T0 to what is below and above; everything has the MAC address that the plan gives it."""
        for t0 in ('p1-t0-0', 'p1-t0-1'):
            for port, far in cls.topo.links(t0):
                if far in cls.topo.switch:
                    node = cls.NODES[far]
                    end = cls.port(far, next(p for p, n in cls.topo.links(far) if n == t0))
                else:
                    node, end = next(k for k, v in cls.HOSTS.items() if v == far), 'eth0'
                near = cls.port(t0, port)
                ip(cls.NODES[t0], f'link add {near} type veth peer name {end} address {cls.topo.far_mac(t0, far)} netns {PREFIX}{node}',
                   f'link set {near} up')
                ip(node, 'link set lo up', f'link set {end} up')

    @classmethod
    def config(cls, name):
        config = cls.topo.switch_config(cls.folder, name)
        for p in config['ports']:
            for key in 'role', 'socket':
                del p[key]
            p.update(type='af_packet', iface=cls.port(name, p['name']))
        return config

    @classmethod
    def neighbour(cls, node, device, name, far):
        """The address of the switch at the other end, whose port to this node has that MAC."""
        at = cls.topo.switch[name]['ip']
        ip(node, f'neigh replace {at} lladdr {cls.topo.far_mac(far, name)} dev {device}', f'route add {at}/128 dev {device}')
        return at

    @classmethod
    def kernel_t1(cls):
        for i, t0 in enumerate(('p1-t0-0', 'p1-t0-1')):
            device = cls.port(cls.KERNEL, f't0-{i}')
            at = cls.neighbour('K', device, t0, cls.KERNEL)
            ip('K', f'route add {planes.prefix(planes.sid(1, planes.T0, i))} via {at} dev {device}')
        ip('K', f'route add {planes.prefix(planes.sid(1, planes.T1, 0))} encap seg6local action End {NEXT_CSID} dev {device}')

    @classmethod
    def host(cls, node, i):
        at = cls.neighbour(node, 'eth0', f'p1-t0-{i}', cls.HOSTS[node])
        ip(node, f'addr add {planes.host_ip(0, i, 0)}/128 dev lo nodad', f'addr add {planes.host_ip(1, i, 0)}/128 dev eth0 nodad',
           f'route add default via {at} dev eth0',
           f'route add {planes.prefix(planes.sid(1, planes.LINK, 0))} encap seg6local action End.DT6 table local dev eth0')

    def spray(self, node, i, uplink):
        """This host's packets to the other one take this uplink."""
        path = planes.address(planes.sid(1, planes.T0, i), planes.sid(1, planes.T1, uplink), planes.sid(1, planes.T0, 1 - i),
                              planes.sid(1, planes.LINK, 0))
        ip(node, f'route replace {planes.host_ip(0, 1 - i, 0)}/128 encap seg6 mode encap.red segs {path} dev eth0')

    def hits(self):
        return [next(e['hits'] for e in ctl(self.folder.control_socket(s), 'table', 'read', 'local_sid')['entries']
                     if e['action'] == 'un') for s in ('p1-t0-0', 'p1-t0-1', 'p1-t1-1')]

    def test_every_path_there_and_back(self):
        for there in 0, 1:
            for back in 0, 1:
                self.spray('P', 0, there)
                self.spray('Q', 1, back)
                before = self.hits()
                unanswered = echoes('P', planes.host_ip(0, 0, 0), planes.host_ip(0, 1, 0))
                self.assertFalse(unanswered, unanswered)
                # Both T0s see every packet; our T1 those that are not the kernel's.
                self.assertEqual([b - a for a, b in zip(before, self.hits())], [6, 6, 3 * there + 3 * back])


class MixedLab(Lab):
    """A fabric of planes, one of whose T1s is a kernel in a namespace of its own; so are the T0s that it hangs on."""
    KERNEL, NODES = 'p1-t1-0', {'p1-t0-0': 'X', 'p1-t0-1': 'Y'}

    def start_switch(self, topo, row, impair, state):
        if row['name'] == self.KERNEL:
            state['switches'].remove(row)
            return
        config = topo.switch_config(self, row['name'], impair)
        for port, (_, far) in zip(config['ports'], topo.links(row['name'])):
            if far == self.KERNEL:
                for key in 'role', 'socket':
                    del port[key]
                port.update(type='af_packet', iface='k0')
        with open(self.path(f"{row['name']}.json"), 'w', encoding='utf-8') as f:
            json.dump(config, f)
        self.run_switch(row, state)

    def start_process(self, row, argv, state):
        node = self.NODES.get(row['name'])
        return super().start_process(row, ['ip', 'netns', 'exec', PREFIX + node, *argv] if node else argv, state)

    def plug(self, topo):
        """The kernel, its links to the T0s, and what it forwards: its own SID to where the next one leads."""
        incline_netns.ip([f'netns add {PREFIX}{node}' for node in 'KXY'])
        sysctl('K', all__forwarding=1, all__seg6_enabled=1, default__seg6_enabled=1, default__accept_dad=0)
        ip('K', 'link set lo up')
        for i, (t0, node) in enumerate(self.NODES.items()):
            at, usid = topo.switch[t0]['ip'], planes.prefix(planes.sid(1, planes.T0, i))
            ip(node, 'link set lo up', f'link add k0 type veth peer name t{i} address {topo.far_mac(t0, self.KERNEL)} netns {PREFIX}K',
               'link set k0 up')
            ip('K', f'link set t{i} up', f'neigh replace {at} lladdr {topo.far_mac(self.KERNEL, t0)} dev t{i}',
               f'route add {at}/128 dev t{i}', f'route add {usid} via {at} dev t{i}')

    def serve(self, yes):
        """The kernel is a hop, or drops what would take it for one."""
        ip('K', f'route {"add" if yes else "del"} {planes.prefix(planes.sid(1, planes.T1, 0))} '
           f'encap seg6local action End {NEXT_CSID} dev t1')

    @staticmethod
    def forwarded():
        """Packets that the kernel has sent on."""
        said = subprocess.run(['ip', '-n', PREFIX + 'K', '-s', '-j', 'link', 'show', 'type', 'veth'], check=True, capture_output=True,
                              text=True, timeout=PATIENCE).stdout
        return sum(link['stats64']['tx']['packets'] for link in json.loads(said))


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Mixed(Fabric):
    """Two planes with four hosts, whose queue pairs of MRC spray over switches of ours and a kernel."""
    @classmethod
    def topology(cls):
        return planes.topology({'name': 'mixed', 'mtu': 1500 - 2 * planes.OUTER, 'planes': {'count': 2, 't0': 2, 't1': 2, 'hosts': 4}})

    @classmethod
    def up(cls):
        cls.addClassCleanup(remove, 'KXY')
        cls.dir = tempfile.mkdtemp(prefix='incline-')
        cls.lab = MixedLab(cls.dir)
        cls.lab.plug(cls.topology())
        cls.lab.serve(True)
        cls.lab.up(cls.topology())

    def uplinks(self):
        """{T1 of ours: packets that it has shifted}"""
        return {s['name']: sum(e['hits'] for e in ctl(self.lab.control_socket(s['name']), 'table', 'read', 'local_sid')['entries'])
                for s in self.lab.state()['switches'] if 't1' in s['name']}

    def pair(self, sender, receiver, *args):
        """Of incline-mrcperf; the sender's results will be in the file."""
        port, out = free_port(), os.path.join(self.dir, f'{sender}.mrcperf.json')
        perf = [app('incline-mrcperf'), '-p', str(port), '--paths']
        server = self.start(receiver, [*perf, self.lab.path(f'{receiver}.paths.json')])
        deadline = time.monotonic() + PATIENCE
        while not listening(port):
            self.assertIsNone(server.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        return [server, self.start(sender, [*perf, self.lab.path(f'{sender}.paths.json'), *args, '--json', out, '127.0.0.1'])], out

    def rows(self, out):
        with open(out, encoding='utf-8') as f:
            return json.load(f)

    def test_every_pattern(self):
        """Sizes with and without immediates, one queue pair and four: all that is written is there, by all T1s, the kernel
        being one of them."""
        for args, checked in (('--imm', '-n', '200'), [200]), (('--imm', '-q', '4', '-n', '50'), [200]), \
                (('-a', '-s', '4096', '-n', '20'), None):
            ours, kernel = self.uplinks(), self.lab.forwarded()
            procs, out = self.pair('h0', 'h2', *args)
            self.all_ok(procs, 2 * PATIENCE)
            result = self.rows(out)
            self.assertEqual(result['srv6_paths'], 4)
            self.assertEqual([r['wrong'] for r in result['rows']], [0] * len(result['rows']))
            if checked:
                self.assertEqual([r['checked'] for r in result['rows']], checked)
            self.assertGreater(self.lab.forwarded(), kernel + 20)
            for t1, hits in self.uplinks().items():
                self.assertGreater(hits, ours[t1], t1)

    def test_kernel_that_forwards_nothing(self):
        """Its links stay up. What was on its way is sent again by other paths, and all is written; it is a path again when it
        forwards again."""
        procs, out = self.pair('h1', 'h3', '--imm', '-n', '20', '--seconds', '600')
        before = self.lab.forwarded()
        self.wait_for(lambda: self.lab.forwarded() > before + 100, procs)
        self.lab.serve(False)
        self.addCleanup(self.lab.serve, True)
        ours, kernel = self.uplinks(), self.lab.forwarded()
        self.wait_for(lambda: all(n > ours[t1] + 1000 for t1, n in self.uplinks().items()), procs)
        self.assertLess(self.lab.forwarded(), kernel + 20)
        self.doCleanups()
        self.wait_for(lambda: self.lab.forwarded() > kernel + 1000, procs)
        procs[1].send_signal(signal.SIGINT)
        self.all_ok(procs, 2 * PATIENCE)
        self.assertEqual([(r['checked'] > 0, r['wrong']) for r in self.rows(out)['rows']], [(True, 0)])

    def wait_for(self, condition, procs):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertEqual([p.poll() for p in procs], [None] * len(procs))
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)


if __name__ == '__main__':
    run_tests()
