#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""incline-switch with null ports, and inclinectl: the control socket of the real program.
Arguments: the build's apps folder, then unittest's."""
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

APPS = sys.argv.pop(1) if len(sys.argv) > 1 else 'build/apps'
LONG = 60  # seconds; nothing takes that long unless it is broken

CONFIG = {
    '#': 'no cables', 'name': 'leaf1', 'addresses': ['10.0.0.254', 'fd00::fe'],
    'ports': [{'name': 'p0', 'type': 'null'}, {'name': 'p1', 'type': 'null'}],
    'arena_kb': 1024, 'drain_ms': 100,
    'tables': {'neigh': [
        {'key': {'ip': '10.0.0.1'}, 'action': 'rewrite', 'data': {'port': 'p0', 'mac': '02:00:00:00:00:01'}},
        {'key': {'ip': '10.0.0.2'}, 'action': 'rewrite', 'data': {'port': 'p1', 'mac': '02:00:00:00:00:02'}}]},
}
GROUP = {
    'name': 'job-7', 'mode': 'II', 'kind': 'single', 'primitive': 'allreduce', 'mtu': 1024, 'M': 4, 'W': 8, 'ranks': 2,
    'endpoints': [
        {'#': 'rank 0', 'ip': '10.0.0.1', 'qpn': 17, 'port': 'p0', 'local_ip': '10.0.0.254', 'ranks': [0]},
        {'ip': '10.0.0.2', 'port': 'p1', 'ranks': [1]}],
}


class Programs(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix='incline-')
        self.dir = self.tmp.name
        self.file = os.path.join(self.dir, 'switch.json')
        self.socket = os.path.join(self.dir, 's')
        with open(self.file, 'w') as f:
            json.dump(dict(CONFIG, control=self.socket), f)
        self.start()

    def tearDown(self):
        self.stop()
        self.tmp.cleanup()

    def start(self):
        self.switch = subprocess.Popen([os.path.join(APPS, 'incline-switch'), '-c', self.file],
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + LONG
        while self.ctl('ping')[0]:
            if self.switch.poll() is not None or time.monotonic() > deadline:
                self.fail('no switch: ' + self.switch.communicate()[0])
            time.sleep(0.05)

    def stop(self):
        self.switch.send_signal(signal.SIGTERM)
        out = self.switch.communicate(timeout=LONG)[0]
        self.assertEqual(self.switch.returncode, 0, out)
        self.assertFalse(os.path.exists(self.socket))

    def ctl(self, *words, stdin=None):
        """exit status, stdout, stderr"""
        p = subprocess.run([os.path.join(APPS, 'inclinectl'), '-s', self.socket, *words], input=stdin,
                           capture_output=True, text=True, timeout=LONG)
        return p.returncode, p.stdout, p.stderr

    def ok(self, *words, **kwargs):
        rc, out, err = self.ctl(*words, **kwargs)
        self.assertEqual((rc, err), (0, ''))
        return out

    def json(self, *words):
        return json.loads(self.ok('-j', *words))

    def dial(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(LONG)
        s.connect(self.socket)
        return s

    def test_tables_survive_a_restart(self):
        self.ok('table', 'insert', 'route4', 'dst=10.9.0.0/16', 'via', 'nexthop=10.0.0.1')
        self.assertEqual(self.ctl('table', 'insert', 'route4', 'dst=10.9.0.1/16', 'blackhole'), (
            1, '', 'error: table insert: updates[0].key.dst: 10.9.0.1/16 has host bits set, '
                   'the network is 10.9.0.0/16\n'))
        before = self.json('config', 'get')
        self.assertEqual(before['config']['tables']['route4'],
                         [{'key': {'dst': '10.9.0.0/16'}, 'action': 'via', 'data': {'nexthop': '10.0.0.1'}}])
        self.assertNotIn('local_addr', before['config']['tables'])
        self.assertEqual(self.json('config', 'save')['file'], os.path.realpath(self.file))
        self.stop()
        self.start()
        self.assertEqual(self.json('config', 'get'), before)

    def test_routes_to_nobody(self):
        """A route may come before its next hop, but who writes it is told; and who deletes a neighbour."""
        said = {'routes_without_neighbour': 1}
        via = ['table', 'insert', 'route4', 'dst=10.9.0.0/16', 'via']
        self.assertEqual(self.json(*via, 'nexthop=10.0.0.9'), {'applied': 1} | said)
        neigh = ['table', 'insert', 'neigh', 'ip=10.0.0.9', 'rewrite', 'mac=02:00:00:00:00:09', 'port=p0']
        self.assertEqual(self.json(*neigh), {'applied': 1})
        self.assertEqual(self.json('table', 'delete', 'neigh', 'ip=10.0.0.9'), {'applied': 1} | said)
        self.assertIn('routes_without_neighbour  1', self.ok('table', 'insert', 'route4', 'dst=10.8.0.0/16', 'blackhole'))

    def test_half_a_batch(self):
        updates = [{'op': 'insert', 'table': 'route4', 'key': {'dst': f'10.{i}.0.0/16'}, 'action': 'blackhole'}
                   for i in range(100)]
        updates[57]['key']['dst'] = '10.57.0.0/99'
        rc, out, err = self.ctl('table', 'write', '-', stdin=json.dumps(updates))
        self.assertEqual((rc, out), (1, ''))
        self.assertIn('updates[57].key.dst: prefix length 99 > 32', err)
        self.assertEqual(self.json('table', 'read', 'route4')['total'], 0)
        del updates[57]
        self.ok('table', 'write', '-', stdin=json.dumps(updates))
        self.assertEqual(self.json('table', 'read', 'route4')['total'], 99)

    def test_group(self):
        made = json.loads(self.ok('-j', 'group', 'create', '-', stdin=json.dumps(GROUP)))
        self.assertEqual(made['state'], 'installed')
        self.assertEqual([e['ip'] for e in made['endpoints']], ['10.0.0.254'] * 2)
        self.assertEqual([e['remote_mac'] for e in made['endpoints']], ['02:00:00:00:00:01', '02:00:00:00:00:02'])
        self.assertEqual(self.ctl('group', 'create', '-', stdin=json.dumps(GROUP))[0], 1)
        self.assertEqual(self.ctl('group', 'activate', 'job-7')[0], 1)
        self.ok('group', 'activate', 'job-7', '1=23')
        shown = self.json('group', 'show', 'job-7')
        self.assertEqual([e['remote_qpn'] for e in shown['endpoints']], [17, 23])
        self.assertEqual(shown['state'], 'active')
        self.assertEqual(self.json('group', 'delete', 'job-7')['state'], 'draining')
        deadline = time.monotonic() + LONG
        while self.json('groups')['groups']:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_everything_that_shows(self):
        for words in ((), ('version',), ('ports',), ('pipeline',), ('tables',), ('stats',), ('nodes',), ('drops',),
                      ('groups',), ('config', 'get'), ('trace', 'start', 'p0', '--count', '3'), ('trace', 'read'),
                      ('table', 'read', 'local_addr'), ('status',)):
            self.assertTrue(self.ok(*words), words)
            self.json(*words)

    def turns(self):
        return {v['name']: v['value'] for v in self.json('stats', 'values')['values']}['turns']

    def test_abuse(self):
        """Nobody else notices, and the packet loop goes on turning."""
        before = self.turns()
        crowd = [self.dial() for _ in range(40)]
        for s in crowd[:10]:
            s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"table.write","params":{"upd')
        stalled = self.dial()
        stalled.setblocking(False)
        try:
            while True:
                stalled.send(b'{"jsonrpc":"2.0","id":1,"method":"schema.get"}\n' * 100)
        except BlockingIOError:
            pass
        long = self.dial()
        try:
            long.sendall(b'x' * (10 << 20))
        except (BrokenPipeError, ConnectionResetError):
            pass
        noise = self.dial()
        noise.sendall(os.urandom(4096).replace(b'\n', b' ') + b'\n')
        self.assertEqual(json.loads(noise.makefile().readline())['error']['code'], -32700)
        self.assertEqual(self.json('table', 'read', 'route4')['total'], 0)
        deadline = time.monotonic() + LONG
        while self.turns() <= before:
            self.assertLess(time.monotonic(), deadline)
        for s in [*crowd, stalled, long, noise]:
            s.close()
        self.ok('ping')

    def test_exit_status_and_files(self):
        self.assertEqual(self.ctl('nonsense')[0], 2)
        self.assertEqual(self.ctl('-x')[0], 2)
        self.assertEqual(self.ctl('-t', '0', 'ping')[0], 2)
        self.assertEqual(self.ctl('group', 'show', 'nobody')[0], 1)
        self.assertEqual(self.ctl('-s', '/nonexistent', 'ping')[0], 1)
        self.assertEqual(self.ctl('--help')[0], 0)
        rc, out, err = self.ctl('-f', '-', stdin='# two\nping\nnonsense\nping\n')
        self.assertEqual((rc, out), (2, 'ok\n'))
        self.assertEqual(err, 'error: -:3: nonsense: is not a command, see "help"\n')
        self.assertEqual(self.ctl('-k', '-f', '-', stdin='nonsense\nping\n')[1], 'ok\n')

    def test_environment(self):
        env = dict(os.environ, INCLINE_SOCKET=self.socket)
        out = subprocess.run([os.path.join(APPS, 'inclinectl'), '-j', 'version'], env=env, capture_output=True,
                             check=True, timeout=LONG).stdout
        self.assertEqual(json.loads(out)['name'], 'leaf1')

    def test_terminal(self):
        pid, fd = pty.fork()
        if pid == 0:
            os.environ['HOME'] = self.dir
            os.environ['TERM'] = 'vt100'
            os.environ['ASAN_OPTIONS'] = 'detect_leaks=0'  # libedit keeps the names of added functions
            os.execv(os.path.join(APPS, 'inclinectl'), ['inclinectl', '-s', self.socket, '-i'])
        seen = ''

        def expect(text):
            nonlocal seen
            deadline = time.monotonic() + LONG
            while text not in seen:
                self.assertTrue(select.select([fd], [], [], deadline - time.monotonic())[0], seen)
                seen += os.read(fd, 4096).decode(errors='replace')
            seen = seen.split(text, 1)[1]

        expect('incline> ')
        os.write(fd, b'table read nei\t\n')
        expect('ip=10.0.0.1')
        expect('incline> ')
        os.write(fd, b'group show \t\t')
        expect('--slots')
        os.write(fd, b'\x15quit\n')
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        os.close(fd)
        with open(os.path.join(self.dir, '.inclinectl_history')) as f:
            self.assertIn('table', f.read())


class Words(unittest.TestCase):
    """What every program says of itself, and of a wrong word."""
    def run_app(self, name, *argv):
        p = subprocess.run([os.path.join(APPS, name), *argv], capture_output=True, text=True, timeout=LONG)
        return p.returncode, p.stdout, p.stderr

    def test_versions(self):
        names = [n for n in sorted(os.listdir(APPS)) if n.startswith('incline') and '.' not in n]
        self.assertIn('incline-sim', names)
        for name in names:
            rc, out, err = self.run_app(name, '--version')
            self.assertEqual((rc, err), (0, ''), name)
            self.assertRegex(out, f'^{name} [0-9.]+\n$')

    def test_values_of_options(self):
        for argv, said in ((['-d', 'floaty'], '--datatype: "floaty" is not valid: float, half, '),
                           (['--collective', 'alltoall'], '--collective: "alltoall" is not valid: allreduce, '),
                           (['--rank=x'], '--rank: "x" is not valid: 0 to 1048576'),
                           (['--rank=1048577'], '--rank: "1048577" is not valid: 0 to 1048576'),
                           (['--timeout', '0'], '--timeout: "0" is not valid: 1 to 3600000 ms'),
                           (['-f', '1'], '--stepfactor: "1" is not valid: a number above 1'),
                           (['--op', 'avg'], '--op: "avg" is not valid: sum, min, max, prod or all'),
                           (['4K'], '"4K": there are only options; see --help')):
            rc, _, err = self.run_app('incline-perf', *argv)
            self.assertEqual(rc, 2)
            self.assertTrue(err.startswith('incline-perf: ' + said), err)


if __name__ == '__main__':
    unittest.main(verbosity=2)
