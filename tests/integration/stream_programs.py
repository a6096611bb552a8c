#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs on libincline_stream.so: between two hosts of a lab whose switch loses packets, and with the Linux
kernel's TCP at the other end of a veth. Run by meson test, or by hand: tests/integration/stream_programs.py [TEST...]."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from fabric_case import Lab, Topology, build_dir, checks, run_tests  # noqa: E402
import incline_netns  # noqa: E402
import stream_kernel  # noqa: E402

PATIENCE = 120  # seconds: hangs only
HERE = os.path.dirname(os.path.abspath(__file__))
ECHO = [sys.executable, os.path.join(HERE, 'stream_echo.py')]
CROWD = [sys.executable, os.path.join(HERE, 'stream_crowd.py')]
TOPOLOGY = {'name': 'pair', 'switches': [{'name': 's0', 'ip': '10.77.255.1', 'ip6': 'fd77::ff:1'}],
            'hosts': [{'name': f'h{i}', 'ip': f'10.77.0.1{i}', 'ip6': f'fd77::1{i}', 'switch': 's0'} for i in range(2)]}
LIBRARY = os.path.join(build_dir(), 'lib/sockets/libincline_stream.so')


class Programs(unittest.TestCase):
    """start(end, argv): a program at end 0, the client's, or 1, the server's; address(6 or 4) of end 1; ours: the one end that is
    on libincline_stream.so, None: both are."""
    ours = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='incline-')
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items() if k not in ('LD_PRELOAD', 'INCLINE_RNIC', 'INCLINE_STREAM')}

    def popen(self, argv, config=None, **kwargs):
        env = {**self.env, **({'LD_PRELOAD': LIBRARY, 'INCLINE_STREAM': config} if config else {})}
        p = subprocess.Popen([str(a) for a in argv], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors='replace', **kwargs)
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)
        return p

    @staticmethod
    def preload(config):
        return [f'LD_PRELOAD={LIBRARY}', f'INCLINE_STREAM={config}'] if config else []

    def until(self, p, text):
        """Reads a program's lines up to one with this text."""
        lines = []
        for line in p.stdout:
            lines.append(line)
            if text in line:
                return
        self.fail(f'{p.args}: ended without "{text}": {"".join(lines)}')

    def run_to_end(self, p):
        out, _ = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, f'{p.args}: {out}')
        return out

    def calls(self, version):
        server = self.start(1, [*ECHO, 'server', self.address(version), 7001])
        self.until(server, 'listens')
        self.env['INCLINE_STATS'] = stats = os.path.join(self.dir, 'stats')
        client = self.start(0, [*ECHO, 'client', self.address(version), 7001])
        del self.env['INCLINE_STATS']
        self.assertIn('client ok', self.run_to_end(client))
        self.assertIn('server ok', self.run_to_end(server))
        if self.ours != 1:
            self.placed_where_they_are_wanted(stats)

    def placed_where_they_are_wanted(self, stats):
        """Calls that waited with a large buffer have had bytes of it placed there, not copied. The client has compared them."""
        with open(stats, encoding='utf-8') as f:
            stacks = json.load(f)
        direct, copied = (sum(s[f'received_{how}'] for s in stacks) for how in ('direct', 'copied'))
        self.assertGreater(direct, 0)
        self.assertGreaterEqual(direct + copied, 4 * 600000, 'the client receives this and more')

    def crowd(self, count):
        """That many connections to each address, all at once."""
        how = [7002, count, self.address(4), self.address(6)]
        server = self.start(1, [*CROWD, 'server', *how])
        self.until(server, 'listens')
        self.assertIn('client ok', self.run_to_end(self.start(0, [*CROWD, 'client', *how])))
        self.assertIn('server ok', self.run_to_end(server))

    def iperf(self):
        server = self.start(1, ['iperf3', '-s', '-B', self.address(4), '-p', 5300, '--forceflush'])
        self.until(server, 'Server listening')
        for how in [], ['-R', '-P', '3']:
            out = self.run_to_end(self.start(0, ['iperf3', '-J', '-c', self.address(4), '-p', 5300, '-n', '2M', *how]))
            end = json.loads(out)['end']
            self.assertEqual(end['sum_sent']['bytes'] >= 2000000, True, end)
            # A receiver stops when it is told to: what was sent last may not have been counted.
            self.assertGreater(end['sum_received']['bytes'], 0)
        server.kill()
        server.wait(PATIENCE)

    def redis(self):
        server = self.start(1, ['redis-server', '--bind', self.address(4), '--port', 6400, '--save', '', '--protected-mode',
                                'no', '--dir', self.dir])
        self.until(server, 'Ready to accept connections')
        at = ['-h', self.address(4), '-p', 6400]
        out = self.run_to_end(self.start(0, ['redis-benchmark', *at, '-n', 1000, '-c', 20, '-P', 2, '-t', 'set,get,lrange_100',
                                             '-q']))
        self.assertEqual(len(re.findall(r'requests per second', out)), 4, out)
        value = 'x' * 100000
        script = os.path.join(self.dir, 'script')
        with open(script, 'w', encoding='utf-8') as f:
            f.write(f'set k {value}\nbgsave\nget k\nshutdown nosave\n')  # bgsave forks
        with open(script, encoding='utf-8') as f:
            out = self.run_to_end(self.start(0, ['redis-cli', *at], stdin=f))
        self.assertEqual(out.split('\n')[:3], ['OK', 'Background saving started', value])
        self.run_to_end(server)

    def curl(self):
        path = os.path.join(self.dir, 'file')
        with open(path, 'wb') as f:
            f.write(os.urandom(3000000))
        server = self.start(1, [sys.executable, '-u', '-m', 'http.server', '--bind', self.address(6), '--directory', self.dir,
                                8080])
        self.until(server, 'Serving HTTP')
        for _ in range(2):
            copy = os.path.join(self.dir, 'copy')
            self.run_to_end(self.start(0, ['curl', '-sS', '-g', '-o', copy, f'http://[{self.address(6)}]:8080/file']))
            self.assertEqual(subprocess.run(['cmp', path, copy]).returncode, 0)
        server.kill()
        server.wait(PATIENCE)


