#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a test with processes says of one that does not end, and what it leaves."""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
INTEGRATION = os.path.join(TOP, 'tests/integration')
sys.path.insert(0, INTEGRATION)
sys.path.insert(0, os.path.join(TOP, 'tools'))
import fabric_case  # noqa: E402
from incline_processes import process_start  # noqa: E402
from test_lab import Fake  # noqa: E402


class Hangs(fabric_case.Fabric):
    @classmethod
    def setUpClass(cls):
        """No fabric."""

    tearDownClass = setUpClass

    def setUp(self):
        super().setUp()
        self.stdin, keep = os.pipe()
        for fd in self.stdin, keep:
            self.addCleanup(os.close, fd)

    def launch(self):
        """A launcher, and what it has launched, which waits for ever."""
        p = subprocess.Popen(['sh', '-c', 'echo so far; sh -c "echo launched; read x; true"; true'], stdin=self.stdin,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.procs.append(p)
        return p

    def test_what_it_says(self):
        p = self.launch()
        self.assertEqual([self.line(p), self.line(p)], ['so far\n', 'launched\n'])
        with self.assertRaises(AssertionError) as caught:
            self.finish([p], 0.1)
        said = str(caught.exception)
        self.assertRegex(said, r"(?s)is not done after 0.1 s, with load .*\n\d+: sh -c echo so far.*\n\d+: sh -c echo launched")
        self.assertRegex(said, r'\n  \d+: [RS] \w+')

    def test_what_others_said(self):
        """Of those before it and behind it that have ended."""
        def says(text):
            p = subprocess.Popen(['sh', '-c', f'echo {text} >&2; exit 3'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.procs.append(p)
            self.assertEqual(p.wait(60), 3)
            return p
        first, last, p = says('one'), says('two'), self.launch()
        self.assertEqual([self.line(p), self.line(p)], ['so far\n', 'launched\n'])
        with self.assertRaisesRegex(AssertionError, r'(?s)is not done after 0.1 s.* has ended with 3:\none\n.* has ended with 3:\ntwo\n'):
            self.finish([first, p, last], 0.1)

    def ends_with_the_test(self, pid):
        self.tearDown()
        self.procs.clear()
        deadline = time.monotonic() + 60  # a signal takes effect when the process runs next
        while process_start(pid) is not None:  # nobody may have waited for it
            self.assertLess(time.monotonic(), deadline, f'process {pid} stays')
            time.sleep(0.01)

    def test_nothing_stays(self):
        p = self.launch()
        self.assertEqual([self.line(p), self.line(p)], ['so far\n', 'launched\n'])
        self.ends_with_the_test(fabric_case.family(p.pid)[1])

    def test_nothing_stays_of_a_launcher_that_has_ended(self):
        """What it has launched, in a session of its own, is told of and ended; what this process has started is not."""
        beside = subprocess.Popen(['sleep', '600'])
        self.addCleanup(beside.wait)
        self.addCleanup(beside.kill)
        p = subprocess.Popen(['sh', '-c', "exec 3<&0; setsid sh -c 'echo $$; read x; true' <&3 &"], stdin=self.stdin,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.procs.append(p)
        launched = int(self.line(p))
        self.assertEqual(p.wait(60), 0)
        with self.assertRaisesRegex(AssertionError, rf'(?s)is not done after 0.1 s.*\n{launched}: sh -c echo .*; read x'):
            self.finish([p], 0.1)
        self.ends_with_the_test(launched)
        self.assertIsNone(beside.poll())

    def test_a_line_that_does_not_come(self):
        p = self.launch()
        self.assertEqual([self.line(p), self.line(p)], ['so far\n', 'launched\n'])
        with self.assertRaisesRegex(AssertionError, 'has said nothing for 0.1 s'):
            self.line(p, 0.1)


class Ended(Fake):
    """A signal in the middle of a test leaves no process and no file, wherever it was begun."""

    def setUp(self):
        super().setUp()
        self.tmpdir, self.here = (os.path.join(self.tmp.name, n) for n in ('tmp', 'here'))
        os.mkdir(self.tmpdir)

    def ends(self, program, *args, **env):
        p = subprocess.Popen([sys.executable, program, *args], env={**self.env, 'TMPDIR': self.tmpdir, **env}, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.kill)
        self.until(lambda: os.path.exists(self.here) or p.poll() is not None)
        self.assertIsNone(p.poll())
        p.send_signal(signal.SIGTERM)
        said = p.communicate(timeout=60)[0]
        self.assertEqual(p.returncode, 128 + signal.SIGTERM, said)
        self.assertIn('Ended: by signal 15', said)
        self.assertNotIn('second test', said)
        self.assertTrue(self.started())
        self.assertEqual([pid for pid in self.started() if process_start(pid)], [])
        self.assertEqual(os.listdir(self.tmpdir), [])

    def test_a_fabric_of_a_test(self):
        program = os.path.join(self.tmp.name, 'program.py')
        with open(program, 'w') as f:
            f.write(f'import sys, time\nsys.path.insert(0, {INTEGRATION!r})\nimport fabric_case\n'
                    'class Two(fabric_case.Fabric):\n'
                    f'    def test_1(self):\n        open({self.here!r}, "w").close()\n        time.sleep(600)\n'
                    '    def test_2(self):\n        print("second test")\n'
                    'fabric_case.run_tests()\n')
        self.ends(program)

    def test_commands_of_the_documentation(self):
        """Their switches were begun by a program that has ended."""
        control = os.path.join(self.build, 'apps/inclinectl')
        with open(control, 'w') as f:
            f.write(f'#!/bin/sh\n: > {self.here}\nexec sleep 600\n')
        os.chmod(control, 0o755)
        self.ends(os.path.join(INTEGRATION, 'docs.py'), 'Docs.test_commands')

    def test_every_program_with_a_fabric_takes_it_down(self):
        """Who makes one, or tests of one, and would end by a signal without a word to its switches."""
        silent = []
        for folder in 'tests/integration', 'tests/interop', 'tests/bench', 'tools':
            for name in os.listdir(os.path.join(TOP, folder)):
                path = os.path.join(TOP, folder, name)
                if os.path.isfile(path):
                    with open(path, encoding='utf-8', errors='replace') as f:
                        text = f.read()
                    if '__main__' in text and re.search(r'\bLab\(|(fabric_case|cm_pair) import', text) and not re.search(
                            r'^ +(run_tests|end_on_signals)\(', text, re.M):
                        silent.append(f'{folder}/{name}')
        self.assertEqual(silent, [])


if __name__ == '__main__':
    unittest.main()
