#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/demo --paper: which cells there are, when they will be done, and what is printed and drawn of them; no fabric, no clock."""
import argparse
import contextlib
import io
import os
import sys
import time
import unittest
from types import SimpleNamespace
from unittest import mock

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
import incline_epic as epic  # noqa: E402
import incline_matrix as matrix  # noqa: E402
import incline_mpi as mpi  # noqa: E402
import incline_paper as p  # noqa: E402

GB = 1 << 30


def row(mode, collective, size, us, wrong=0):
    return matrix.row_of(mode, collective, 'two-level', 4, 'float', size, us, wrong)


class Figures(unittest.TestCase):
    def test_as_the_paper_has_them(self):
        self.assertEqual((epic.SIZES[0], epic.SIZES[-1], len(epic.SIZES)), (4096, GB, 10))
        for table in epic.MBPS.values():
            self.assertEqual({len(v) for v in table.values()}, {10})
            self.assertEqual(list(table), list(epic.BARRIERS))
        self.assertEqual(set(epic.MBPS) | {'barrier'}, set(matrix.COLLECTIVES))
        # Table 3 has them in part, rounded.
        self.assertEqual([round(v, 1) for v in epic.MBPS['allreduce']['II']], [14.7, 48.1, 67.3, 85.1, 89.0, 93.7, 86.6, 89.3, 94.1, 97.9])
        self.assertEqual(epic.of('reduce', 'mpi', 1 << 20), 51.77)
        self.assertEqual(epic.of('barrier', 'III', 4096), 2502.15)
        for nothing in ('reduce', 'mpi-tcp', 4096), ('reduce', 'I', 8192), ('barrier', 'netreduce', 4096):
            self.assertIsNone(epic.of(*nothing))


