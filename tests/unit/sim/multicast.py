#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""incline-sim multicast: bytes at all switches' ports, as the paper's figure 12 has them; AllGather and ReduceScatter at the
same time, as its appendix B has them."""
import json
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()
LONG = '--long' in sys.argv
if LONG:
    sys.argv.remove('--long')
RANKS = [4, 8, 16] + ([32, 64] if LONG else [])


def rows_of(what):
    out = subprocess.run([PROGRAM, 'multicast', what, *([] if LONG else ['--quick']), '--json', '-'], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out[out.index('{\n'):])['rows']


class Fsdp(unittest.TestCase):
    def test_formula(self):
        rows = rows_of('fsdp')
        self.assertEqual([r['ranks'] for r in rows], RANKS)
        for r in rows:
            self.assertGreater(r['speedup'], 0.9 * (2 - 2 / r['ranks']), r)
            self.assertLess(r['speedup'], 1.1 * (2 - 2 / r['ranks']), r)


class Time(unittest.TestCase):
    """Figure 10: the parts of a collective are all of it, by the simulator's clock."""
    PARTS = 'barrier', 'multicast', 'wait', 'recovery', 'handshake'

    def test_parts(self):
        rows = rows_of('time')
        self.assertEqual(len(rows), 11 if LONG else 9)
        share = {}
        for r in rows:
            self.assertEqual(sum(r[p + '_ns'] for p in self.PARTS), r['total_ns'], r)
            self.assertTrue(all(r[p + '_ns'] >= 0 for p in self.PARTS), r)
            self.assertGreater(min(r['barrier_ns'], r['multicast_ns'], r['handshake_ns']), 0, r)
            for p in 'wait', 'recovery':
                self.assertEqual(r[p + '_ns'] > 0, r['loss'] > 0, r)
            share[r['collective'], r['ranks'], r['bytes'], r['loss']] = r['multicast_ns'] / r['total_ns']
        self.assertLess(share['allgather', 4, 4096, 0], share['allgather', 4, 1 << 20, 0])
        self.assertLess(share['broadcast', 16, 4096, 0], share['broadcast', 16, 1 << 20, 0])
        self.assertGreater(share['allgather', 4, 1 << 20, 0], 0.95)
        self.assertGreater(share['allgather', 16, 65536, 0], share['allgather', 16, 4096, 0])


class Throughput(unittest.TestCase):
    """Figure 11: hosts take no time here, so beyond a few packets multicast gains more than the paper measures."""

    def test_gain(self):
        rows = {(r['collective'], r['bytes'], r['algorithm']): r for r in rows_of('throughput')}
        for r in rows.values():
            self.assertLessEqual(r['least'], r['median'], r)
            self.assertLessEqual(r['median'], r['most'], r)
            self.assertLess(r['most'], 100, r)
        self.assertLess(rows['broadcast', 4096, 'multicast']['least'], rows['broadcast', 4096, 'multicast']['most'])
        self.assertGreater(rows['broadcast', 65536, 'k-nomial, 4']['gain'], 1.3)
        self.assertGreater(rows['broadcast', 65536, 'binary tree']['gain'], 2)
        self.assertAlmostEqual(rows['allgather', 4096, 'ring']['gain'], 1, delta=0.1)


class Traffic(unittest.TestCase):
    def test_small(self):
        rows = rows_of('traffic')
        ratio = {(r['collective'], r['algorithm']): r['ratio'] for r in rows if r['ranks'] == 188}
        self.assertEqual(len(ratio), 8)
        for of in ('broadcast', 'ring'), ('broadcast', 'k-nomial, 4'), ('allgather', 'ring'):
            self.assertGreaterEqual(ratio[of], 1.5, of)
            self.assertLessEqual(ratio[of], 2.05, of)
        for op in 'broadcast', 'allgather':  # headers 8 bytes longer than datagrams have
            self.assertGreater(ratio[op, 'multicast, UC'], 1, op)
            self.assertLess(ratio[op, 'multicast, UC'], 1.01, op)
        self.assertGreater(ratio['broadcast', 'binary tree'], ratio['broadcast', 'k-nomial, 4'])
        if LONG:  # figure 2's fat tree
            ratio = {(r['collective'], r['algorithm']): r['ratio'] for r in rows if r['ranks'] == 1024}
            for of in ('broadcast', 'ring'), ('broadcast', 'k-nomial, 4'), ('allgather', 'ring'):
                self.assertGreaterEqual(ratio[of], 1.5, of)
                self.assertLessEqual(ratio[of], 2.05, of)

    def test_unknown(self):
        done = subprocess.run([PROGRAM, 'multicast', 'speed'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn('multicast: speed: ', done.stderr)


if __name__ == '__main__':
    unittest.main()
