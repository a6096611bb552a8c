#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What programs do with sockets, one thing after another; run with libincline_stream.so preloaded, or without, it must come
to the same: stream_echo.py server|client ADDRESS PORT. Prints "listens", "client ok" or "server ok". Part of
stream_programs.py."""
import errno
import fcntl
import hashlib
import os
import select
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

SIZE = 600000
role, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ':' in address else socket.AF_INET


def block(seed):
    return b''.join(hashlib.sha256(b'%d %d' % (seed, i)).digest() for i in range(SIZE // 32 + 1))[:SIZE]


def exactly(s, n):
    data = bytearray()
    while len(data) < n:
        part = s.recv(n - len(data))
        assert part, f'end after {len(data)} of {n}'
        data += part
    return bytes(data)


def nonblocking_exchange(s, seed_out, seed_in, edge):
    """Both ways at once by epoll; a kernel's pipe is in the same set. Ends with a half-close."""
    out, got, end = block(seed_out), bytearray(), False
    r, w = os.pipe()
    os.write(w, b'x')
    s.setblocking(False)
    ep = select.epoll()
    flag = select.EPOLLET if edge else 0
    ep.register(s, select.EPOLLIN | select.EPOLLOUT | flag)
    ep.register(r, select.EPOLLIN)
    at, seen_pipe = 0, False
    while at < len(out) or not end:
        for fd, what in ep.poll(20) or [(-1, 0)]:
            assert fd != -1, f'no event: sent {at}, received {len(got)}'
            if fd == r:
                seen_pipe = os.read(r, 10) == b'x'
                continue
            while what & (select.EPOLLIN | select.EPOLLHUP):
                try:
                    part = s.recv(100000)
                except BlockingIOError:
                    break
                got += part
                end = end or not part
                if not edge or not part:
                    break
            while what & select.EPOLLOUT and at < len(out):
                try:
                    at += s.send(out[at:at + 70000])
                except BlockingIOError:
                    break
                if at == len(out):
                    s.shutdown(socket.SHUT_WR)
                    if not edge:
                        ep.modify(s, select.EPOLLIN)
                if not edge:
                    break
    assert seen_pipe
    assert bytes(got) == block(seed_in), f'{len(got)} bytes differ'
    ep.close()
    os.close(r)
    os.close(w)


def names(s):
    assert s.getsockname()[0] and s.getpeername()[0]
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM


def small_calls(s):
    """Ping-pong by every call, of two descriptors of one socket."""
    other = os.dup(s.fileno())
    for i in range(20):
        text = b'%06d' % i
        (lambda: s.sendmsg([text[:2], text[2:]]), lambda: os.write(other, text), lambda: s.send(text),
         lambda: os.writev(other, [text[:3], b'', text[3:]]))[i % 4]()
        assert exactly(s, 6) == b'%06d' % (i + 1)
    os.close(other)


def small_calls_back(s):
    other = os.dup(s.fileno())
    for i in range(20):
        p = select.poll()
        p.register(s, select.POLLIN)
        assert p.poll(20000) == [(s.fileno(), select.POLLIN)]
        n = struct.unpack('i', fcntl.ioctl(s, termios.FIONREAD, b'0000'))[0]
        assert 0 < n <= 6, n
        assert s.recv(1, socket.MSG_PEEK) == b'0'
        if i % 2:
            assert s.recv(6, socket.MSG_WAITALL) == b'%06d' % i
        else:
            got = bytearray(4), bytearray(2)
            n = os.readv(other, got)
            assert b''.join(got)[:n] + exactly(s, 6 - n) == b'%06d' % i
        os.write(other, b'%06d' % (i + 1))
    os.close(other)


def refused():
    s = socket.socket(family)
    try:
        s.connect((address, port + 1))
        raise AssertionError('nobody listens there')
    except ConnectionRefusedError:
        pass
    s.close()
    s = socket.socket(family)
    s.setblocking(False)
    assert s.connect_ex((address, port + 1)) == errno.EINPROGRESS
    assert select.select([], [s], [], 20)[1] == [s]
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
    s.close()


def timeouts(s):
    s.setblocking(True)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 0, 50000))
    try:
        s.recv(1)
        raise AssertionError('there is nothing')
    except BlockingIOError:
        pass
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 0, 0))


def kernel_too():
    """Loopback and other families stay the kernel's."""
    a = socket.create_server(('127.0.0.1', 0))
    b = socket.create_connection(a.getsockname())
    c = a.accept()[0]
    b.sendall(b'kernel')
    assert exactly(c, 6) == b'kernel'
    x, y = socket.socketpair()
    x.send(b'u')
    assert y.recv(1) == b'u'


def asleep(thread):
    """Until it sleeps in poll(2), as a call does that waits for bytes: in both libraries, within ten seconds."""
    for _ in range(1000):
        with open(f'/proc/self/task/{thread}/syscall', encoding='ascii') as f:
            if f.read().split()[0] in ('7', '45'):  # poll; recvfrom
                return
        time.sleep(0.01)


def client():
    refused()
    kernel_too()
    s = socket.create_connection((address, port), 20)
    names(s)
    s.settimeout(None)
    timeouts(s)
    small_calls(s)
    pid = os.fork()  # the child has no sockets of the device; what it does is nothing to the parent's
    if pid == 0:
        s.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    subprocess.run(['true'], check=True)  # vfork, in whose child descriptors are closed
    nonblocking_exchange(s, 1, 2, False)
    s.close()
    s = socket.create_connection((address, port), 20)
    nonblocking_exchange(s, 3, 4, True)
    s.close()
    # Several threads, a connection each, and one that is read by another thread than it is written by.
    def one(i):
        t = socket.create_connection((address, port), 20)
        t.settimeout(None)
        data, waited, reader = block(10 + i), threading.Event(), threading.get_native_id()
        def write():
            t.sendall(data[:SIZE // 2])
            waited.wait()
            asleep(reader)
            t.sendall(data[SIZE // 2:])
            t.shutdown(socket.SHUT_WR)
        writer = threading.Thread(target=write)
        writer.start()
        got = exactly(t, SIZE // 2)
        # A wait in vain: its buffer is the program's again, what comes then goes elsewhere.
        mine = bytearray(b'.' * 100000)
        t.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 0, 20000))
        try:
            t.recv_into(mine)
            raise AssertionError('there is nothing')
        except BlockingIOError:
            pass
        t.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 0, 0))
        waited.set()
        got += t.recv(50000, socket.MSG_WAITALL)
        while len(got) < SIZE and i % 2:
            got += t.recv(100000, socket.MSG_PEEK)[:1]
            assert t.recv(1)
            got += t.recv(min(30000, SIZE - len(got)), socket.MSG_WAITALL)
        got += exactly(t, SIZE - len(got))
        ok.append(got == data and t.recv(1) == b'' and mine == b'.' * 100000)
        writer.join()
        t.close()
    ok = []
    threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert ok == [True] * 4, ok
    print('client ok', flush=True)


def server():
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(8)
    assert listener.getsockname()[1] == port
    print('listens', flush=True)
    assert select.select([listener], [], [], 60)[0] == [listener]
    s = listener.accept()[0]
    names(s)
    small_calls_back(s)
    nonblocking_exchange(s, 2, 1, False)
    s.close()
    s = listener.accept()[0]
    nonblocking_exchange(s, 4, 3, True)
    s.close()

    def echo(t):
        while True:
            data = t.recv(50000)
            if not data:
                break
            t.sendall(data)
        t.close()
    threads = [threading.Thread(target=echo, args=(listener.accept()[0],)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print('server ok', flush=True)


client() if role == 'client' else server()
