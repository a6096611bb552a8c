#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/lab with a switch that only says that it is ready, or does not: what an interruption leaves, two at once, odd
folders, and what is refused."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
from incline_fabric import LabError, Topology  # noqa: E402
from incline_lab import Lab  # noqa: E402
from incline_processes import Undisturbed, process_start  # noqa: E402

TREE = os.path.join(TOP, 'tools/fabrics/tree-2x2.json')
SWITCH = '#!/bin/sh\necho $$ >> "{pids}"\n[ -f "{slow}" ] || echo switch ready\nexec sleep 600\n'


class Fake(unittest.TestCase):
    blank = ''

    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix='il-')
        self.addCleanup(self.tmp.cleanup)
        self.build = os.path.join(self.tmp.name, 'a' + self.blank + 'build')
        self.dir, self.pids, self.slow = (os.path.join(self.tmp.name, n) for n in ('lab', 'pids', 'slow'))
        for program in 'apps/incline-switch', 'lib/verbs/libincline_verbs.so':
            path = os.path.join(self.build, program)
            os.makedirs(os.path.dirname(path))
            with open(path, 'w') as f:
                f.write(SWITCH.format(pids=self.pids, slow=self.slow))
            os.chmod(path, 0o755)
        self.env = dict(os.environ, INCLINE_LAB=self.dir, INCLINE_BUILD=self.build)
        self.env.pop('LD_PRELOAD', None)
        self.addCleanup(self.lab, 'down')

    def start(self, *args, **more):
        return subprocess.Popen([os.path.join(TOP, 'tools/lab'), *args], env={**self.env, **more}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def lab(self, *args, **more):
        """(exit status, stdout, stderr)"""
        p = self.start(*args, **more)
        out, err = p.communicate(timeout=60)
        return p.returncode, out, err

    def started(self):
        try:
            with open(self.pids) as f:
                return [int(line) for line in f]
        except FileNotFoundError:
            return []

    def recorded(self):
        with open(os.path.join(self.dir, 'lab.json')) as f:
            return any('pid' in row for row in json.load(f)['switches'])

    def until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)


class Interrupted(Fake):
    def test_up_leaves_no_process_and_no_file(self):
        for number in signal.SIGINT, signal.SIGTERM:
            open(self.slow, 'w').close()
            p = self.start('up', TREE)
            self.until(self.started)
            p.send_signal(number)
            _, err = p.communicate(timeout=60)
            self.assertEqual((p.returncode, err), (128 + number, ''))
            self.assertEqual([pid for pid in self.started() if process_start(pid)], [])
            self.assertFalse(os.path.exists(self.dir))
            os.remove(self.pids)

    def test_down_finds_what_a_killed_up_left(self):
        open(self.slow, 'w').close()
        p = self.start('up', TREE)
        self.until(self.started)
        self.until(self.recorded)
        p.kill()
        p.communicate()
        self.assertEqual(self.lab('down')[0], 0)
        self.until(lambda: not any(map(process_start, self.started())))
        self.assertFalse(os.path.exists(self.dir))

    def test_a_signal_waits_for_the_record(self):
        seen = []
        old = signal.signal(signal.SIGTERM, lambda *_: seen.append('signal'))
        try:
            with Undisturbed():
                os.kill(os.getpid(), signal.SIGTERM)
                seen.append('recorded')
        finally:
            signal.signal(signal.SIGTERM, old)
        self.assertEqual(seen, ['recorded', 'signal'])


class TwoAtOnce(Fake):
    def test_the_second_is_told_who_is_there(self):
        open(self.slow, 'w').close()
        first = self.start('up', TREE)
        self.until(self.started)
        for verb in ('up', TREE), ('down',):
            rc, _, err = self.lab(*verb)
            self.assertEqual(rc, 1)
            self.assertIn(f'process {first.pid} makes or ends a fabric there', err)
        first.terminate()
        first.communicate(timeout=60)
        os.remove(self.slow)
        self.assertEqual(self.lab('up', TREE)[0], 0)
        rc, _, err = self.lab('up', TREE)
        self.assertEqual(rc, 1)
        self.assertIn('a fabric is up there', err)
        self.assertEqual(sum(process_start(pid) is not None for pid in self.started()), 3)


class Blank(Fake):
    blank = ' b:'

    def test_a_build_folder_with_blanks(self):
        self.assertEqual(self.lab('up', TREE)[0], 0)
        rc, out, _ = self.lab('exec', 'h0', '--', 'sh', '-c', 'LD_PRELOAD= readlink "$LD_PRELOAD"')
        self.assertEqual((rc, out.strip()), (0, os.path.join(self.build, 'lib/verbs/libincline_verbs.so')))

    def test_a_lab_folder_with_blanks_is_refused(self):
        folder = os.path.join(self.tmp.name, 'my lab')
        rc, _, err = self.lab('up', TREE, INCLINE_LAB=folder)
        self.assertEqual(rc, 1)
        self.assertIn('blank', err)
        self.assertFalse(os.path.exists(folder))

    def test_a_long_one_too(self):
        folder = os.path.join(self.tmp.name, 'x' * 100)
        self.assertIn('too long for socket paths', self.lab('up', TREE, INCLINE_LAB=folder)[2])
        self.assertFalse(os.path.exists(folder))


class Words(Fake):
    def test_nothing_up(self):
        self.assertEqual(self.lab('down'), (0, 'nothing is up\n', ''))
        self.assertEqual(self.lab('status')[0], 1)

    def test_wrong_names_are_told(self):
        self.lab('up', TREE)
        for argv, said in ((('ctl', 's9', 'ports'), 's9: no such switch; there are spine, leaf0, leaf1'),
                           (('exec', 'h9', '--', 'true'), 'h9: no such host; there are h0, h1, h2, h3'),
                           (('exec', 'h0', '--', 'nosuchprog'), 'exec: nosuchprog: no such program')):
            rc, _, err = self.lab(*argv)
            self.assertEqual(rc, 1)
            self.assertIn(said, err)
        with open(TREE) as f:
            doc = json.load(f)
        del doc['name']
        with self.assertRaisesRegex(LabError, '^name: None, must be'):
            Topology(doc)

    def test_a_failed_start_leaves_nothing(self):
        with open(os.path.join(self.build, 'apps/incline-switch'), 'w') as f:
            f.write('#!/bin/sh\necho no port\nexit 1\n')
        rc, _, err = self.lab('up', TREE)
        self.assertEqual(rc, 1)
        self.assertIn('spine ended at once:\nno port', err)
        self.assertFalse(os.path.exists(self.dir))

    def test_state_of_a_switch_that_is_being_started(self):
        self.assertFalse(Lab(self.dir).alive({'name': 's0'}))

    def test_one_that_ended_before_it_was_looked_at(self):
        gone = subprocess.Popen(['true'])
        gone.wait()
        row = {'name': 's0', 'pid': gone.pid, 'start': process_start(gone.pid)}
        self.assertIsNone(row['start'])
        self.assertFalse(Lab(self.dir).alive(row))
        Lab(self.dir).signal(row, signal.SIGTERM)


if __name__ == '__main__':
    unittest.main()
