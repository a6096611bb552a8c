#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""deploy/ and the program agree: the unit's settings, what its README has an operator do, and how
incline-switch behaves as a service. Arguments: the build's apps folder, then unittest's."""
import configparser
import glob
import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

APPS = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 else 'build/apps')
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
UNIT = os.path.join(TOP, 'deploy', 'incline-switch.service')
SWITCH = os.path.join(APPS, 'incline-switch')
LONG = 60  # seconds; nothing takes that long unless it is broken


def read(*path):
    with open(os.path.join(TOP, *path), encoding='utf-8') as f:
        return f.read()


class Unit(unittest.TestCase):
    """What the files say."""

    def setUp(self):
        parser = configparser.ConfigParser(interpolation=None)
        parser.optionxform = str
        parser.read(UNIT)
        self.service = parser['Service']
        self.readme = read('deploy', 'README.md')

    def test_sockets_are_the_groups_and_seen(self):
        self.assertEqual(self.service['RuntimeDirectory'], 'incline')
        self.assertEqual(self.service['RuntimeDirectoryMode'], '0750')
        self.assertEqual(self.service['UMask'], '0007')
        self.assertNotIn('PrivateTmp', self.service)
        self.assertIn('groupadd --system --force ' + self.service['Group'], self.readme)

    def test_configurations_have_the_socket_that_the_readme_asks(self):
        asked = re.search(r'inclinectl -s (\S+)', self.readme).group(1)
        self.assertTrue(asked.startswith('/run/' + self.service['RuntimeDirectory'] + '/'))
        files = [f for f in glob.glob(os.path.join(TOP, 'pmd-configs', '*.json'))
                 if not os.path.basename(f).startswith('rnic-')]
        self.assertGreaterEqual(len(files), 9)
        for path in files:
            with open(path, encoding='utf-8') as f:
                self.assertEqual(json.load(f)['control'], asked, path)

    def test_commands(self):
        """The unit runs and checks the file that the README has one write; no signal reloads."""
        file = re.search(r'to `(/\S+\.json)`', self.readme).group(1)
        self.assertEqual(self.service['ExecStart'], f'/usr/bin/incline-switch -c {file}')
        self.assertEqual(self.service['ExecStartPre'], f'/usr/bin/incline-switch --check -c {file}')
        self.assertNotIn('ExecReload', self.service)
        self.assertIn(os.path.dirname(file), self.service['ReadWritePaths'].split())
        self.assertEqual(self.service['Type'], 'notify')

    @unittest.skipUnless(shutil.which('systemd-analyze'), 'no systemd-analyze')
    def test_systemd_takes_it(self):
        with tempfile.TemporaryDirectory(prefix='incline-') as d:
            path = os.path.join(d, 'incline-switch.service')
            with open(path, 'w', encoding='utf-8') as f:
                f.write(read('deploy', 'incline-switch.service').replace('/usr/bin/incline-switch', SWITCH))
            run = subprocess.run(['systemd-analyze', 'verify', path], capture_output=True, text=True, timeout=LONG)
        self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ''))


class Service(unittest.TestCase):
    """What the program does under such a unit."""

    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix='incline-')
        self.addCleanup(self.tmp.cleanup)
        self.control = os.path.join(self.tmp.name, 's')
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.bind(os.path.join(self.tmp.name, 'notify'))
        self.manager.settimeout(LONG)

    def start(self, **config):
        config = dict({'control': self.control, 'addresses': ['10.77.0.1'],
                       'ports': [{'name': 'p0', 'type': 'null'}]}, **config)
        file = os.path.join(self.tmp.name, 'switch.json')
        with open(file, 'w', encoding='utf-8') as f:
            json.dump(config, f)
        env = dict(os.environ, NOTIFY_SOCKET=self.manager.getsockname(), RUNTIME_DIRECTORY=self.tmp.name)
        switch = subprocess.Popen([SWITCH, '-c', file], env=env, umask=0o007, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (switch.kill(), switch.communicate()))
        deadline = time.monotonic() + LONG
        while not select.select([self.manager], [], [], 0.1)[0]:
            self.assertIsNone(switch.poll(), 'no switch')
            self.assertLess(time.monotonic(), deadline, 'it does not say that it is ready')
        self.assertEqual(self.manager.recv(100), b'READY=1')
        return switch

    def ping(self):
        return subprocess.run([os.path.join(APPS, 'inclinectl'), '-s', self.control, 'ping'], capture_output=True,
                              timeout=LONG).returncode

    def stop(self, switch):
        switch.send_signal(signal.SIGTERM)
        out = switch.communicate(timeout=LONG)
        self.assertEqual(self.manager.recv(100), b'STOPPING=1')
        self.assertEqual(switch.returncode, 0)
        self.assertFalse(os.path.exists(self.control))
        return out[1]

    def test_ready_means_that_the_group_can_use_it(self):
        memif = os.path.join(self.tmp.name, 'h0.sock')
        switch = self.start(ports=[{'name': 'h0', 'type': 'memif', 'role': 'server', 'socket': memif}])
        self.assertEqual(self.ping(), 0)
        self.assertEqual(stat.S_IMODE(os.stat(self.control).st_mode), 0o660)
        self.assertEqual(stat.S_IMODE(os.stat(memif).st_mode) & 0o027, 0o020)
        self.stop(switch)

    def test_hangup_is_survived_and_said(self):
        switch = self.start()
        switch.send_signal(signal.SIGHUP)
        self.assertIn('SIGHUP ignored', switch.stderr.readline())
        self.assertEqual(self.ping(), 0)
        self.stop(switch)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, 'a single CPU')
    def test_nothing_but_the_worker_has_its_cpu(self):
        control, worker = sorted(os.sched_getaffinity(0))[:2]
        switch = self.start(lcores=f'0@{control},1@{worker}')
        cpus = {int(t): os.sched_getaffinity(int(t)) for t in os.listdir(f'/proc/{switch.pid}/task')}
        self.assertEqual(cpus[switch.pid], {control})
        there = [t for t, where in cpus.items() if worker in where]
        self.assertEqual([cpus[t] for t in there], [{worker}], cpus)
        self.stop(switch)


if __name__ == '__main__':
    unittest.main()
