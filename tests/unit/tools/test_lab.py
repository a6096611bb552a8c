#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/lab with a switch that only says that it is ready, or does not: what an interruption leaves, two at once, odd
folders, and what is refused."""
import fcntl
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
import incline_lab  # noqa: E402
from incline_lab import Lab  # noqa: E402
from incline_lab_show import graph, list_fabrics  # noqa: E402
from incline_planes import topology  # noqa: E402
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


class Tending(Fake):
    def pid(self, name):
        with open(os.path.join(self.dir, 'lab.json')) as f:
            return next(row['pid'] for row in json.load(f)['switches'] if row['name'] == name)

    def test_kill_and_restart(self):
        self.lab('up', TREE)
        old = self.pid('leaf0')
        self.assertEqual(self.lab('kill', 'leaf0'), (0, '', ''))
        self.assertIsNone(process_start(old))
        rows = {n['name']: n['state'] for n in json.loads(self.lab('status', '-j')[1])['nodes']}
        self.assertEqual((rows['leaf0'], rows['spine'], rows['h0']), ('dead', 'up', 'no switch'))
        self.assertIn('leaf0 10.77.255.2 (dead)', self.lab('graph')[1])
        for _ in range(2):  # a dead one, and one that is up
            self.assertEqual(self.lab('restart', 'leaf0'), (0, '', ''))
            self.assertNotEqual(self.pid('leaf0'), old)
            self.assertIsNone(process_start(old))
            self.assertIsNotNone(process_start(self.pid('leaf0')))
            old = self.pid('leaf0')
        self.assertEqual(self.lab('down')[0], 0)
        self.until(lambda: not any(map(process_start, self.started())))

    def test_what_cannot_be_tended(self):
        for verb in ('kill', 's0'), ('restart', 's0'), ('logs',), ('graph',), ('run', '--', 'true'):
            rc, _, err = self.lab(*verb)
            self.assertEqual((rc, 'no fabric is up' in err), (1, True), verb)
        self.lab('up', TREE)
        for argv, said in ((('kill', 'h0'), 'h0: no process of the fabric; there are spine, leaf0, leaf1'),
                           (('restart', 'h0'), 'h0: no such switch; there are spine'),
                           (('logs', 'h0'), 'h0: has no log; there are spine, leaf0, leaf1'),
                           (('run', '--'), 'run: no command given'),
                           (('run', '--', 'nosuchprog'), 'run: nosuchprog: no such program')):
            rc, _, err = self.lab(*argv)
            self.assertEqual(rc, 1, argv)
            self.assertIn(said, err)

    def test_logs(self):
        self.lab('up', TREE)
        with open(os.path.join(self.dir, 'leaf1.log'), 'a') as f:
            f.write('one\ntwo\n')
        self.assertEqual(self.lab('logs', 'leaf1'), (0, 'switch ready\none\ntwo\n', ''))
        self.assertEqual(self.lab('logs', '-n', '1')[1], 'spine | switch ready\nleaf0 | switch ready\nleaf1 | two\n')
        p = self.start('logs', '-f', 'leaf1')
        self.assertEqual([p.stdout.readline() for _ in range(3)], ['switch ready\n', 'one\n', 'two\n'])
        with open(os.path.join(self.dir, 'leaf1.log'), 'a') as f:
            f.write('three\n')
        self.assertEqual(p.stdout.readline(), 'three\n')
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.communicate(timeout=60), ('', ''))

    def test_everywhere(self):
        self.lab('up', TREE)
        script = 'echo "rank $INCLINE_RANK"; echo to stderr >&2; [ $INCLINE_RANK != 2 ] || exit 5'
        for argv in ('run', '--'), ('exec', '--all', '--'), ('exec', '--all'):
            rc, out, err = self.lab(*argv, 'sh', '-c', 'LD_PRELOAD=; ' + script)
            self.assertEqual(rc, 5)
            self.assertIn('h2: exit status 5\n', err)
            self.assertEqual(sorted(line for line in out.splitlines() if 'rank' in line),
                             [f'h{i} | rank {i}' for i in range(4)])
            self.assertEqual(sum('| to stderr' in line for line in out.splitlines()), 4)

    def test_everywhere_ends_with_a_signal(self):
        self.lab('up', TREE)
        p = self.start('run', '--', 'sh', '-c', 'LD_PRELOAD=; echo pid $$; exec sleep 600')
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.terminate)
        pids = []
        while len(pids) < 4:
            line = p.stdout.readline()
            self.assertTrue(line)
            if 'pid' in line:
                pids.append(int(line.split()[-1]))
        self.assertIn('h0 10.77.0.10 (busy)', self.lab('graph')[1])
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=60)
        self.assertEqual(p.returncode, 128 + signal.SIGTERM)
        self.assertEqual([pid for pid in pids if process_start(pid)], [])

    def test_a_host_is_busy_though_somebody_asks_as_its_program_begins(self):
        self.lab('up', TREE)
        lab, flock = Lab(self.dir), fcntl.flock
        asker = open(lab.path('h0.lock'), 'a')
        self.addCleanup(asker.close)
        flock(asker, fcntl.LOCK_EX)

        def meets_asker(f, how):
            if not how & fcntl.LOCK_NB:
                asker.close()  # who waits gets it
            flock(f, how)
        self.addCleanup(setattr, fcntl, 'flock', flock)
        fcntl.flock = meets_asker
        held = lab.hold('h0')
        asker.close()
        self.assertTrue(lab.host_in_use('h0'))
        os.close(held)
        self.assertFalse(lab.host_in_use('h0'))

    def test_none_of_ours_is_a_zombie(self):
        """Also what had to be killed, for it did not say that it is ready."""
        lab = Lab(self.dir)
        with open(TREE) as f:
            topo = Topology(json.load(f))
        before = {name: os.environ.get(name) for name in ('INCLINE_BUILD',)}
        os.environ['INCLINE_BUILD'] = self.build
        open(self.slow, 'w').close()
        patience, incline_lab.START_TIMEOUT = incline_lab.START_TIMEOUT, 0.5
        try:
            with self.assertRaisesRegex(LabError, 'is not ready'):
                lab.up(topo)
        finally:
            incline_lab.START_TIMEOUT = patience
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        for process in lab.processes:
            self.assertFalse(os.path.exists(f'/proc/{process.pid}'))


class Pictures(unittest.TestCase):
    def picture(self, name, **states):
        with open(os.path.join(TOP, 'tools/fabrics', name)) as f:
            return graph(topology(json.load(f)), states)

    def test_a_tree(self):
        self.assertEqual(self.picture('tree-2x2.json', h3='busy'), [
            'spine 10.77.255.1',
            '|-- leaf0 10.77.255.2',
            '|   |-- h0 10.77.0.10',
            '|   `-- h1 10.77.0.11',
            '`-- leaf1 10.77.255.3',
            '    |-- h2 10.77.0.12',
            '    `-- h3 10.77.0.13 (busy)'])

    def test_planes(self):
        lines = self.picture('planes-2x2x2.json')
        self.assertEqual([line for line in lines if not line.startswith((' ', '|', '`'))], ['plane 1', 'plane 2'])
        self.assertEqual(sum('-t1-' in line for line in lines), 4)
        self.assertEqual(sum(line.lstrip(' |`-').startswith('h') for line in lines), 8)

    def test_the_list_has_all_files(self):
        folder = os.path.join(TOP, 'tools/fabrics')
        lines = list_fabrics()
        self.assertEqual(len(lines), len([f for f in os.listdir(folder) if f.endswith('.json')]))
        self.assertTrue(any('star4.json' in line and '1 switches, 4 hosts' in line for line in lines))


if __name__ == '__main__':
    unittest.main()
