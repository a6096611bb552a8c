# SPDX-License-Identifier: BSD-3-Clause
"""tools/lab web: a fabric live in a browser. Each second that somebody looks, each switch is asked once, whoever many look;
nothing can be changed from there. Drawing is incline_web_page.py, what is drawn incline_web_model.py."""
import concurrent.futures
import datetime
import http.server
import json
import os
import socket
import socketserver
import threading
import time
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from incline_fabric import LabError
from incline_web_model import Source, read_manager, read_switch, view
from incline_web_page import page, part

EVERY = 1.0  # seconds between two reads of a switch, at least
PATIENCE = 0.4  # seconds that a page waits for switches; who is later is shown as silent
ANSWER = 1.0  # seconds that a switch has for a read
IDLE = 30.0  # seconds after which a connection is made anew: the switch closes silent ones after 60
LARGEST = 8 << 20  # bytes of a switch's answers to one read
PLACES = 32  # browsers' connections at a time; others wait
REQUEST = 10  # seconds that one may last
LONGEST_NAME = 64
WEB = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'web')
NONSENSE = ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError


class Client:
    """A connection to a control socket, kept from one read to the next; call() is what the model takes."""

    def __init__(self, path, clock=time.monotonic):
        self.path, self.clock, self.socket, self.last = path, clock, None, 0.0

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def open(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(ANSWER)
        self.socket.connect(self.path)
        self.rest = b''

    def line(self, deadline):
        while b'\n' not in self.rest:
            left = deadline - self.clock()
            if left <= 0:
                raise TimeoutError
            self.socket.settimeout(left)
            more = self.socket.recv(1 << 16)
            self.got += len(more)
            if not more:
                raise ConnectionResetError
            if self.got > LARGEST:
                raise ValueError('more than a switch would say')
            self.rest += more
        line, _, self.rest = self.rest.partition(b'\n')
        return json.loads(line)

    def call(self, questions):
        lines = [json.dumps({'jsonrpc': '2.0', 'id': i, 'method': method, 'params': params}) for i, (method, params) in enumerate(questions)]
        self.socket.settimeout(ANSWER)
        self.socket.sendall(('\n'.join(lines) + '\n').encode())
        answers = []
        for i in range(len(questions)):
            answer = self.line(self.deadline)
            if answer.get('id') != i:
                raise ValueError('answers in another order than questions')
            answers.append(answer.get('result'))
        return answers

    def read(self, reader):
        """One read, by the model's function."""
        now = self.clock()
        self.deadline, self.got = now + ANSWER, 0
        if self.socket and now - self.last > IDLE:
            self.close()
        kept = self.socket is not None
        try:
            try:
                if not kept:
                    self.open()
                return reader(self.call, now)
            except (BrokenPipeError, ConnectionResetError):
                self.close()
                if not kept:
                    raise
                self.open()  # the switch was started anew, or found us silent
                return reader(self.call, now)
        except BaseException:
            self.close()
            raise
        finally:
            self.last = now


def reason(error):
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return 'does not run'
    if isinstance(error, TimeoutError):
        return 'does not answer'
    if isinstance(error, NONSENSE):
        return f'says what makes no sense here ({error})'
    return f'cannot be asked ({getattr(error, "strerror", None) or error})'


class Watch:
    """The last view of a fabric. ask: (switch or None for the manager) -> a read, in a thread of the pool; clock: seconds."""

    def __init__(self, wiring, ask, pool, clock=time.monotonic, states=dict, date=datetime.datetime.now):
        self.wiring, self.ask, self.pool, self.clock, self.states, self.date = wiring, ask, pool, clock, states, date
        self.sources = {name: Source() for name in wiring.sockets}
        self.manager = Source() if wiring.manager else None
        self.pending, self.asked, self.shown = {}, None, None
        self.lock = threading.Lock()

    def everyone(self):
        """(name or None for the manager, its source)"""
        return [*self.sources.items(), *([(None, self.manager)] if self.manager else [])]

    def take(self, source, future, now):
        try:
            source.take(future.result())
        except (OSError, *NONSENSE) as e:
            source.fail(reason(e), now)

    def look(self):
        """At most so old as EVERY; takes at most PATIENCE. One that has not answered yet is not asked again."""
        with self.lock:
            now = self.clock()
            if self.asked is not None and now - self.asked < EVERY:
                return self.shown
            self.asked = now
            for name, source in self.everyone():
                if name in self.pending and self.pending[name].done():  # too late for the view before
                    self.take(source, self.pending.pop(name), now)
                if name not in self.pending:
                    self.pending[name] = self.pool.submit(self.ask, name)
            concurrent.futures.wait(self.pending.values(), timeout=PATIENCE)
            for name, source in self.everyone():
                if self.pending[name].done():
                    self.take(source, self.pending.pop(name), now)
                else:
                    source.fail('does not answer', now)
            self.shown = view(self.wiring, self.sources, self.manager, self.states(), now, self.date().isoformat(' ', 'seconds'))
            return self.shown


def static(name):
    with open(os.path.join(WEB, name), 'rb') as f:
        return f.read()


class Handler(http.server.BaseHTTPRequestHandler):
    """GET and HEAD of five names. No name of a file is made of what a browser says."""
    server_version, sys_version, default_request_version = 'incline-lab', '', 'HTTP/1.0'
    timeout = REQUEST  # of a read

    def setup(self):
        super().setup()
        self.end = threading.Timer(REQUEST, self.cut)  # however slowly it asks
        self.end.daemon = True
        self.end.start()

    def finish(self):
        self.end.cancel()
        super().finish()

    def cut(self):
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended

    def handle(self):
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            pass  # a browser that did not wait, or that reads too slowly

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body, **headers):
        body = body.encode('utf-8', 'replace') if isinstance(body, str) else body
        self.send_response(status)
        for name, value in {'Content-Type': kind, 'Content-Length': str(len(body)), 'Cache-Control': 'no-store',
                            'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer',
                            'Content-Security-Policy': "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
                            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def refuse(self, status, why, **headers):
        self.answer(status, 'text/plain; charset=utf-8', f'{status.value} {status.phrase}: {why}\n', **headers)

    def for_us(self):
        """A page from elsewhere that has its name lead here is not to read what is here."""
        try:
            return urlsplit('//' + self.headers.get('Host', '')).hostname in ('127.0.0.1', 'localhost')
        except ValueError:
            return False

    def group(self, query):
        """The value of ?group=, None if there is no query."""
        fields = parse_qsl(query, keep_blank_values=True, strict_parsing=True, max_num_fields=1) if query else []
        if any(name != 'group' or not 0 < len(value) <= LONGEST_NAME for name, value in fields):
            raise ValueError
        return fields[0][1] if fields else None

    def do_GET(self):
        path, _, query = self.path.partition('?')
        if not self.for_us():
            return self.refuse(HTTPStatus.MISDIRECTED_REQUEST, 'Host must be 127.0.0.1 or localhost')
        try:
            group = self.group(query)
        except ValueError:
            return self.refuse(HTTPStatus.BAD_REQUEST, f'the only parameter is group, 1 to {LONGEST_NAME} characters')
        look = self.server.watch.look
        if path in ('/', '/fabric'):
            return self.answer(HTTPStatus.OK, 'text/html; charset=utf-8', (page if path == '/' else part)(look(), group))
        if path == '/fabric.json':
            return self.answer(HTTPStatus.OK, 'application/json', json.dumps(look()))
        if path in self.server.files:
            return self.answer(HTTPStatus.OK, *self.server.files[path])
        return self.refuse(HTTPStatus.NOT_FOUND, 'there are /, /fabric, /fabric.json')

    do_HEAD = do_GET

    def not_allowed(self):
        self.refuse(HTTPStatus.METHOD_NOT_ALLOWED, 'nothing can be changed here', Allow='GET, HEAD')

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = not_allowed


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, watch, port):
        self.watch, self.places = watch, threading.BoundedSemaphore(PLACES)
        self.files = {'/page.css': ('text/css', static('page.css')), '/page.js': ('text/javascript', static('page.js'))}
        try:
            super().__init__(('127.0.0.1', port), Handler)
        except OSError as e:
            raise LabError(f'127.0.0.1:{port}: {e.strerror} (--port 0 takes any)') from None

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # http.server's own asks for this machine's name, and may wait for that

    def process_request(self, request, client_address):
        self.places.acquire()  # each is given back after REQUEST at the latest
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()


def states_of(lab):
    """Of hosts, as tools/lab status has them; none if the lab is down."""
    def states():
        try:
            return {n['name']: n['state'] for n in lab.status()['nodes'] if n['kind'] == 'host'}
        except (LabError, OSError):
            return {}
    return states


def serve(wiring, port, states=dict, say=print):
    """Until a signal."""
    clients = {name: Client(path) for name, path in wiring.sockets.items() if path}
    if wiring.manager:
        clients[None] = Client(wiring.manager)

    def ask(name):
        if name not in clients:
            raise OSError('its control socket is not a path of this machine')
        return clients[name].read(read_manager if name is None else read_switch)

    with concurrent.futures.ThreadPoolExecutor(len(clients) or 1) as pool, Server(Watch(wiring, ask, pool, states=states), port) as server:
        say(f'http://127.0.0.1:{server.server_address[1]}/ shows {wiring.name} until this program is interrupted', flush=True)
        server.serve_forever()
