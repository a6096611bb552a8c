#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Many connections at once, with libincline_stream.so preloaded or without: stream_crowd.py server|client PORT COUNT
ADDRESS... : COUNT to each address. Each sends a block of its own, which comes back, then ends its stream. Prints
"listens", and "server ok" or "client ok". Part of stream_many.py and stream_programs.py."""
import hashlib
import os
import resource
import select
import socket
import sys

role, port, count, addresses = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
PATIENCE = 300  # seconds without an event: hangs only
DESCRIPTORS = 5  # of a connection, with what the library has for it


def block(i):
    return hashlib.shake_128(b'%d' % i).digest(1000 + i * 7919 % 30000)


def family(address):
    return socket.AF_INET6 if ':' in address else socket.AF_INET


class Crowd:
    def __init__(self):
        self.poll = select.epoll()
        self.ends = {}

    def add(self, s, end, what):
        self.ends[s.fileno()] = end
        self.poll.register(s, what)

    def drop(self, s):
        self.poll.unregister(s)
        del self.ends[s.fileno()]
        s.close()

    def run(self):
        while self.ends:
            events = self.poll.poll(PATIENCE)
            assert events, f'{role}: {len(self.ends)} wait for ever: {[vars(e) for e in self.ends.values()][:3]}'
            for fd, what in events:
                if fd in self.ends:
                    self.ends[fd].event(what)


class Caller:
    def __init__(self, crowd, i, address):
        self.crowd, self.i, self.out, self.got = crowd, i, memoryview(block(i)), bytearray()
        self.s = socket.socket(family(address))
        self.s.setblocking(False)
        self.s.connect_ex((address, port))
        crowd.add(self.s, self, select.EPOLLIN | select.EPOLLOUT)

    def event(self, what):
        if what & select.EPOLLERR:
            error = self.s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            raise AssertionError(f'connection {self.i}: {os.strerror(error)}, sent all but {len(self.out)}')
        try:
            if what & select.EPOLLOUT and self.out:
                self.out = self.out[self.s.send(self.out):]
                if not self.out:
                    self.s.shutdown(socket.SHUT_WR)
                    self.crowd.poll.modify(self.s, select.EPOLLIN)
            if what & select.EPOLLIN:
                data = self.s.recv(65536)
                self.got += data
                if not data:
                    assert bytes(self.got) == block(self.i), f'connection {self.i}: {len(self.got)} bytes differ'
                    self.crowd.drop(self.s)
        except BlockingIOError:
            pass


class Listener:
    def __init__(self, crowd, address):
        self.crowd, self.left = crowd, count
        self.s = socket.socket(family(address))
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.s.bind((address, port))
        self.s.listen(count)
        self.s.setblocking(False)
        crowd.add(self.s, self, select.EPOLLIN)

    def event(self, _):
        try:
            Echo(self.crowd, self.s.accept()[0])
        except BlockingIOError:
            return
        self.left -= 1
        if not self.left:
            self.crowd.drop(self.s)


class Echo:
    def __init__(self, crowd, s):
        self.crowd, self.s, self.held, self.ended = crowd, s, bytearray(), False
        s.setblocking(False)
        crowd.add(s, self, select.EPOLLIN)

    def event(self, what):
        try:
            if what & select.EPOLLIN and not self.ended:
                data = self.s.recv(65536)
                self.held += data
                self.ended = not data
            if self.held:
                del self.held[:self.s.send(self.held)]
        except BlockingIOError:
            pass
        if self.ended and not self.held:
            self.crowd.drop(self.s)
        else:
            self.crowd.poll.modify(self.s, (0 if self.ended else select.EPOLLIN) | (select.EPOLLOUT if self.held else 0))


resource.setrlimit(resource.RLIMIT_NOFILE, [max(DESCRIPTORS * count * len(addresses) + 100,
                                                resource.getrlimit(resource.RLIMIT_NOFILE)[0])] * 2)
everybody = Crowd()
if role == 'server':
    for a in addresses:
        Listener(everybody, a)
    print('listens', flush=True)
else:
    for k in range(count):
        for number, a in enumerate(addresses):
            Caller(everybody, k * len(addresses) + number, a)
everybody.run()
print(role, 'ok', flush=True)
