#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two jobs that share the switches' aggregation memory by a lease: real processes, wired by tools/lab."""
import json
import os
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fabric_case import Fabric, build_dir, run_tests  # noqa: E402

LONG = 120  # seconds: only what hangs takes so long
MINIMUM = 5  # collectives on either way
SEED = 20264


class Jobs(Fabric):
    """Two jobs, each of two of the four hosts."""
    jobs = {'a': (0, 1), 'b': (2, 3)}

    def setUp(self):
        super().setUp()
        self.go = os.path.join(self.dir, 'go')

    def group_file(self, job, **fields):
        with open(self.lab.path('group.json')) as f:
            group = json.load(f)
        ranks = self.jobs[job]
        # A lease is held, and a switch waited for, by parts of the timeout: what a crowded machine takes is none of them.
        group.update({'timeout_ms': LONG * 1000, **fields}, name=job, lease='pool', bootstrap=f'unix:{self.dir}/{job}.sock')
        group['ranks'] = [group['ranks'][r] for r in ranks]
        for switch in group['switches']:
            switch['children'] = [c for c in switch['children'] if 'switch' in c or c['rank'] in ranks]
            for child in switch['children']:
                if 'rank' in child:
                    child['rank'] = ranks.index(child['rank'])
        path = os.path.join(self.dir, job + '.json')
        with open(path, 'w') as f:
            json.dump(group, f)
        return path

    def launch(self, job, *more, **fields):
        path = self.group_file(job, **fields)
        program = os.path.join(build_dir(), 'tests/integration/lease_job')
        return [self.start(f'h{host}', [program, path, str(rank), str(SEED + ord(job)), self.go, str(MINIMUM), *more])
                for rank, host in enumerate(self.jobs[job])]

    def switches(self):
        return [s['name'] for s in self.lab.state()['switches']]

    def lease(self, switch):
        return (self.rpc(switch, 'lease.list')['result']['leases'] or [None])[0]

    def wait_for(self, what, test):
        deadline = time.monotonic() + LONG
        while not test():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)

    def start_together(self, procs):
        for switch in self.switches():
            self.wait_for('both jobs have joined', lambda: (self.lease(switch) or {}).get('groups', 0) >= 2)
        with open(self.go, 'w'):
            pass
        return procs

    def done(self, procs):
        """How many collectives each of a job's ranks has done on the two ways; they must agree."""
        counts = set()
        for rc, out, err in self.finish(procs, LONG):
            self.assertEqual(rc, 0, err)
            counts.add(tuple(int(n) for n in out.split('\n')[0].split()))
        self.assertEqual(len(counts), 1, counts)
        return counts.pop()

    def clean(self):
        for switch in self.switches():
            self.assertIsNone(self.lease(switch))
            self.assertEqual(self.rpc(switch, 'status')['result']['arena_used_bytes'], 0)
        if os.path.exists(self.go):
            os.remove(self.go)
        for job in self.jobs:
            for suffix in '.json', '.sock':
                if os.path.exists(os.path.join(self.dir, job + suffix)):
                    os.remove(os.path.join(self.dir, job + suffix))

    def share(self, **fields):
        procs = {job: self.launch(job, **fields) for job in self.jobs}
        self.start_together(procs)
        counts = [self.done(procs[job]) for job in self.jobs]
        for granted, refused in counts:
            self.assertGreater(granted, 0, counts)
        self.assertGreater(sum(refused for _, refused in counts), 0, counts)
        self.clean()


class OneSwitch(Jobs):
    topo = 'star4'

    def test_mode2(self):
        self.share(mode='II')

    def test_mode2_single_groups(self):
        self.share(mode='II', kind='single')

    def test_holder_dies(self):
        dead = self.launch('a', 'die', mode='II', lease_ms=1000)
        alive = self.launch('b', 'survive', mode='II')
        self.start_together(None)
        self.assertEqual([rc for rc, _, _ in self.finish(dead, LONG)], [-9, -9])
        granted, _ = self.done(alive)
        self.assertGreaterEqual(granted, MINIMUM)
        shown = self.rpc('s0', 'group.show', {'group': 'a'})['result']
        self.assertEqual((shown['state'], shown['fail_reason']), ('failed', 'lease_expired'))
        self.assertEqual(self.lease('s0')['taken_back'], 1)
        self.rpc('s0', 'group.delete', {'group': 'a', 'force': True})
        self.clean()

    def test_selection(self):
        """Somebody else has the memory, and then not."""
        other = {'name': 'other', 'mode': 'II', 'kind': 'mixed', 'mtu': 1024, 'M': 4, 'W': 16, 'ranks': 1,
                 'lease': 'pool', 'lease_ms': 3600000,
                 'endpoints': [{'ip': '10.77.0.13', 'qpn': 17, 'port': 'h3', 'ranks': [0]}]}
        self.assertIn('result', self.rpc('s0', 'group.create', other))
        self.assertIn('result', self.rpc('s0', 'lease.acquire', {'lease': 'pool', 'tenant': 'other'}))
        path = self.group_file('a')
        program = os.path.join(build_dir(), 'apps/incline-perf')
        for held in True, False:
            procs = [self.start(f'h{rank}', [program, '--group', path, '--rank', str(rank), '--show-selection'])
                     for rank in range(2)]
            results = self.finish(procs, LONG)
            self.assertEqual([rc for rc, _, _ in results], [0, 0], results)
            text = results[0][1]
            if held:
                self.assertIn('FALLBACK', text)
                self.assertIn('0 collectives in the network, 1 by a ring of the hosts, the last because '
                              'switch s0: lease "pool" is held by "other" for ', text)
                self.assertEqual(self.lease('s0')['refused'], 1)
                self.rpc('s0', 'lease.release', {'lease': 'pool', 'tenant': 'other'})
            else:
                self.assertIn('1 collectives in the network, 0 by a ring of the hosts', text)
                self.assertNotIn('FALLBACK', text)
        self.rpc('s0', 'group.delete', {'group': 'other', 'force': True})
        self.clean()


class TwoLevels(Jobs):
    """Every job has a host at either leaf, so that both need all three switches."""
    topo = 'tree-2x2'
    jobs = {'a': (0, 2), 'b': (1, 3)}

    def test_mode2(self):
        self.share(mode='II')

    def test_mode3(self):
        self.share(mode='III')


if __name__ == '__main__':
    run_tests(verbosity=2)
