#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/lab web's server: how often switches are asked, on a clock of the test's; one that is stuck; what a browser may ask."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
from web_fakes import TOP, switches, tree_group, wiring  # noqa: E402
import incline_web  # noqa: E402
from incline_web import PLACES, Client, Server, Watch, reason  # noqa: E402
from incline_web_model import MOST_CALLS, read_switch  # noqa: E402


class AtOnce:
    """A pool whose work is done when it is given, but for that of those who are stuck."""

    def __init__(self):
        self.stuck, self.held = set(), []

    def submit(self, ask, name):
        future = concurrent.futures.Future()
        if name in self.stuck:
            self.held.append((future, ask, name))
        else:
            self.do(future, ask, name)
        return future

    def do(self, future, ask, name):
        try:
            future.set_result(ask(name))
        except Exception as e:
            future.set_exception(e)

    def go_on(self):
        self.stuck.clear()
        for held in self.held:
            self.do(*held)
        self.held.clear()


class Base(unittest.TestCase):
    def setUp(self):
        self.fakes, self.pool, self.now, self.errors = switches(), AtOnce(), 0.0, {}
        self.watch = Watch(wiring(), self.ask, self.pool, clock=lambda: self.now, states=lambda: {'h1': 'idle'})
        self.addCleanup(setattr, incline_web, 'PATIENCE', incline_web.PATIENCE)
        incline_web.PATIENCE = 0

    def ask(self, name):
        if name in self.errors:
            raise self.errors[name]
        return read_switch(self.fakes[name].call, self.now)

    def states(self):
        return {n['name']: n['state'] for n in self.watch.look()['nodes'] if n['kind'] == 'switch'}

    def error(self, name):
        return next(n for n in self.watch.look()['nodes'] if n['name'] == name)['error']


class Cache(Base):
    def test_calls_do_not_grow_with_browsers(self):
        """Five that ask ten times a second, for a hundred seconds, and more groups than are looked into: a switch answers one read a second."""
        for i in range(20):
            tree_group(self.fakes, f'g{i}')
        for tenth in range(1000):
            self.now = tenth / 10
            for _ in range(5):
                self.watch.look()
        for fake in self.fakes.values():
            self.assertEqual(fake.calls, 100 * MOST_CALLS)
        self.assertLessEqual(MOST_CALLS, 23)  # docs/lab.md says what they cost

    def test_nobody_looks(self):
        self.watch.look()
        calls = self.fakes['spine'].calls
        self.now = 86400
        self.assertEqual(self.fakes['spine'].calls, calls)

    def test_a_stuck_switch(self):
        """The others are shown; it is not asked again while a read lasts."""
        self.pool.stuck.add('leaf0')
        for second in range(5):
            self.now = second
            self.assertEqual(self.states(), {'spine': 'up', 'leaf0': 'silent', 'leaf1': 'up'})
        self.assertEqual(len(self.pool.held), 1)
        self.assertEqual(self.error('leaf0'), 'does not answer')
        self.pool.go_on()
        self.now = 5
        self.assertEqual(self.states()['leaf0'], 'up')

    def test_a_switch_that_is_stuck_for_long(self):
        """Each read ends without an answer: the next is begun by the look after that, not sooner than a second after."""
        self.pool.stuck.add('leaf0')
        self.errors['leaf0'] = TimeoutError()
        asked = 0
        for tenth in range(100):
            self.now = tenth / 10
            asked += not self.pool.held
            self.assertEqual(self.states()['leaf0'], 'silent')
            if tenth % 10 == 9:
                for held in self.pool.held:
                    self.pool.do(*held)
                self.pool.held.clear()
        self.assertEqual(asked, 10)

    def test_reasons(self):
        for error, said in ((FileNotFoundError(), 'does not run'), (ConnectionRefusedError(), 'does not run'), (TimeoutError(), 'does not answer'),
                            (ValueError('x'), 'says what makes no sense here (x)'), (PermissionError(13, 'Permission denied'),
                                                                                     'cannot be asked (Permission denied)')):
            self.errors['leaf1'] = error
            self.now += 1
            self.assertEqual(self.error('leaf1'), said)
        self.errors.clear()
        self.now += 1
        self.assertEqual(self.states()['leaf1'], 'up')


LONG = 600.0  # seconds: for what hangs


