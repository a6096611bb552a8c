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
from fabric_case import run_tests  # noqa: E402
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


class Etcd(unittest.TestCase):
    scheme, etcd_args, fields = 'http', (), {}

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='incline-')
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.certify()
        client, peer = (f'{scheme}://127.0.0.1:{p}' for scheme, p in zip((self.scheme, 'http'), free_ports(2)))
        self.start(['etcd', '--data-dir', self.path('etcd'), '--listen-client-urls', client, '--advertise-client-urls', client,
                    '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', f'default={peer}',
                    *self.etcd_args], 'etcd.log')
        links = [{'a': 's', 'a_port': f'p{i}', 'b': f'h{i}'} for i in range(2)]
        for name, sock in ('fabric', 'm'), ('one', 'one'), ('two', 'two'):
            with open(self.path(f'{name}.json'), 'w') as f:
                json.dump({'listen': self.path(f'{sock}.sock'), 'store': f'etcd:{client}/test', 'links': links,
                           'switches': [{'name': 's', 'control': self.path('nobody'), 'ip': '10.2.0.1'}],
                           'hosts': [{'name': f'h{i}', 'ip': f'10.1.0.{i + 1}'} for i in range(2)], **self.fields}, f)

    def certify(self):
        """Files of TLS, before anything begins."""

    def path(self, *names):
        return os.path.join(self.dir, *names)

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
        """Both ranks; the run takes the ring when it is known that nobody listens at the switch."""
        ranks = [Rank(self.path('m.sock')) for _ in range(2)]
        for i, rank in enumerate(ranks):
            self.addCleanup(rank.close)
            state = rank.ask('job.join', job=job, ranks=2, rank=i, who=i + 1, ip=f'10.1.0.{i + 1}', mtu=1024)
        deadline = time.monotonic() + PATIENCE
        while state['phase'] == 'joining':
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
            for i, rank in enumerate(ranks):
                state = rank.ask('job.heartbeat', job=job, epoch=state['epoch'], rank=i, who=i + 1)
        return ranks, state['epoch']

    def jobs(self):
        asks = Rank(self.path('m.sock'))
        self.addCleanup(asks.close)
        return [(j['job'], j['epoch']) for j in asks.ask('job.list')['jobs']]



class TwoManagers(Etcd):
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


def openssl(*words):
    subprocess.run(['openssl', *words], check=True, capture_output=True)


class Certificates(Etcd):
    """An etcd that asks who comes (--client-cert-auth), as it stands in docs/manager.md."""
    scheme = 'https'

    def certify(self):
        certs = self.path('certs')
        for words in (), ('operator', 'manager'), ('operator', 'etcd'):
            subprocess.run([os.path.join(TOP, 'tools/certs'), certs, *words], check=True)
        # Clients compare the name in this one with the address, and tools/certs writes none.
        server, ca = os.path.join(certs, 'etcd'), os.path.join(certs, 'ca')
        with open(f'{server}/san', 'w') as f:
            f.write('subjectAltName=IP:127.0.0.1')
        openssl('req', '-new', '-key', f'{server}/key.pem', '-subj', '/CN=etcd', '-out', f'{server}/csr.pem')
        openssl('x509', '-req', '-in', f'{server}/csr.pem', '-CA', f'{ca}/cert.pem', '-CAkey', f'{ca}/key.pem', '-CAcreateserial',
                '-extfile', f'{server}/san', '-out', f'{server}/cert.pem')
        self.etcd_args = ('--client-cert-auth', '--trusted-ca-file', f'{server}/ca.pem', '--cert-file', f'{server}/cert.pem',
                          '--key-file', f'{server}/key.pem')
        self.fields = {'store_tls': os.path.join(certs, 'manager')}

    def other(self, **fields):
        """A configuration that differs in these fields (None: without)."""
        with open(self.path('two.json')) as f:
            config = json.load(f)
        config.update(fields)
        with open(self.path('other.json'), 'w') as f:
            json.dump({k: v for k, v in config.items() if v is not None}, f)
        return 'other.json'

    def test_who_shows_one_leads(self):
        first = self.manager('one.log')
        self.said('one.log', 'm.sock')
        _, epoch = self.join('before')
        self.assertEqual(self.jobs(), [('before', epoch)])
        second = self.manager('two.log')
        self.assertIn(f':{first.pid} leads', self.said('two.log', 'waiting: store: etcd: manager'))
        first.terminate()
        self.assertEqual(first.wait(PATIENCE), 0)
        self.said('two.log', 'm.sock')
        self.assertEqual(self.jobs(), [('before', epoch)])
        second.terminate()
        self.assertEqual(second.wait(PATIENCE), 0)

    def test_others_do_not(self):
        """Neither who shows none, nor who shows one of another CA, nor to whom etcd shows one of another."""
        self.manager('none.log', self.other(store_tls=None))
        self.said('none.log', 'certificate problem')  # the machine's CAs do not know etcd's
        for words in (), ('operator', 'manager'):
            subprocess.run([os.path.join(TOP, 'tools/certs'), self.path('false'), *words], check=True)
        theirs, false = self.path('certs/manager'), self.path('false/manager')
        for own in 'cert.pem', 'key.pem':  # believes etcd, and is not believed
            shutil.copy(os.path.join(false, own), self.path(own))
        shutil.copy(os.path.join(theirs, 'ca.pem'), self.path('ca.pem'))
        self.manager('false.log', self.other(store_tls=self.dir))
        self.said('false.log', ' alert ')
        self.manager('doubts.log', self.other(store_tls=false))
        self.said('doubts.log', 'certificate problem')

    def test_revoked(self):
        subprocess.run([os.path.join(TOP, 'tools/certs'), self.path('certs'), 'revoke', 'etcd'], check=True)
        self.manager('revoked.log')
        self.said('revoked.log', 'certificate revoked')

    def test_files_that_are_missing(self):
        for name in 'ca.pem', 'cert.pem', 'key.pem':
            path = self.path('certs', 'manager', name)
            os.rename(path, path + '.away')
            p = self.manager('missing.log')
            self.assertEqual(p.wait(PATIENCE), 1)
            self.assertIn(f'store_tls: {path}: no ', self.said('missing.log', '\n'))
            os.rename(path + '.away', path)


if __name__ == '__main__':
    run_tests(verbosity=2)
