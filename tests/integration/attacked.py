#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Four hosts work; a fifth, which is in a group of its own, sends all it can make up, at full rate. What
it sends is counted and has no effect. Run by meson test, or by hand: tests/integration/attacked.py
[Mode2...]; the switch has INCLINE_TEST_WORKERS workers."""
import json
import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
from fabric_case import Fabric, Topology, build_dir, topology, run_tests  # noqa: E402
from incline_fabric import port_mac  # noqa: E402

class Attacked:
    fields = {}  # of the group file
    reasons = ()  # that must have been counted
    kind = 'group'
    own_ends = 'active'  # the attacker's own group

    @classmethod
    def topology(cls):
        topo = topology('star4')
        return Topology({'name': 'star5', 'switches': topo.switches,
                         'hosts': topo.hosts + [{'name': 'h4', 'ip': '10.77.0.14', 'switch': 's0'}]})

    def victims_group(self):
        """The four hosts' group. Packets from other ports than theirs are refused, unless fields say otherwise."""
        path = self.lab.path('group.json')
        with open(path) as f:
            group = json.load(f)
        group.update(fallback=False, **self.fields)
        del group['ranks'][4], group['switches'][0]['children'][4]
        with open(path, 'w') as f:
            json.dump(group, f)

    def active(self, name):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            reply = self.rpc('s0', self.kind + '.show', {self.kind: name})
            if reply.get('result', {}).get('state') == 'active':
                return reply['result']
            time.sleep(0.05)
        self.fail(f'{name} is not active')

    def create_other(self):
        """The attacker's own group. How its packets look there."""
        own = self.rpc('s0', 'group.create', {
            'name': 'other', 'mode': self.fields['mode'], 'kind': 'mixed', 'mtu': 1024, 'M': 4, 'W': 16, 'ranks': 1,
            'endpoints': [{'ip': '10.77.0.14', 'qpn': 17, 'port': 'h4', 'ranks': [0]}]})['result']
        return f"10.77.0.14,10.77.255.1,{own['endpoints'][0]['qpn']},{own['start_psn']}"

    def victims(self, shown):
        return [f"{e['remote_ip']},{e['ip']},{e['qpn']}" for e in shown['endpoints']]

    def untouched(self, other):
        self.assertEqual(other['counters']['operations'], 0)
        self.assertEqual(other['counters']['contributions'], 0)

    def drops(self):
        return {d['reason']: d['count'] for d in self.rpc('s0', 'drops.get')['result']['drops']}

    def job(self, own, iterations):
        """Hosts at work and under attack to their end. How many packets the attacker sent."""
        procs = self.perf(range(4), '-b', '64K', '-e', '64K', '-n', str(iterations), '-d', 'int32')
        shown = self.active('star5')
        attack = self.start('h4', [os.path.join(build_dir(), 'tests/integration/attacker'), self.lab.path('h4.json'),
                                   '10.77.255.1', port_mac(0, 4), own, *self.victims(shown)])
        self.all_ok(procs, 240)
        attack.terminate()
        rc, out, err = self.finish([attack], 60)[0]
        self.assertEqual(rc, 0, err)
        return int(out)

    def test_results_stay_exact(self):
        self.victims_group()
        own = self.create_other()
        before = self.drops()
        iterations = 1000
        while self.job(own, iterations) < 20000:  # the attack had hardly begun
            iterations *= 2
            self.assertLess(iterations, 100000)
        drops = self.drops()
        for reason in self.reasons + ('icrc_bad', 'ip_forged', 'parse_short'):
            self.assertGreater(drops[reason], before[reason], reason)
        other = self.rpc('s0', self.kind + '.show', {self.kind: 'other'})['result']
        self.assertEqual(other['state'], self.own_ends)
        self.untouched(other)
        self.workers_hand_over('s0')


class Mode1(Attacked, Fabric):
    """A WRITE without a right to it, at the PSN that its connection waits for, ends the attacker's own group."""
    fields = {'mode': 'I'}
    own_ends = 'failed'
    reasons = ('inc_port', 'rnic_no_qp', 'rnic_sequence', 'rnic_access', 'inc_no_group')


class Mode2(Attacked, Fabric):
    fields = {'mode': 'II'}
    reasons = ('inc_source', 'inc_port', 'inc_no_group', 'inc_no_control', 'inc_opcode', 'inc_nak_code', 'inc_ack_range')


class Mode3(Attacked, Fabric):
    fields = {'mode': 'III'}
    reasons = Mode2.reasons


class Mode2AnyPort(Attacked, Fabric):
    """What bears a member's address is a member's, whatever port it comes in by."""
    fields = {'mode': 'II', 'flags': {'strict_port': False}}
    reasons = ('inc_source', 'inc_no_group', 'inc_no_control', 'inc_opcode', 'inc_nak_code', 'inc_ack_range')


class Mode3AnyPort(Attacked, Fabric):
    fields = {'mode': 'III', 'flags': {'strict_port': False}}
    reasons = Mode2AnyPort.reasons


class NetReduce(Attacked, Fabric):
    fields = {'mode': 'netreduce'}
    reasons = ('nr_port', 'nr_range', 'nr_header')
    kind = 'ring'

    def create_other(self):
        """With host h3, which knows nothing of it."""
        reply = self.rpc('s0', 'ring.create', {
            'name': 'other', 'id': 1, 'mtu': 1024, 'M': 4, 'W': 16, 'ranks': 2,
            'flows': [{'rank': 0, 'src': '10.77.0.14', 'dst': '10.77.0.13', 'qpn': 0x777, 'psn': 1000},
                      {'rank': 1, 'src': '10.77.0.13', 'dst': '10.77.0.14', 'qpn': 0x778, 'psn': 1000}]})
        self.assertEqual(reply['result']['state'], 'active')
        return '10.77.0.14,10.77.0.13,0x777,1000'

    def victims(self, shown):
        rows = [(i['src'], i['dst'], i['qpn']) for i in shown['inputs']] + \
            [(i['dst'], i['src'], i['reply_qpn']) for i in shown['inputs']]
        return [f"{src},{dst},{qpn},0,{shown['id']}" for src, dst, qpn in rows]

    def untouched(self, other):
        self.assertEqual(other['counters']['consumed'], 0)
        self.assertEqual(other['counters']['completed'], 0)


if __name__ == '__main__':
    run_tests(verbosity=2)