class Socket(unittest.TestCase):
    """A client and a control socket that is served by the test, however long that takes."""

    def setUp(self):
        self.addCleanup(setattr, incline_web, 'ANSWER', incline_web.ANSWER)
        incline_web.ANSWER = LONG
        tmp = tempfile.TemporaryDirectory(prefix='iw-')
        self.addCleanup(tmp.cleanup)
        self.path = os.path.join(tmp.name, 's.ctl')
        self.fake = switches()['spine']
        self.client = Client(self.path)
        self.addCleanup(self.client.close)

    def serve(self, *lives):
        """Each life is a function of a connection's file, called for the next one."""
        listener = socket.socket(socket.AF_UNIX)
        if os.path.exists(self.path):
            os.remove(self.path)
        listener.bind(self.path)
        listener.listen()

        def run():
            for life in lives:
                connection, _ = listener.accept()
                with contextlib.suppress(OSError), connection, connection.makefile('rwb') as f:
                    life(f)
            listener.close()
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)

    def answers(self, f, reads=1):
        """So many reads of a switch without groups, and the connection's end."""
        for _ in range(reads * 7):
            q = json.loads(f.readline())
            f.write(json.dumps({'jsonrpc': '2.0', 'id': q['id'], 'result': self.fake.answer(q['method'], q['params'])}).encode() + b'\n')
            f.flush()

    def read(self):
        return self.client.read(read_switch)

    def test_one_connection_for_many_reads(self):
        self.serve(lambda f: self.answers(f, 3))
        for _ in range(3):
            self.assertEqual(self.read()['status']['name'], 'spine')

    def test_switch_started_anew(self):
        self.serve(self.answers, self.answers)
        self.read()
        self.assertEqual(self.read()['status']['name'], 'spine')

    def test_not_there(self):
        with self.assertRaises(OSError) as e:
            self.read()
        self.assertEqual(reason(e.exception), 'does not run')

    def test_stuck(self):
        over = threading.Event()
        incline_web.ANSWER = 0.05
        self.serve(lambda f: over.wait(LONG))
        with self.assertRaises(TimeoutError):
            self.read()
        over.set()
        self.assertIsNone(self.client.socket)

    def test_nonsense(self):
        for line in '[]', '{"id": 1}', 'nothing', '[' * 100000, '{"id": 0, "result": ' + '9' * 5000 + '}':
            self.serve(lambda f: (f.write(line.encode() + b'\n'), f.flush(), f.read()))
            with self.assertRaises(incline_web.NONSENSE, msg=line[:20]) as e:
                self.read()
            self.assertIn('makes no sense', reason(e.exception))

    def test_endless(self):
        self.addCleanup(setattr, incline_web, 'LARGEST', incline_web.LARGEST)
        incline_web.LARGEST = 1 << 18
        self.serve(lambda f: [f.write(b'x' * 65536) for _ in range(1000)])
        with self.assertRaisesRegex(ValueError, 'more than a switch would say'):
            self.read()


class Program(unittest.TestCase):
    def web(self, *args):
        env = dict(os.environ, INCLINE_LAB='/nowhere')
        done = subprocess.run([os.path.join(TOP, 'tools/lab'), 'web', *args], env=env, capture_output=True, text=True, timeout=LONG)
        self.assertEqual(done.stdout, '')
        self.assertNotIn('Traceback', done.stderr)
        return done.returncode, done.stderr.strip().split('\n')[-1]

    def test_refused(self):
        self.assertEqual(self.web(), (1, 'error: lab: no fabric is up (tools/lab up FILE)'))
        for port in '65536', '-1', 'x', '8470.0':
            self.assertEqual(self.web('--port', port), (2, f'lab web: error: argument --port: {port}, must be 0..65535'))
        with tempfile.TemporaryDirectory(prefix='iw-') as d:
            path = os.path.join(d, 'm.json')
            for text, said in (('{', 'Expecting property name'), ('{"switches": [], "links": []}', "no configuration of incline-manager: 'hosts' is missing"),
                               ('{"switches": [], "links": [], "hosts": []}', 'switches: has none'), ('[]', 'no configuration of incline-manager: ')):
                with open(path, 'w') as f:
                    f.write(text)
                status, last = self.web('--manager', path)
                self.assertEqual(status, 1)
                self.assertIn(f'error: lab: {path}: {said}', last)
            with socket.create_server(('127.0.0.1', 0)) as s, open(path, 'w') as f:
                json.dump({'switches': [{'name': 's', 'control': '/s', 'ip': '10.0.0.1'}], 'links': [], 'hosts': []}, f)
                f.flush()
                port = s.getsockname()[1]
                self.assertEqual(self.web('--port', str(port), '--manager', path),
                                 (1, f'error: lab: 127.0.0.1:{port}: Address already in use (--port 0 takes any)'))


