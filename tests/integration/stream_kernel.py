#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lib/stream beside the Linux kernel's TCP, over a veth between two network namespaces: both directions at once, either
side connecting, under loss, repetition and overtaking, with each MTU; half-close, reset, windows that close. Run by meson test, or by hand:
tests/integration/stream_kernel.py [TEST...]."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from fabric_case import build_dir, run_tests  # noqa: E402
import incline_netns  # noqa: E402

PATIENCE = 150  # seconds: hangs only
PREFIX = f'stream-{os.getpid()}-'
KERNEL, OURS, MAC = '10.9.0.1', '10.9.0.2', {'k': '02:00:00:00:09:01', 's': '02:00:00:00:09:02'}
WHY_NOT = incline_netns.why_not()

# The kernel's end, in its namespace: argv is listen|connect, bytes to send, seconds before it reads, receive buffer, how it
# ends. Prints what it has received and whether that was right.
KERNEL_PEER = r'''
import json, socket, struct, sys, threading, time
how, size, late, room, end = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
block = bytes((k * 167 + (k >> 8)) & 255 for k in range(65521))
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if room:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
s.settimeout(120)
if how == 'listen':
    s.bind(('10.9.0.1', 5001))
    s.listen(1)
    print('ready', flush=True)
    s = s.accept()[0]
    s.settimeout(120)
else:
    print('ready', flush=True)
    s.connect(('10.9.0.2', 5001))
def send():
    data = (block * (size // len(block) + 1))[:size]
    s.sendall(data)
    if end == 'half':
        s.shutdown(socket.SHUT_WR)
sender = threading.Thread(target=send)
sender.start()
time.sleep(late)
got, wrong = 0, False
doubled = block + block
while not (end == 'reset' and got >= 100000):
    data = s.recv(65521)
    if not data:
        break
    at = got % len(block)
    wrong |= data != doubled[at:at + len(data)]
    got += len(data)
sender.join()
if end == 'reset':
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
s.close()
print(json.dumps({'received': got, 'wrong': wrong}))
'''


def ip(node, *lines):
    incline_netns.ip(lines, PREFIX + node)


def no_offloads(node, device):
    """As ethtool -K DEVICE tx off tso off gso off gro off: what leaves has checksums, and is no longer than the MTU."""
    script = ('import fcntl, socket, struct, array, sys\n'
              's = socket.socket()\n'
              'for command in 0x17, 0x1f, 0x24, 0x2c:\n'  # ETHTOOL_STXCSUM, STSO, SGSO, SGRO
              '    value = array.array("B", struct.pack("II", command, 0))\n'
              '    fcntl.ioctl(s, 0x8946, struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0]))\n')
    subprocess.run(['ip', 'netns', 'exec', PREFIX + node, sys.executable, '-c', script, device], check=True, timeout=60)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Kernel(unittest.TestCase):
    mtu = 1500

    def setUp(self):
        self.addCleanup(self.remove)
        incline_netns.ip([f'netns add {PREFIX}{node}' for node in 'ks'])
        ip('k', 'link set lo up', f'link add v0 address {MAC["k"]} type veth peer name v1 address {MAC["s"]} '
           f'netns {PREFIX}s')
        self.dir = tempfile.mkdtemp(prefix='incline-')
        self.addCleanup(shutil.rmtree, self.dir)

    @staticmethod
    def remove():
        for node in 'ks':
            subprocess.run(['ip', 'netns', 'del', PREFIX + node], stderr=subprocess.DEVNULL, timeout=60)

    def link(self, mtu):
        ip('k', f'link set v0 mtu {mtu} up', f'addr replace {KERNEL}/24 dev v0',
           f'neigh replace {OURS} lladdr {MAC["s"]} dev v0')
        ip('s', f'link set v1 mtu {mtu} up')
        no_offloads('k', 'v0')
        path = os.path.join(self.dir, 'port.json')
        with open(path, 'w', encoding='utf-8') as f:
            json.dump({'name': 'v1', 'type': 'af_packet', 'iface': 'v1', 'mtu': mtu}, f)
        return path

    def start(self, node, *argv):
        p = subprocess.Popen(['ip', 'netns', 'exec', PREFIX + node, *map(str, argv)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)
        line = p.stdout.readline()
        self.assertEqual(line, 'ready\n', p.poll())
        return p

    def finish(self, p):
        # Not communicate(): what came together with the first line is in the buffer. Both ends give up by themselves.
        out, err = p.stdout.read(), p.stderr.read()
        p.wait(PATIENCE)
        self.assertEqual((p.returncode, err), (0, ''), out)
        return json.loads(out)

    # pylint: disable=too-many-arguments
    def exchange(self, who, size, loss=0, mtu=1500, seed=1, kernel_late=0, room=0, late=0, end='half'):
        """Both send `size` bytes at once; `who` connects."""
        port = self.link(mtu)
        kernel = [sys.executable, '-c', KERNEL_PEER, 'listen' if who == 'ours' else 'connect', size, kernel_late, room, end]
        ours = [os.path.join(build_dir(), 'tests/integration/stream_peer'), port, 'connect' if who == 'ours' else 'listen',
                OURS, KERNEL, MAC['k'], size, loss, seed, late]
        first, second = (('k', kernel), ('s', ours)) if who == 'ours' else (('s', ours), ('k', kernel))
        p = {first[0]: self.start(first[0], *first[1])}
        p[second[0]] = self.start(second[0], *second[1])
        return self.finish(p['k']), self.finish(p['s'])

    def exact(self, who, size, **how):
        kernel, ours = self.exchange(who, size, **how)
        what = f'{who} {size} {how}: {ours}'
        self.assertEqual((kernel['received'], kernel['wrong']), (size, False), what)
        self.assertEqual((ours['received'], ours['wrong'], ours['acked'], ours['closed'], ours['result']),
                         (size, 0, size, 1, 0), what)
        return ours

    def test_clean(self):
        for who in 'ours', 'kernel':
            self.exact(who, 8000000)

    def test_loss(self):
        for who in 'ours', 'kernel':
            for loss, size in ((1000, 2000000), (10000, 1000000), (30000, 300000), (100000, 60000)):
                with self.subTest(who=who, loss=loss):
                    ours = self.exact(who, size, loss=loss, seed=loss)
                    if loss >= 10000:
                        self.assertGreater(ours['retransmitted'], 0)

    def test_mtu(self):
        for mtu in 576, 1280, 9000:
            with self.subTest(mtu=mtu):
                self.exact('ours', 1000000, mtu=mtu)
                self.exact('kernel', 300000, mtu=mtu, loss=5000)

    def test_windows_close(self):
        """A kernel that reads late into a small buffer; then our program that posts its buffers late."""
        self.exact('ours', 500000, kernel_late=1, room=8192)
        ours = self.exact('kernel', 500000, late=700)
        self.assertGreater(ours['bounced'], 10000)

    def test_reset(self):
        """The kernel goes away in the middle."""
        kernel, ours = self.exchange('kernel', 3000000, end='reset', kernel_late=0.1)
        self.assertFalse(kernel['wrong'])
        self.assertEqual(ours['result'], -104, ours)  # ECONNRESET
        self.assertEqual(ours['wrong'], 0)

    def test_refused(self):
        """Nobody listens at the kernel."""
        p = self.start('s', os.path.join(build_dir(), 'tests/integration/stream_peer'), self.link(1500), 'connect', OURS,
                       KERNEL, MAC['k'], 10, 0, 1, 0)
        self.assertEqual(self.finish(p)['result'], -111)  # ECONNREFUSED


if __name__ == '__main__':
    run_tests(verbosity=2)
