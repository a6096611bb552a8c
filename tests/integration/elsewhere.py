#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A checkout in a path with blanks: built there, a unit test and collectives of a lab run from it; then the same when it
has been moved to another path with blanks. What is committed is cloned."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEST, BUILD = 'wire', 1800
# What belongs to the checkout that runs this.
OURS = 'INCLINE_BUILD', 'CCACHE_BASEDIR', 'MESON_BUILD_ROOT', 'MESON_SOURCE_ROOT'


class Elsewhere(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='incline elsewhere ')
        self.addCleanup(shutil.rmtree, self.dir)
        self.at = os.path.join(self.dir, 'a b', 'c')
        self.env = {name: value for name, value in os.environ.items() if name not in OURS}
        # A lab's sockets have short names, and LD_PRELOAD ends a path at a blank.
        lab = tempfile.mkdtemp(prefix='it-', dir='/tmp')
        self.addCleanup(shutil.rmtree, lab)
        self.env |= {'INCLINE_LAB': os.path.join(lab, 'lab'), 'TMPDIR': lab}

    def run_here(self, *argv, timeout=300, status=0):
        done = subprocess.run(argv, cwd=self.at, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout)
        self.assertEqual(done.returncode, status, f"{' '.join(argv)}:\n{done.stdout[-4000:]}")
        return done.stdout

    def lab(self):
        """Collectives of four hosts through a switch, every element checked; a program of others with the preloaded library."""
        self.run_here('tools/lab', 'up', 'tools/fabrics/star4.json')
        try:
            said = self.run_here('tools/lab', 'run', '--', 'build/apps/incline-perf', '-b', '4K', '-e', '64K', '-f', '4', '-n', '3')
            self.assertIn('# Out of bounds values : 0 OK', said)
            self.assertIn('incline0', self.run_here('tools/lab', 'exec', 'h0', '--', 'ibv_devices'))
        finally:
            self.run_here('tools/lab', 'down')

    def test_blanks_and_a_move(self):
        os.makedirs(os.path.dirname(self.at))
        subprocess.run(['git', 'clone', '--quiet', TOP, self.at], check=True)
        self.assertIn('1 passed, 0 failed', self.run_here('tools/test', TEST, timeout=BUILD))
        self.lab()
        was, self.at = self.at, os.path.join(self.dir, 'd e', 'f g')
        os.makedirs(os.path.dirname(self.at))
        os.rename(was, self.at)
        self.lab()  # what is built runs wherever it lies
        said = self.run_here('tools/test', TEST, timeout=BUILD)
        self.assertIn(f'build was made in {was}: configuring it anew', said)
        self.assertIn('1 passed, 0 failed', said)
        self.lab()


if __name__ == '__main__':
    unittest.main(verbosity=2)