class Http(Base):
    def setUp(self):
        super().setUp()
        for where, name in (incline_web, 'REQUEST'), (incline_web.Handler, 'timeout'):
            self.addCleanup(setattr, where, name, getattr(where, name))
            setattr(where, name, LONG)
        tree_group(self.fakes)
        self.server = Server(self.watch, 0)
        self.port = self.server.server_address[1]
        thread = threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.01})
        thread.start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)

    def ask_for(self, path, method='GET', host=None):
        """(status, headers, body)"""
        c = http.client.HTTPConnection('127.0.0.1', self.port, timeout=LONG)
        try:
            c.putrequest(method, path, skip_host=host is not None, skip_accept_encoding=True)
            if host:
                c.putheader('Host', host)
            c.endheaders()
            r = c.getresponse()
            return r.status, r.headers, r.read().decode()
        finally:
            c.close()

    def raw(self, request):
        with socket.create_connection(('127.0.0.1', self.port), timeout=LONG) as s:
            s.sendall(request)
            s.shutdown(socket.SHUT_WR)
            said = b''
            while more := s.recv(65536):
                said += more
        return said

    def test_names(self):
        for path, kind, words in (('/', 'text/html', 'train'), ('/fabric', 'text/html', 'train'), ('/fabric.json', 'application/json', '"train"'),
                                  ('/page.css', 'text/css', '.link'), ('/page.js', 'text/javascript', 'fetch('),
                                  ('/?group=train', 'text/html', 'Tree of train only'), ('/?group=%3Cb%3E', 'text/html', '&lt;b&gt;')):
            status, headers, body = self.ask_for(path)
            self.assertEqual(status, 200, path)
            self.assertIn(kind, headers['Content-Type'])
            self.assertIn(words, body)
            self.assertIn("default-src 'none'", headers['Content-Security-Policy'])
            self.assertEqual(headers['X-Content-Type-Options'], 'nosniff')
        self.assertEqual(json.loads(self.ask_for('/fabric.json')[2])['name'], 'tree')
        status, headers, body = self.ask_for('/', 'HEAD')
        self.assertEqual((status, body), (200, ''))
        self.assertGreater(int(headers['Content-Length']), 1000)

    def test_no_other_file(self):
        with open(os.path.join(TOP, 'tools/lab')) as f:
            line = f.readlines()[2]
        for path in ('/lab', '/../lab', '/page.css/../../lab', '/%2e%2e/lab', '/..%2flab', '//etc/passwd', '/web/page.css', 'page.css',
                     '/page.css%00', 'http://127.0.0.1/../lab', '/./page.js', '/page.js/'):
            status, _, body = self.ask_for(path)
            self.assertEqual(status, 404, path)
            self.assertNotIn(line, body)

    def test_refused(self):
        for path in '/?', '/?x=1', '/?group=', '/?group=a&group=b', '/?group', '/?group=' + 'x' * 65, '/fabric?=':
            self.assertEqual(self.ask_for(path)[0], 400 if path != '/?' else 200, path)
        for method in 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS':
            status, headers, _ = self.ask_for('/', method)
            self.assertEqual((status, headers['Allow']), (405, 'GET, HEAD'), method)
        self.assertEqual(self.ask_for('/', 'BREW')[0], 501)
        self.assertIn(b' 414 ', self.raw(b'GET /' + b'x' * 65532).split(b'\n')[0])
        self.assertIn(b' 400 ', self.raw(b'nonsense more of it\r\n\r\n').split(b'\n')[0])
        self.assertIn(b' 431 ', self.raw(b'GET / HTTP/1.0\r\n' + b'a: b\r\n' * 200 + b'\r\n').split(b'\n')[0])

    def test_a_name_from_elsewhere(self):
        """A page that had its name changed to 127.0.0.1 is not answered."""
        for host in 'evil.example', 'evil.example:80', '127.0.0.1.evil.example', '[::1', '@127.0.0.1.evil', '':
            self.assertEqual(self.ask_for('/fabric.json', host=host)[0], 421, host)
        for host in 'localhost', f'127.0.0.1:{self.port}', 'LOCALHOST:1':
            self.assertEqual(self.ask_for('/fabric.json', host=host)[0], 200, host)
        self.assertIn(b' 421 ', self.raw(b'GET / HTTP/1.0\r\n\r\n').split(b'\n')[0])

    def test_too_many_at_a_time(self):
        """The next one waits until one of them has gone."""
        held = [socket.create_connection(('127.0.0.1', self.port), timeout=LONG) for _ in range(PLACES)]
        while self.server.places.acquire(blocking=False):  # until all have come in
            self.server.places.release()
        with socket.create_connection(('127.0.0.1', self.port), timeout=LONG) as s:
            s.sendall(b'GET / HTTP/1.0\r\nHost: localhost\r\n\r\n')
            held.pop().close()
            self.assertIn(b' 200 ', s.recv(1000))
        for s in held:
            s.close()

    def test_half_a_request_ends(self):
        incline_web.REQUEST = 0.05
        with socket.create_connection(('127.0.0.1', self.port), timeout=LONG) as s, contextlib.suppress(ConnectionError):
            s.sendall(b'GET / HT')  # or it has ended before
            self.assertEqual(s.recv(100), b'')


if __name__ == '__main__':
    unittest.main()
