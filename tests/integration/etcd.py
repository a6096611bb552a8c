#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two managers on one etcd: one leads, the other waits; the leader is killed, the other goes on with what it had
promised, and gives no epoch twice. Run by meson test, or by hand: tests/integration/etcd.py."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
from incline_lab import build_dir  # noqa: E402

PATIENCE = 60  # seconds: of a loaded machine


def free_ports(n):
    socks = [socket.create_server(('127.0.0.1', 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in socks]
    for s in socks:
        s.close()
    return ports


class Rank:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(path)
        self.file = self.sock.makefile('rw')

    def ask(self, method, **params):
        self.file.write(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}) + '\n')
        self.file.flush()
        return json.loads(self.file.readline())['result']

    def close(self):
        self.file.close()
        self.sock.close()


class TwoManagers(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='incline-')
        self.addCleanup(shutil.rmtree, self.dir, True)
        client, peer = (f'http://127.0.0.1:{p}' for p in free_ports(2))
        self.start(['etcd', '--data-dir', self.path('etcd'), '--listen-client-urls', client, '--advertise-client-urls', client,
                    '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', f'default={peer}'],
                   'etcd.log')
        links = [{'a': 's', 'a_port': f'p{i}', 'b': f'h{i}'} for i in range(2)]
        for name, sock in ('fabric', 'm'), ('one', 'one'), ('two', 'two'):
            with open(self.path(f'{name}.json'), 'w') as f:
                json.dump({'listen': self.path(f'{sock}.sock'), 'store': f'etcd:{client}/test', 'links': links,
                           'switches': [{'name': 's', 'control': self.path('nobody'), 'ip': '10.2.0.1'}],
                           'hosts': [{'name': f'h{i}', 'ip': f'10.1.0.{i + 1}'} for i in range(2)]}, f)

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, args, log):
        with open(self.path(log), 'w') as out:
            p = subprocess.Popen(args, stdout=out, stderr=out)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def manager(self, log, config='fabric.json'):
        return self.start([os.path.join(build_dir(), 'apps', 'incline-manager'), '-c', self.path(config)], log)

    def said(self, log, text):
        deadline = time.monotonic() + PATIENCE
        while True:
            with open(self.path(log)) as f:
                out = f.read()
            if text in out:
                return out
            self.assertLess(time.monotonic(), deadline, f'{log} lacks {text!r}: {out}')
            time.sleep(0.05)

    def join(self, job):
        """Both ranks; no switch answers, so the run stays on its way to the network, or takes the ring."""
        ranks = [Rank(self.path('m.sock')) for _ in range(2)]
        for i, rank in enumerate(ranks):
            self.addCleanup(rank.close)
            state = rank.ask('job.join', job=job, ranks=2, rank=i, who=i + 1, ip=f'10.1.0.{i + 1}', mtu=1024)
        return ranks, state['epoch']

    def jobs(self):
        asks = Rank(self.path('m.sock'))
        self.addCleanup(asks.close)
        return [(j['job'], j['epoch']) for j in asks.ask('job.list')['jobs']]

    def test_the_leader_is_killed(self):
        first = self.manager('one.log')
        self.said('one.log', 'm.sock')
        second = self.manager('two.log')
        self.assertIn(f':{first.pid} leads', self.said('two.log', 'waiting: store: etcd: manager'))
        _, epoch = self.join('before')
        self.assertEqual(self.jobs(), [('before', epoch)])
        first.kill()
        first.wait()
        self.said('two.log', 'leading now')
        self.said('two.log', 'm.sock')
        self.assertEqual(self.jobs(), [('before', epoch)])
        _, later = self.join('after')
        self.assertGreater(later, epoch)
        self.assertEqual(sorted(self.jobs()), [('after', later), ('before', epoch)])
        second.terminate()  # gives the lease back
        self.assertEqual(second.wait(PATIENCE), 0)

    def leader(self):
        """Who leads, asked for at both addresses, of which the leader's is the only one that anybody listens at."""
        env = dict(os.environ, INCLINE_MANAGER=','.join(self.path(f'{m}.sock') for m in ('two', 'one')))
        out = subprocess.run([os.path.join(build_dir(), 'apps', 'inclinectl'), '-j', 'manager', 'who'], env=env,
                             capture_output=True, text=True, check=True).stdout
        return json.loads(out)['name'].rpartition(':')[2]

    def test_each_has_its_own_address(self):
        first = self.manager('one.log', 'one.json')
        self.said('one.log', 'one.sock')
        second = self.manager('two.log', 'two.json')
        self.said('two.log', 'waiting: store: etcd: manager')
        self.assertEqual(self.leader(), str(first.pid))
        first.kill()
        first.wait()
        self.said('two.log', 'leading now')
        self.said('two.log', 'two.sock')
        self.assertEqual(self.leader(), str(second.pid))


if __name__ == '__main__':
    unittest.main(verbosity=2)
