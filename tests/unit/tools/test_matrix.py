#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/demo --matrix: the table that it prints."""
import argparse
import contextlib
import io
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../tools'))
import incline_matrix as m  # noqa: E402


class Modes(unittest.TestCase):
    def test_only_those_that_there_are(self):
        self.assertEqual(m.modes('II,netreduce'), ['II', 'netreduce'])
        for wrong in 'X', 'II,', '', 'II,ring':
            with self.assertRaises(argparse.ArgumentTypeError):
                m.modes(wrong)
        self.assertEqual(m.modes('ring', ('I', 'ring')), ['ring'])


class Table(unittest.TestCase):
    def test_the_papers_figures_stand_beside_the_tree_of_the_paper(self):
        rows = [{'mode': mode, 'collective': c, 'tree': tree, 'wrong': 0, 'algbw_gbps': 1, 'time_us': 9}
                for mode in m.MODES for c in m.collectives_of(mode) for tree, _ in m.TREES]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            m.show(rows, 'incline')
        said = out.getvalue().splitlines()
        head = next(line for line in said if line.startswith('mode'))
        self.assertEqual(head.split(), ['mode', 'collective', 'star', 'two-level', 'EPIC', 'depth', '4'])
        line = next(line for line in said if line.startswith('II        reduce '))
        self.assertEqual(line.split(), ['II', 'reduce', '1000', '#0', '1000', '#0', '99', '1000', '#0'])
        self.assertEqual(line.index(' 99') + 3, head.index('EPIC') + 4)
        self.assertNotIn('one switch', out.getvalue())
        line = next(line for line in said if line.startswith('mpi       barrier '))
        self.assertEqual(line.split(), ['mpi', 'barrier', '111111/s', '#0', '111111/s', '#0', '38', '111111/s', '#0'])

    def test_open_mpi_is_left_out_with_its_reason(self):
        said, trees, m.TREES = [], m.TREES, ()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                m.run(None, None, said.append, argparse.Namespace(modes=['mpi'], hosts='soft-roce', iters=1, dtype='float'))
        finally:
            m.TREES = trees
        self.assertEqual(said, ['without Open MPI: ranks in virtual machines'])


if __name__ == '__main__':
    unittest.main()
