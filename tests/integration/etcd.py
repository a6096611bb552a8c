#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two managers on one etcd: one leads, the other waits; the leader is killed, the other goes on with what it had
promised: the groups that a switch has under their epochs stay, none is there twice, and no epoch is given twice.
Run by meson test, or by hand: tests/integration/etcd.py."""
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
                           'switches': [{'name': 's', 'control': self.path('s.ctl'), 'ip': '10.2.0.1'}],
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

    def peers(self, sock='m.sock', n=1):
        peers = [Rank(self.path(sock)) for _ in range(n)]
        for peer in peers:
            self.addCleanup(peer.close)
        return peers

    def say(self, ranks, method, job, epoch):
        """The last one's answer."""
        return [rank.ask(method, job=job, epoch=epoch, rank=i, who=i + 1) for i, rank in enumerate(ranks)][-1]

    def join(self, job):
        """Both ranks; where nobody listens at the switch the run takes the ring when that is known."""
        ranks = self.peers(n=2)
        for i, rank in enumerate(ranks):
            state = rank.ask('job.join', job=job, ranks=2, rank=i, who=i + 1, ip=f'10.1.0.{i + 1}', mtu=1024)
        deadline = time.monotonic() + PATIENCE
        while state['phase'] in ('joining', 'installing'):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
            state = self.say(ranks, 'job.heartbeat', job, state['epoch'])
        return ranks, state

    def jobs(self):
        return [(j['job'], j['epoch']) for j in self.peers()[0].ask('job.list')['jobs']]


class TwoManagers(Etcd):
    def start_switch(self):
        ports = [{'name': f'p{i}', 'type': 'memif', 'role': 'server', 'socket': self.path(f'p{i}')} for i in range(2)]
        with open(self.path('s.json'), 'w') as f:
            json.dump({'name': 's', 'addresses': ['10.2.0.1'], 'ports': ports, 'idle': 'sleep', 'arena_kb': 16384,
                       'control': self.path('s.ctl')}, f)
        self.start([os.path.join(build_dir(), 'apps', 'incline-switch'), '-c', self.path('s.json')], 's.log')
        self.until(lambda: os.path.exists(self.path('s.ctl')))
        return self.peers('s.ctl')[0]

    def until(self, done):
        deadline = time.monotonic() + PATIENCE
        while not done():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def leads(self, seconds):
        """Who leads has heard the switch, and has done so for so long."""
        who = self.peers()[0].ask('manager.who')
        return who['switches'] == 1 and who['leads_s'] >= seconds

    def begin(self, job, switch):
        """A job in the network, as rank 0 and the other do it: what they are, and its epoch."""
        ranks, state = self.join(job)
        self.assertIn('plan', state, state)
        plan, epoch = state['plan'], state['epoch']
        ends = [{'ip': f"10.1.0.{child['rank'] + 1}", 'qpn': child['rank'] + 1, 'port': child['port'], 'host': True,
                 'mac': f"02:00:00:00:00:0{child['rank'] + 1}", 'ranks': [child['rank']]}
                for child in plan['switches'][0]['children']]
        switch.ask('group.create', name=job, job=job, epoch=epoch, mode=plan['mode'], kind='mixed', mtu=1024, M=plan['M'],
                   W=plan['W'], ranks=2, endpoints=ends)
        self.say(ranks, 'job.ready', job, epoch)
        self.until(lambda: self.say(ranks, 'job.heartbeat', job, epoch)['phase'] == 'active')
        return ranks, epoch

    def groups(self, switch):
        """By their names, what tells one from another; and the epochs under which there are any."""
        return ({g['name']: (g['group'], g['generation']) for g in switch.ask('group.list')['groups']},
                sorted((j['job'], j['epoch'], j['groups']) for j in switch.ask('epoch.list')['jobs'] if j['groups']))

    def test_the_leader_is_killed(self):
        switch = self.start_switch()
        first = self.manager('one.log')
        self.said('one.log', 'm.sock')
        second = self.manager('two.log')
        self.assertIn(f':{first.pid} leads', self.said('two.log', 'waiting: store: etcd: manager'))
        _, epoch = self.begin('before', switch)
        there = self.groups(switch)
        self.assertEqual((list(there[0]), there[1]), (['before'], [('before', epoch, 1)]))
        self.assertEqual(self.jobs(), [('before', epoch)])
        first.kill()
        first.wait()
        self.said('two.log', 'leading now')
        self.said('two.log', 'm.sock')
        ranks = self.peers(n=2)  # as CommLib does: their connections have gone with him
        self.assertEqual(self.say(ranks, 'job.heartbeat', 'before', epoch)['phase'], 'active')
        self.until(lambda: self.leads(2))  # each second he compares what the switch has with what it should
        self.assertEqual(self.groups(switch), there)
        self.assertEqual(self.say(ranks, 'job.heartbeat', 'before', epoch)['phase'], 'active')
        self.assertEqual(self.jobs(), [('before', epoch)])
        more, later = self.begin('after', switch)
        self.assertGreater(later, epoch)
        self.assertEqual(sorted(self.jobs()), [('after', later), ('before', epoch)])
        both, epochs = self.groups(switch)
        self.assertEqual({**both, **there[0]}, both)
        self.assertEqual((sorted(both), epochs), (['after', 'before'], [('after', later, 1), ('before', epoch, 1)]))
        self.say(ranks, 'job.leave', 'before', epoch)
        self.say(more, 'job.leave', 'after', later)
        self.until(lambda: self.groups(switch) == ({}, []))
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
        epoch = self.join('before')[1]['epoch']
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
