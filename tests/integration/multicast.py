#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""UD multicast between hosts over three tiers of switches, by librdmacm's own mckey: members join by IGMP and MLD, each
link carries each datagram once, ports without members carry none."""
import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fabric_case import Fabric  # noqa: E402

COUNT = 50
LONG = 60


class Multicast(Fabric):
    topo = 'multicast-3-tier'

    def mckey(self, host, group, ip, *more):
        return self.start(host, ['mckey', '-b', ip, '-m', group, '-c', '1', '-C', str(COUNT), '-S', '1024', *more])

    def members(self, switch, group):
        listed = self.rpc(switch, 'mcast.members')['result']['members']
        return sorted(m['port'] for m in listed if m['group'] == group and not m['leaving'])

    def copies(self, switch, port):
        """Packets that a switch has sent by a port."""
        ports = self.rpc(switch, 'port.list')['result']['ports']
        return next(int(p['tx_packets']) for p in ports if p['name'] == port)

    def hits(self, switch, group):
        entries = self.rpc(switch, 'table.read', {'table': 'mcast_group'})['result']['entries']
        return {e['key']['port']: int(e['hits']) for e in entries if e['key']['group'] == group}

    def wait_for(self, what, test):
        deadline = time.monotonic() + LONG
        while not test():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)

    def run_group(self, group, ips):
        """h0 sends; h1 and h2 are members; nobody is h3."""
        members = [self.mckey(f'h{i}', group, ips[i]) for i in (1, 2)]
        self.wait_for('h1 and h2 are members', lambda: self.members('leaf0', group) == ['h1']
                      and self.members('leaf1', group) == ['h2'])
        idle = self.copies('leaf1', 'h3')
        sender = self.mckey('h0', group, ips[0], '-s')
        self.all_ok([sender, *members], LONG)
        self.assertEqual(self.hits('leaf0', group), {'up': COUNT})
        self.assertEqual(self.hits('spine0', group), {'up': COUNT, 'leaf0': 0})
        self.assertEqual(self.hits('core', group), {'spine0': 0, 'spine1': COUNT})
        self.assertEqual(self.hits('spine1', group), {'up': 0, 'leaf1': COUNT})
        self.assertEqual(self.hits('leaf1', group), {'up': 0})
        self.assertEqual(self.copies('leaf1', 'h3'), idle)
        # Programs that have ended are members no more, once the others at their ports have had their time.
        self.wait_for('they leave', lambda: self.members('leaf0', group) == [] == self.members('leaf1', group))

    def test_ipv4(self):
        self.run_group('239.129.0.1', [f'10.77.0.1{i}' for i in range(4)])

    def test_ipv6(self):
        self.run_group('ff0e::129:1', [f'fd77::1{i}' for i in range(4)])


if __name__ == '__main__':
    unittest.main()
