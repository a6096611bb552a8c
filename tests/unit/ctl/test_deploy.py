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
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.optionxform = str
        parser.read(UNIT)
        self.service = parser['Service']
        self.readme = read('deploy', 'README.md')

    def test_sockets_are_the_groups_and_seen(self):
        self.assertEqual(self.service['RuntimeDirectory'], 'incline')
        self.assertEqual(self.service['RuntimeDirectoryMode'], '0750')
        self.assertEqual(self.service['UMask'], '0007')
        self.assertNotIn('PrivateTmp', self.service)
        self.assertEqual(self.service['RuntimeDirectoryPreserve'], 'yes')  # shared by all units
        self.assertIn(f"usermod -aG {self.service['Group']} USER", self.readme)
        self.assertIn(f"\ng {self.service['Group']} - -", read('deploy', 'debian', 'incline-switch.sysusers'))

    def test_configurations_have_the_socket_that_the_readme_asks(self):
        asked = re.search(r'inclinectl -s (\S+)', self.readme).group(1)
        folder = '/run/' + self.service['RuntimeDirectory']
        self.assertEqual(os.path.dirname(asked), folder)
        files = [f for f in glob.glob(os.path.join(TOP, 'pmd-configs', '*.json'))
                 if not os.path.basename(f).startswith('rnic-')]
        self.assertGreaterEqual(len(files), 9)
        for path in files:
            with open(path, encoding='utf-8') as f:
                config = json.load(f)
            self.assertEqual(config['control'], asked, path)
            made = [port['socket'] for port in config['ports'] if 'socket' in port]  # by the service, or its neighbour's
            made += [config[key].removeprefix('unix:') for key in ('metrics', 'control_tcp', 'control_tls')
                     if str(config.get(key, '')).startswith(('/', 'unix:'))]
            for socket_path in made:
                self.assertEqual(os.path.dirname(socket_path), folder, path)

    def test_commands(self):
        """The unit runs, checks and reloads the file that the README has one write."""
        file = re.search(r'`(/etc/\S+\.json)`', self.readme).group(1)
        self.assertEqual(self.service['ExecStart'], f'/usr/bin/incline-switch -c {file}')
        self.assertEqual(self.service['ExecStartPre'], f'/usr/bin/incline-switch --check -c {file}')
        reload = [line.split('=', 1)[1] for line in read(UNIT).splitlines() if line.startswith('ExecReload=')]
        self.assertEqual(reload, [f'/usr/bin/incline-switch --check -c {file}', '/bin/kill -HUP $MAINPID'])
        self.assertIn(os.path.dirname(file), self.service['ReadWritePaths'].split())
        self.assertEqual(self.service['Type'], 'notify')

    def test_reload_wants_what_a_start_wants(self):
        """The unit's reload checks the file first: without "control", as the README says, it does not get to SIGHUP."""
        self.assertIn('it needs `"control"` in it', self.readme)
        with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
            json.dump({'ports': [{'name': 'p0', 'type': 'null'}]}, f)
            f.flush()
            done = subprocess.run([SWITCH, '--check', '-c', f.name], capture_output=True, text=True, timeout=LONG)
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn(f'{f.name}: control: is required', done.stderr)

    def test_the_package_says_what_it_starts_with(self):
        words = {1: 'one', 2: 'two', 3: 'three', 4: 'four'}
        ports = json.loads(read('deploy', 'switch.json'))['ports']
        self.assertIn(f'starts with {words[len(ports)]} memif ports', read('deploy', 'debian', 'control'))
        self.assertIn(f'begins with {words[len(ports)]} memif ports', self.readme)

    def test_purge_takes_only_its_own_and_may_come_again(self):
        with tempfile.TemporaryDirectory() as root:
            script = read('deploy', 'debian', 'incline-switch.postrm')
            paths = set(re.findall(r'(?<![\w/])/(?:var|run|etc|usr|home|opt)[\w/.-]*', script))
            self.assertEqual(paths, {'/var/lib/incline', '/run/incline', '/etc/incline'})
            for path in sorted(paths, key=len, reverse=True):
                script = script.replace(path, root + path)
            for path in 'etc/incline/own.json', 'var/lib/incline/book', 'var/lib/other', 'run/incline/s', 'run/other', 'bin/getent':
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), 'w', encoding='utf-8') as f:
                    f.write('#!/bin/sh\n')
            with open(os.path.join(root, 'bin/groupdel'), 'w', encoding='utf-8') as f:
                f.write('#!/bin/sh\nexit 8\n')  # somebody's first group
            for name in 'getent', 'groupdel':
                os.chmod(os.path.join(root, 'bin', name), 0o755)
            env = dict(os.environ, PATH=os.path.join(root, 'bin') + ':' + os.environ['PATH'])

            def left(*words):
                subprocess.run(['sh', '-c', script, 'postrm', *words], env=env, check=True, timeout=LONG)
                return sorted(os.path.relpath(os.path.join(d, n), root) for d, _, names in os.walk(root) for n in names
                              if not d.endswith('/bin'))
            everything = ['etc/incline/own.json', 'run/incline/s', 'run/other', 'var/lib/incline/book', 'var/lib/other']
            for words in (['remove'], ['upgrade', '0.2'], ['failed-upgrade', '0.1'], ['abort-install']):
                self.assertEqual(left(*words), everything)
            for _ in range(2):
                self.assertEqual(left('purge'), ['etc/incline/own.json', 'run/other', 'var/lib/other'])


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

    def start(self, env=None, program=(SWITCH,), **config):
        config = dict({'control': self.control, 'addresses': ['10.77.0.1'],
                       'ports': [{'name': 'p0', 'type': 'null'}]}, **config)
        file = os.path.join(self.tmp.name, 'switch.json')
        with open(file, 'w', encoding='utf-8') as f:
            json.dump(config, f)
        env = dict(os.environ, NOTIFY_SOCKET=self.manager.getsockname(), RUNTIME_DIRECTORY=self.tmp.name, **(env or {}))
        switch = subprocess.Popen([*program, '-c', file], env=env, umask=0o007, stdout=subprocess.PIPE,
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
        said = {self.manager.recv(100)}
        while b'STOPPING=1' not in said:
            said.add(self.manager.recv(100))
        self.assertLessEqual(said, {b'STOPPING=1', b'WATCHDOG=1'})
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

    def test_check_beside_it(self):
        """What ExecStartPre and ExecReload run opens nothing that it has, and leaves nothing."""
        memif = os.path.join(self.tmp.name, 'h0.sock')
        switch = self.start(ports=[{'name': 'h0', 'type': 'memif', 'role': 'server', 'socket': memif}])
        before = sorted(os.listdir(self.tmp.name))
        check = subprocess.run([SWITCH, '--check', '-c', os.path.join(self.tmp.name, 'switch.json')],
                               capture_output=True, text=True, timeout=LONG)
        self.assertEqual((check.returncode, check.stderr), (0, ''))
        self.assertIn('ok, 1 ports', check.stdout)
        self.assertEqual(sorted(os.listdir(self.tmp.name)), before)
        self.assertEqual(self.ping(), 0)
        self.stop(switch)

    def hang_up(self, switch):
        """Says what the switch says, after it has told the service manager of both ends."""
        switch.send_signal(signal.SIGHUP)
        said = switch.stderr.readline()
        self.assertEqual([self.manager.recv(100), self.manager.recv(100)], [b'RELOADING=1', b'READY=1'])
        return said

    def test_hangup_loads_the_tables(self):
        switch = self.start()
        file = os.path.join(self.tmp.name, 'switch.json')
        with open(file, encoding='utf-8') as f:
            config = json.load(f)
        neigh = {'key': {'ip': '10.77.0.10'}, 'action': 'rewrite', 'data': {'port': 'p0', 'mac': '02:00:00:00:00:10'}}
        for tables, addresses, said in (
                ({'neigh': [neigh]}, ['10.77.0.1'], 'tables loaded: 1 added, 0 changed, 0 removed, 0 kept'),
                ({'neigh': [neigh]}, ['10.77.0.2'], 'tables loaded: 0 added, 0 changed, 0 removed, 1 kept; take a restart: addresses'),
                ({'neigh': [dict(neigh, data={'port': 'p9'})]}, ['10.77.0.1'], 'not loaded, nothing has changed: tables.neigh[0].data.')):
            with open(file, 'w', encoding='utf-8') as f:
                json.dump(dict(config, tables=tables, addresses=addresses), f)
            self.assertIn(f'incline-switch: {file}: {said}', self.hang_up(switch))
        out = subprocess.run([os.path.join(APPS, 'inclinectl'), '-s', self.control, '--json', 'table', 'read', 'neigh'],
                             capture_output=True, timeout=LONG, check=True).stdout
        self.assertEqual(json.loads(out)['total'], 1)
        self.stop(switch)

    def test_nohup_stays(self):
        """Who has had the signal ignored keeps it so: a terminal that closes loads nothing."""
        for program, ignored in ((('nohup', SWITCH), 1), ((SWITCH,), 0)):
            switch = self.start(program=program)
            with open(f'/proc/{switch.pid}/status', encoding='ascii') as f:
                mask = int(re.search(r'^SigIgn:\s*(\S+)', f.read(), re.M).group(1), 16)
            self.assertEqual(mask >> (signal.SIGHUP - 1) & 1, ignored, program)
            self.stop(switch)

    def test_watchdog_is_told(self):
        switch = self.start({'WATCHDOG_USEC': '400000'})
        for _ in range(3):
            self.assertEqual(self.manager.recv(100), b'WATCHDOG=1')
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
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as a service manager starts programs, also below nohup
    unittest.main()