class Cells(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual(p.sizes('4K,1m,1G'), [4096, 1 << 20, GB])
        self.assertEqual([p.short(s) for s in epic.SIZES], '4K 16K 64K 256K 1M 4M 16M 64M 256M 1G'.split())
        for wrong in '8K', '', '4K,', '-4K', '4096':
            with self.assertRaises(argparse.ArgumentTypeError):
                p.sizes(wrong)

    def test_what_does_not_fit_is_left_out_and_said(self):
        self.assertEqual(p.fitting(epic.SIZES, 16 * GB), (list(epic.SIZES), []))
        fit, said = p.fitting(epic.SIZES, 15 * GB)
        self.assertEqual((fit, said), (list(epic.SIZES[:-1]), ['1G left out: 4 ranks with 2 buffers take 8G and more, half of the memory that is free is 7.5 GB']))
        self.assertEqual(p.fitting([4096], 3 * GB), ([4096], []))

    def test_each_once_and_a_barrier_has_no_size(self):
        cells = p.cells_of(['I', 'mpi'], [4096, 16384])
        self.assertEqual(len(cells), len(set(cells)))
        self.assertEqual(len(cells), 2 * (5 * 2 + 1))
        self.assertEqual([c for c in cells if c[1] == 'barrier'], [('I', 'barrier', 4096), ('mpi', 'barrier', 4096)])
        self.assertEqual([p.iterations(s, 10) for s in (4096, 16 << 20, 64 << 20, GB)], [10, 10, 3, 3])
        self.assertEqual(p.iterations(GB, 2), 2)


class Estimate(unittest.TestCase):
    def setUp(self):
        self.e = p.Estimate(10)

    def says(self, cell, seconds):
        self.assertAlmostEqual(self.e.seconds([cell]), seconds, msg=cell)

    def test_before_anything_is_known(self):
        self.says(('I', 'reduce', 1 << 20), p.SET_UP_S + 13 * (1 << 20) * 8e-8)
        self.says(('I', 'barrier', 4096), p.SET_UP_S)

    def test_from_what_has_been_measured(self):
        self.e.note(('I', 'barrier', 4096), 2)
        self.e.note(('I', 'reduce', 1 << 20), 2.5)
        self.says(('I', 'reduce', 1 << 20), 2.5)
        self.says(('I', 'reduce', 4 << 20), 2 + 0.5 * 4)
        self.says(('I', 'reduce', 64 << 20), 2 + 0.5 * 64 * 6 / 13)  # less often
        self.says(('I', 'reduce', 256 << 10), 2 + 0.5 / 4)
        self.says(('I', 'broadcast', 1 << 20), 2.5)
        self.says(('II', 'reduce', 1 << 20), p.SET_UP_S)  # by another's, which began sooner
        self.says(('I', 'barrier', 4096), 2)
        self.e.note(('I', 'reduce', 4 << 20), 6)
        self.e.note(('I', 'broadcast', 64 << 20), 60)
        self.says(('I', 'reduce', 16 << 20), 2 + 4 * 4)
        self.assertAlmostEqual(self.e.seconds([('I', 'reduce', 16 << 20)] * 2), 36)

    def test_what_is_short_is_no_rate(self):
        """A second more at 4 KB is not three days at 1 GB."""
        self.e.note(('I', 'barrier', 4096), 2)
        self.e.note(('I', 'reduce', 4096), 3)
        self.says(('I', 'reduce', 4096), 3)
        self.says(('I', 'reduce', GB), 2 + 6 * GB * 8e-8)

    def test_limit_is_for_what_hangs(self):
        self.e.note(('I', 'reduce', 4096), 1)
        self.assertGreater(self.e.limit(('I', 'reduce', GB)), 10 * 6 * GB * 8e-8)
        self.assertGreaterEqual(self.e.limit(('I', 'barrier', 4096)), p.PATIENCE)


class Tables(unittest.TestCase):
    ROWS = [row('I', 'allreduce', 4096, 100), row('I', 'allreduce', 1 << 20, 100000, None), row('mpi-tcp', 'allreduce', 4096, 8),
            row('III', 'barrier', 4096, 500), row('I', 'barrier', 4096, 500)]

    def test_ours_and_the_papers(self):
        all_reduce, barrier = p.tables(self.ROWS)
        self.assertEqual(all_reduce['rows'], [{'at': '4K', 'solution': 'I', 'ours': 4096 * 8 / 100, 'paper': 2.47},
                                              {'at': '1M', 'solution': 'I', 'ours': None, 'paper': 182.44},
                                              {'at': '4K', 'solution': 'mpi-tcp', 'ours': 4096, 'paper': None}])
        self.assertEqual([(c['at'], c['ours'], c['paper']) for c in barrier['rows']], [('barrier', 2000, 2502.15), ('barrier', 2000, 1331.25)])
        self.assertEqual([(t['table'], t['unit'], t['log']) for t in (all_reduce, barrier)], [(19, 'Mb/s', True), (24, 'operations per second', False)])

    def test_printed(self):
        lines = [line for table in p.tables(self.ROWS) for line in p.text(table)]
        self.assertEqual(lines[0], '\nTable 19 (and 3): AllReduce, Mb/s')
        self.assertEqual(lines[1].split(), ['I', 'EPIC', 'mpi-tcp', 'EPIC'])
        self.assertEqual(lines[2].split(), ['4K', '328', '2.47', '4096', '-'])
        self.assertEqual(lines[3].split(), ['1M', '-', '182'])
        self.assertEqual({len(line) for line in lines[1:4]}, {len(lines[1])})
        self.assertEqual(lines[-1].split(), ['barrier', '2000', '2502', '2000', '1331'])

    def test_verdict(self):
        self.assertEqual(p.verdict(self.ROWS), 'more than the paper in 2 of 4 cells, not in: I allreduce 1M, III barrier')
        self.assertEqual(p.verdict(self.ROWS[:1]), 'more than the paper in 1 of 1 cells')


class Run(unittest.TestCase):
    def run_it(self, solutions, sizes, measured, why=lambda _: None, free=64 * GB):
        """measured(cell): us, or None."""
        now, said, saved, labs = [0.0], [], [], []

        class Lab:
            dir = '/nowhere'

            def up(self, _topo, impair, netns):
                labs.append((impair, netns))

            def down(self):
                labs.append('down')

        def measure(_lab, cell, hosts, _program, _run_ranks, _say, n, limit):
            self.assertEqual((hosts, n), (['h0', 'h1', 'h2', 'h3'], 10))
            self.assertGreater(limit, 0)
            us = measured(cell)
            now[0] += 2 + 13e-6 * (us or 0)
            return {**row(*cell, us, None if us is None else 0), 'iters': 10}
        clock = SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0])
        args = SimpleNamespace(sizes=sizes, solutions=solutions, iters=10)
        with mock.patch.multiple(p, measure=measure, why_not=why, available=lambda: free), mock.patch.object(mpi, 'program'), \
                mock.patch.object(matrix, 'write_group'):
            rows, notes = p.run(Lab, None, said.append, args, lambda r, n: saved.append((len(r), list(n))), clock)
        return rows, notes, said, saved, labs

    def test_progress_and_end(self):
        rows, notes, said, saved, labs = self.run_it(['I', 'mpi-icrc', 'mpi-tcp'], [4096], lambda cell: 1e6)
        self.assertEqual(len(rows), 18)
        self.assertRegex(' '.join(notes), r'^\d+ CPUs, load [\d.]+ before$')
        self.assertEqual(saved, [(i + 1, notes) for i in range(18)])
        self.assertEqual(labs, [(None, False), 'down', (p.ICRC, False), 'down', (None, True), 'down'])
        self.assertTrue(said[-1].startswith('18 of 18: mpi-tcp allgather 4K: 0.03 Mb/s, 0 wrong; 0 min more'), said[-1])
        # A cell takes 15 s; five of this solution are left.
        self.assertTrue(said[13].endswith(f"; 1 min more, until {time.strftime('%H:%M', time.localtime(18 * 15))}"), said[13])

    def test_what_fails_is_said_and_the_rest_goes_on(self):
        rows, _, said, _, _ = self.run_it(['I'], [4096], lambda cell: None if cell[1] == 'reduce' else 100)
        self.assertEqual([r['wrong'] for r in rows], [0, None, 0, 0, 0, 0])
        self.assertIn('2 of 6: I reduce 4K: failed; ', said[2])

    def test_what_cannot_be_is_noted(self):
        rows, notes, said, _, _ = self.run_it(['I', 'mpi-tcp'], [4096, GB], lambda cell: 100, lambda s: 'no root' if s == 'mpi-tcp' else None, free=GB)
        self.assertEqual({r['mode'] for r in rows} | {r['bytes'] for r in rows}, {'I', 4096})
        self.assertEqual(notes[1], 'without mpi-tcp: no root')
        self.assertEqual(said[:3], notes)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            p.show(rows, notes)
        self.assertIn('# 1G left out', out.getvalue())


