#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program of the OCP's MRC API between hosts of tools/lab: incline-mrcperf, whose data is checked. Run by meson
test, or by hand: tests/integration/mrc_programs.py [TEST...]."""
import json
import os
import socket
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from fabric_case import Fabric, app, free_port, listening, run_tests  # noqa: E402

PATIENCE = 300  # seconds: hangs only
PERF = app('incline-mrcperf')


class Programs(Fabric):
    def perf(self, *args):
        """The rows of a run from h1 to h0; both ends have succeeded."""
        port = str(free_port())
        out = os.path.join(self.dir, 'mrcperf.json')
        server = self.start('h0', [PERF, '-p', port])
        deadline = time.monotonic() + PATIENCE
        while not listening(int(port)):
            self.assertIsNone(server.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        client = self.start('h1', [PERF, '-p', port, '--json', out, *args, '127.0.0.1'])
        for p in client, server:
            text, err = p.communicate(timeout=PATIENCE)
            self.assertEqual(p.returncode, 0, f'{args}: {err}\n{text}')
        with open(out) as f:
            return json.load(f)['rows']

    def check(self, rows, sizes, checked):
        self.assertEqual([r['size'] for r in rows], sizes)
        for r in rows:
            self.assertEqual((r['checked'], r['wrong']), (checked, 0), r)
            self.assertGreater(r['gbps'], 0)


class Clean(Programs):
    def test_writes_with_immediate(self):
        self.check(self.perf('--imm', '-a', '-s', '65536', '-n', '50'), [1 << n for n in range(17)], 50)

    def test_writes_of_several_queue_pairs(self):
        self.check(self.perf('-q', '8', '-s', '10000', '-n', '200', '-t', '8'), [10000], 8 * 8)


class Lossy(Programs):
    impair = {'loss': 0.01, 'dup': 0.01, 'reorder': 0.01}

    def test_every_message_is_right(self):
        self.check(self.in_weather(self.perf, '--imm', '-q', '2', '-s', '20000', '-n', '200'), [20000], 400)


class NoDevice(unittest.TestCase):
    def test_says_so(self):
        env = {k: v for k, v in os.environ.items() if k not in ('LD_PRELOAD', 'INCLINE_RNIC')}
        with socket.create_server(('127.0.0.1', 0)) as s:
            done = subprocess.run([PERF, '-p', str(s.getsockname()[1]), '127.0.0.1'], env=env, capture_output=True,
                                  text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, 'no device|does not speak MRC')


if __name__ == '__main__':
    run_tests(verbosity=2)
