#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Killed ranks and switches, with real processes: whatever dies, everybody hears of it in time, nothing
stays behind, and the next job of that name works. Run by meson test, or by hand:
tests/integration/failing.py [Mode2[.TEST]...]; switches have INCLINE_TEST_WORKERS workers."""
import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
from fabric_case import Fabric, run_tests  # noqa: E402


class Failing:
    topo = 'tree-2x2'
    switches = ('spine', 'leaf0', 'leaf1')
    kind = 'group'  # of what a job makes at the switches
    answers = 'operations'
    fields = {}  # of the group file

    def setUp(self):
        super().setUp()
        os.replace(self.variant(fallback=False, **self.fields), self.lab.path('group.json'))

    def made(self, switch):
        return self.rpc(switch, self.kind + '.list')['result'][self.kind + 's']

    def busy(self):
        procs = self.perf(range(4), '-b', '4M', '-e', '4M', '-n', '100000', '--timeout', '10000')
        deadline = time.monotonic() + 40
        while sum(g[self.answers] for g in self.made('spine')) < 3:
            self.assertLess(time.monotonic(), deadline, 'nothing begins')
            for p in procs:
                if p.poll() is not None:
                    self.fail(f'ended before it began: {p.communicate()[1]}')
            time.sleep(0.05)
        return procs

    def all_fail(self, procs, within):
        start = time.monotonic()
        for rc, _, err in self.finish(procs, within + 10):
            self.assertEqual(rc, 1)
            self.assertRegex(err, r'rank|switch|10\.77')
        self.assertLess(time.monotonic() - start, within)

    def nothing_left(self):
        """Groups and their memory are gone, at the latest when they have drained, or nobody has kept them for 5 s."""
        deadline = time.monotonic() + 20
        for s in self.switches:
            while self.rpc(s, 'status')['result']['arena_used_bytes']:
                self.assertLess(time.monotonic(), deadline, f'{s} still has memory taken')
                time.sleep(0.1)
            self.assertEqual(self.made(s), [])

    def works_again(self):
        self.all_ok(self.perf(range(4), '-b', '64K', '-e', '64K', '-n', '5'))
        self.nothing_left()
        self.workers_hand_over(*self.switches)

    def test_a_rank_is_killed(self):
        procs = self.busy()
        self.assertNotEqual(self.rpc('spine', 'status')['result']['arena_used_bytes'], 0)
        procs[2].kill()
        self.all_fail(procs[:2] + procs[3:], 30)
        self.nothing_left()
        self.works_again()

    def orphans(self):
        return [self.rpc(s, 'status')['result']['orphans'] for s in self.switches]

    def test_rank_0_is_killed(self):
        """It made the groups and would remove them: the switches do, as soon as nobody keeps them."""
        before = self.orphans()
        procs = self.busy()
        procs[0].kill()
        self.all_fail(procs[1:], 30)
        self.nothing_left()
        self.assertEqual([n - b for n, b in zip(self.orphans(), before)], [1, 1, 1])
        self.works_again()

    def test_a_switch_restarts(self):
        procs = self.busy()
        self.lab.restart_switch(self.topology(), 'leaf1')
        self.all_fail(procs, 30)
        self.nothing_left()
        self.works_again()


class AllKilled:
    def test_all_are_killed(self):
        """The next job of that name waits for the end of what they have left."""
        procs = self.busy()
        for p in procs:
            p.kill()
        self.finish(procs, 10)
        self.all_ok(self.perf(range(4), '-b', '64K', '-e', '64K', '-n', '5', '--timeout', '20000'))
        self.nothing_left()


class SpineRestarts:
    def uplink(self, leaf):
        """What has become of it, and how often it came again."""
        events = self.rpc(leaf, 'event.list')['result']['events']
        values = self.rpc(leaf, 'stats.get', {'what': 'values'})['result']['values']
        return [e['kind'] for e in events if e.get('port') == 'up'], [int(v['value']) for v in values if v['name'] == 'memif_came_again']

    def test_the_spine_restarts(self):
        """Its leaves, which are clients of its ports, find it again by themselves: the next job finds a fabric."""
        procs = self.busy()
        self.lab.restart_switch(self.topology(), 'spine')
        self.all_fail(procs, 30)
        deadline = time.monotonic() + 30
        for leaf in self.switches[1:]:
            while (seen := self.uplink(leaf)) != (['port_down', 'port_up'], [1]):
                self.assertLess(time.monotonic(), deadline, f'{leaf}: {seen}')
                time.sleep(0.05)
        self.nothing_left()
        self.works_again()


class GivenUp:
    def test_a_switch_gives_up(self):
        """Ranks hear it from their own switch, not from one another or at their timeout."""
        procs = self.busy()
        self.rpc('spine', f'{self.kind}.fail', {self.kind: 'tree-2x2'})
        results = self.finish(procs, 30)
        self.assertEqual([rc for rc, _, _ in results], [1] * 4)
        self.assertTrue(any(f'the switch has failed the {self.kind}' in err for _, _, err in results), results)
        self.nothing_left()
        self.works_again()


class Mode1(GivenUp, Failing, Fabric):
    fields = {'mode': 'I'}


class Mode2(AllKilled, SpineRestarts, Failing, Fabric):
    fields = {'mode': 'II'}


class Mode3(Failing, Fabric):
    fields = {'mode': 'III'}


class NetReduce(GivenUp, AllKilled, Failing, Fabric):
    kind = 'ring'
    answers = 'completed'
    fields = {'mode': 'netreduce'}


class Resume(Fabric):
    """Groups that fail while a job runs: it goes on by the ring of its hosts, and every result is right."""
    topo = 'tree-2x2'

    def setUp(self):
        super().setUp()
        os.replace(self.variant(resume=True, mode='III', timeout_ms=20000), self.lab.path('group.json'))

    def begun(self, times):
        procs = self.perf(range(4), '-b', '64K', '-e', '64K', '-n', times)
        deadline = time.monotonic() + 40
        while not any(g['operations'] > 2 for g in self.rpc('spine', 'group.list')['result']['groups']):
            self.assertLess(time.monotonic(), deadline, 'nothing begins')
            time.sleep(0.01)
        return procs

    def test_the_group_fails(self):
        procs = self.begun('500')
        self.rpc('leaf1', 'group.fail', {'group': 'tree-2x2'})
        results = self.finish(procs, 60)
        for rc, out, err in results:
            self.assertEqual(rc, 0, err)
        said = results[0][2].count('goes on by a ring of the hosts, without the switches, from collective')
        self.assertEqual(said, 1, results[0][2])
        for s in ('spine', 'leaf0', 'leaf1'):  # nobody keeps its groups any more
            deadline = time.monotonic() + 20
            while self.rpc(s, 'status')['result']['arena_used_bytes']:
                self.assertLess(time.monotonic(), deadline, f'{s} still has memory taken')
                time.sleep(0.1)


if __name__ == '__main__':
    run_tests(verbosity=2)