class Switch(Programs):
    impair = {'loss': 0.002}
    netns = False

    def setUp(self):
        super().setUp()
        folder = os.path.join(self.dir, 'lab')
        self.lab = Lab(folder)
        self.lab.up(Topology(json.loads(json.dumps(TOPOLOGY))), self.impair, self.netns)
        self.addCleanup(self.end)

    def end(self):
        self.assertEqual(self.lab.down(), [], 'a switch had to be killed')

    def start(self, end, argv, **kwargs):
        return self.popen(argv, self.lab.path(f'h{end}.json'), **kwargs)

    @staticmethod
    def address(version):
        return 'fd77::11' if version == 6 else '10.77.0.11'

    def test_programs(self):
        checks.during(self.lab, ['s0'], self.impair, self.programs)

    def programs(self):
        self.calls(4)
        self.crowd(20)
        self.iperf()
        self.redis()
        self.curl()


@unittest.skipIf(stream_kernel.WHY_NOT, stream_kernel.WHY_NOT)
class Kernel(Programs):
    """The client on the kernel's TCP, the server on ours; for calls also the other way round."""

    def setUp(self):
        super().setUp()
        self.addCleanup(stream_kernel.Kernel.remove)
        incline_netns.ip([f'netns add {stream_kernel.PREFIX}{node}' for node in 'ks'])
        stream_kernel.ip('k', 'link set lo up', f'link add v0 address {stream_kernel.MAC["k"]} type veth peer name v1 address '
                         f'{stream_kernel.MAC["s"]} netns {stream_kernel.PREFIX}s', 'link set v0 up', 'addr add '
                         f'{stream_kernel.KERNEL}/24 dev v0', 'addr add fd09::1/64 dev v0 nodad')
        stream_kernel.ip('s', 'link set lo up', 'link set v1 up')
        stream_kernel.no_offloads('k', 'v0')
        self.config = os.path.join(self.dir, 'stream.json')
        with open(self.config, 'w', encoding='utf-8') as f:
            json.dump({'mac': stream_kernel.MAC['s'], 'ip': [stream_kernel.OURS, 'fd09::2'], 'mtu': 1500,
                       'port': {'name': 'v1', 'type': 'af_packet', 'iface': 'v1'}}, f)
        self.ours = 1

    def start(self, end, argv, **kwargs):
        node, config = ('s', self.config) if end == self.ours else ('k', None)
        return self.popen(['ip', 'netns', 'exec', stream_kernel.PREFIX + node, 'env', *self.preload(config), *argv],
                          **kwargs)

    def address(self, version):
        number = 2 if self.ours == 1 else 1
        return f'fd09::{number}' if version == 6 else f'10.9.0.{number}'

    def test_programs(self):
        self.calls(4)
        self.iperf()
        self.redis()
        self.ours = 0
        self.calls(6)
        self.curl()


if __name__ == '__main__':
    run_tests(verbosity=2)
