#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The switch's SRv6 beside the Linux kernel's, in network namespaces: host a - the switch - a kernel that is a hop - host c.
The switch before the kernel and behind it, uSIDs, SRHs as Linux makes them, tunnels from either to the other. Run by
meson test, or by hand: tests/integration/srv6_kernel.py [TEST...]."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from fabric_case import app  # noqa: E402
import incline_netns  # noqa: E402

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


def remove():
    for node in 'aSkc':
        subprocess.run(['ip', 'netns', 'del', PREFIX + node], stderr=subprocess.DEVNULL, timeout=PATIENCE)


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
        path = os.path.join(cls.dir, 'config.json')
        with open(path, 'w', encoding='utf-8') as f:
            json.dump(config, f)
        cls.log = open(os.path.join(cls.dir, 'log'), 'w+', encoding='utf-8')  # pylint: disable=consider-using-with
        cls.addClassCleanup(cls.log.close)
        cls.switch = subprocess.Popen(['ip', 'netns', 'exec', PREFIX + 'S', app('incline-switch'),
                                       '-c', path], stdout=cls.log, stderr=cls.log)
        cls.addClassCleanup(cls.switch.wait, PATIENCE)
        cls.addClassCleanup(cls.switch.terminate)
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(cls.socket):
            if cls.switch.poll() is not None or time.monotonic() > deadline:
                cls.log.seek(0)
                raise AssertionError(cls.log.read())
            time.sleep(0.02)
        macs = {p['name']: p['mac'] for p in cls.ctl('ports')['ports']}
        router_neighbours(macs['sw0'], macs['sw1'])

    @classmethod
    def ctl(cls, *words):
        done = subprocess.run([app('inclinectl'), '-s', cls.socket, '--json', *words],
                              capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def hits(self):
        return {e['key']['sid'].split(':')[2]: e['hits'] for e in self.ctl('table', 'read', 'local_sid')['entries']}

    def ping(self, source, to, **expected):
        """Three echoes there and back; what the switch's SIDs have seen of them."""
        before = self.hits()
        done = subprocess.run(['ip', 'netns', 'exec', PREFIX + 'a', 'ping', '-6', '-n', '-c', '3', '-i', '0.2', '-W', '5',
                               '-I', source, to], capture_output=True, text=True, timeout=PATIENCE)
        drops = [d for d in self.ctl('drops')['drops'] if d['count']]
        self.assertEqual(done.returncode, 0, f'{done.stdout}\n{drops}')
        self.assertIn(' 0% packet loss', done.stdout)
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


if __name__ == '__main__':
    unittest.main()
