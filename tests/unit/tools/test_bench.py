#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench stream: what it runs, refuses and prints, without a fabric."""
import argparse
import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PROGRAM = os.path.join(TOP, 'tests/bench/stream.py')
SPEC = importlib.util.spec_from_file_location('bench_stream', PROGRAM)
stream = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(stream)


class Stream(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.build = tmp.name

    def virtual(self, *options):
        return subprocess.run([sys.executable, PROGRAM, '--virtual', *options], env={**os.environ, 'INCLINE_BUILD': self.build},
                              capture_output=True, text=True)

    def test_virtual(self):
        """With a file or without one the program prints all it has; its status is this one's."""
        folder = os.path.join(self.build, 'tests/unit/stream')
        os.makedirs(folder)
        program = os.path.join(folder, 'test_stream_drops')
        with open(program, 'w') as f:
            f.write('#!/bin/sh\necho "table $*"\nexit 3\n')
        os.chmod(program, 0o755)
        for options, said in ((), 'table \n'), (('--json', 'o.json'), 'table --json o.json\n'):
            p = self.virtual(*options)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (3, said, ''))

    def test_virtual_has_no_other_options(self):
        for options in ('--cc', 'cubic'), ('--rounds', '3'), ('--quick',):
            p = self.virtual(*options)
            self.assertEqual(p.returncode, 2)
            self.assertIn(f'{options[0]}: not with --virtual', p.stderr)

    def test_virtual_is_not_built(self):
        p = self.virtual()
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr, '^tools/bench stream: .*test_stream_drops is not built')

    def test_rounds(self):
        p = subprocess.run([sys.executable, PROGRAM, '--rounds', '0'], capture_output=True, text=True)
        self.assertEqual(p.returncode, 2)
        self.assertIn('--rounds: 0 is less than 1', p.stderr)

    def test_what_the_kernel_lacks(self):
        """A module is named where there is one."""
        self.assertEqual(stream.kernel_cc('delay'), (None, 'it has no congestion control like delay'))
        self.assertEqual(stream.kernel_cc('fast'), ('fast', 'it has no congestion control like fast (modprobe tcp_fast)'))
        self.assertEqual(stream.kernel_cc('newreno'), ('reno', None))

    def test_nothing_moved(self):
        """Its share of nothing, and how much more than nothing the other has, are no numbers."""
        self.addCleanup(setattr, stream, 'measure', stream.measure)
        stream.measure = lambda drop, kernel, *_: {
            'gbps': 0 if kernel else 1 - drop, 'least': 0, 'most': 1, 'cpu_s_per_gb': 1}
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            rows = stream.measure_all(argparse.Namespace(cc='bbr'), 'bbr', 1, 1)
        self.assertEqual([row['kernel']['share'] for row in rows], [None] * len(stream.DROPS))
        self.assertEqual(rows[-1]['incline']['share'], 0.9)
        for line in said.getvalue().splitlines()[1:]:
            self.assertEqual(line.split()[-1], '-')
        drawn = stream.as_plot(rows, 'bbr')
        self.assertEqual(drawn[0], {'at': '0 %', 'solution': 'incline bbr', 'ours': 1, 'paper': None, 'least': 0, 'most': 1})


if __name__ == '__main__':
    unittest.main()