class Ranks(unittest.TestCase):
    def test_who_makes_a_long_vector_is_waited_for(self):
        """And what incline-perf is asked for; its file is not there, so it has failed."""
        asked = []

        def run_ranks(_lab, program, args, group, limit, show):
            asked.append((program, args(1), group, limit, show))
            return True
        lab = SimpleNamespace(path=lambda name: os.path.join('/nowhere', name))
        found = p.measure(lab, ('II', 'broadcast', GB), ['h0'] * 4, None, run_ranks, None, 10, 99)
        self.assertEqual((found['wrong'], found['time_us'], found['iters'], found['bytes']), (None, None, 3, GB))
        (program, argv, group, limit, show), = asked
        self.assertEqual((program, group, limit, show), ('incline-perf', 'group-II.json', 99, False))
        said = dict(zip(argv[::2], argv[1::2]))
        self.assertEqual(said, {'--collective': 'broadcast', '-b': str(GB), '-e': str(GB), '-n': '3', '-w': '2', '-d': 'float', '--timeout': '60000'})


class Launch(unittest.TestCase):
    def test_over_rdma_and_over_tcp(self):
        hosts, program = ['h0', 'h1'], ['/a b/c', 'reduce', '4096', '2']
        rdma, tcp = (how(hosts, program) for how in (mpi.RDMA, mpi.TCP))
        self.assertEqual((rdma[0], rdma[-1]), ('mpirun', 'sh'))
        self.assertIn("exec $host -- '/a b/c' reduce 4096 2", rdma[-2])
        self.assertEqual(tcp[1:4], ['exec', 'h0', '--'])
        self.assertEqual(tcp[-4:], program)
        self.assertIn('self,tcp', tcp)


if __name__ == '__main__':
    unittest.main()
