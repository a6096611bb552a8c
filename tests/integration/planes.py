#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A fabric of planes of real switches, and its map: agents on all hosts see all paths; a switch that answers its control
socket and forwards nothing is named, and so is a link that loses; the job of the other plane goes on; all comes back. MRC
over all paths from host to host."""
import ipaddress
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from fabric_case import Fabric, app, free_port, listening, topology, run_tests  # noqa: E402

PATIENCE = 60  # seconds: hangs only


class Planes(Fabric):
    topo = 'planes-2x2x2'

    def ctl(self, switch, *words):
        done = subprocess.run([app('inclinectl'), '-s', self.lab.control_socket(switch), '--json', *words],
                              capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def agents(self, hosts=('h0', 'h1', 'h2', 'h3'), rate=50, timeout=3000, more=()):
        """Slow ones, for a machine of few cores: a path is bad after three seconds, and good after two."""
        self.files = [os.path.join(self.dir, f'{h}.map.json') for h in hosts]
        for host, file in zip(hosts, self.files):
            if os.path.exists(file):
                os.remove(file)  # of the test before
            env = self.lab.host_env(host)
            del env['LD_PRELOAD']
            argv = [app('incline-map'), 'agent', '--rate', str(rate), '--timeout', str(timeout), '--out', file, *more]
            self.procs.append(subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def test_rate(self):
        """1000 probes per second and link aimed at, as in the paper: what is reached is counted by agents and switches, and printed.
        All that is due is sent or told to be skipped, all that is sent comes back, is lost, or is under way; how many, the machine
        decides."""
        before = self.sids()
        self.agents(rate=1000, timeout=1000, more=('--share', '2', '--for', '4'))
        self.all_ok(self.procs, PATIENCE)
        hits = {s: row['un'] - before[s]['un'] for s, row in self.sids().items()}
        came = {}
        for file in self.files:
            with open(file) as f:
                agent = json.load(f)
            paths = [p for plane in agent['planes'] for p in (plane['t0'], *plane['t1'])]
            answered, lost = sum(p['answered'] for p in paths), sum(p['lost'] for p in paths)
            self.assertEqual(agent['rate_hz'], 1000)
            self.assertGreater(answered, 0)
            self.assertGreaterEqual(agent['sent'], answered)
            for plane in agent['planes']:
                t0 = f"p{plane['plane']}-t0-{agent['group'] & 0x3ff}"
                came[t0] = came.get(t0, 0) + plane['t0']['answered'] + 2 * sum(p['answered'] for p in plane['t1'])
            due = agent['sent'] + agent['skipped']
            print(f"{agent['host']}: {1000 * agent['sent'] / due:.0f} of 1000 probes per second and link: {agent['sent']} sent, "
                  f"{agent['skipped']} skipped, {answered} came back, {lost} lost, {agent['late']} late", file=sys.stderr)
        # Every T0 has shifted what came back of its hosts' probes: once of those to itself, twice of those over it.
        self.assertEqual(len(came), 4)
        for t0, n in came.items():
            self.assertGreaterEqual(hits[t0], n)

    def show(self, *words):
        return subprocess.run([app('incline-map'), 'show', *words, *self.files], check=True, capture_output=True, text=True,
                              timeout=PATIENCE).stdout

    def until(self, faults):
        """Until the map says exactly this, of all paths that there are."""
        deadline = time.monotonic() + PATIENCE
        while True:
            text = 'no map yet'
            if all(map(os.path.exists, self.files)):
                said, text = json.loads(self.show('--json'))['faults'], self.show()
                if [{k: v for k, v in f.items() if k != 'state'} for f in said] == faults and 'unknown' not in text:
                    return text
            self.assertLess(time.monotonic(), deadline, text)
            time.sleep(0.2)

    def test_a_map(self):
        self.agents()
        text = self.until([])
        self.assertEqual(len(re.findall('good', text)), 4 * 2 * 3)
        # What a probe to a T1 took, by the switches' own counters: the T0 twice, the T1 once.
        for switch in 'p1-t0-0', 'p2-t1-1':
            hits = {e['key']['sid']: e['hits'] for e in self.ctl(switch, 'table', 'read', 'local_sid')['entries'] if e['action'] == 'un'}
            self.assertGreater(min(hits.values()), 0)
        dead = 'sid=fcbb:bb00:2401::/48'
        self.ctl('p2-t1-1', 'table', 'delete', 'local_sid', dead)
        self.until([{'kind': 't1', 'plane': 2, 'sure': True, 't1': 1}])
        self.assertEqual(self.ctl('p2-t1-1', 'status')['name'], 'p2-t1-1')
        self.assertEqual(json.loads(self.show('--deny'))['h0'], {'h2': [0x201], 'h3': [0x201]})
        self.ctl('p2-t1-1', 'table', 'insert', 'local_sid', dead, 'un')
        self.until([])
        # A link between a T0 and a T1, one way only.
        back = [e for e in self.ctl('p1-t1-0', 'table', 'read', 'route6')['entries'] if e['key']['dst'] == 'fcbb:bb00:1001::/48'][0]
        self.ctl('p1-t1-0', 'table', 'delete', 'route6', 'dst=fcbb:bb00:1001::/48')
        self.until([{'kind': 'uplink', 'plane': 1, 'sure': True, 't0': 1, 't1': 0}])
        self.ctl('p1-t1-0', 'table', 'insert', 'route6', 'dst=fcbb:bb00:1001::/48', 'via', 'nexthop=' + back['data']['nexthop'])
        self.until([])

    def test_a_host_that_does_not_pack(self):
        """Through the tunnel of its T0, over the T1 that the plan gives, also after the T1 was started anew."""
        topo = self.topology()
        for _ in range(2):
            before, port = self.unpacked(), free_port()
            argv = ['ibv_rc_pingpong', '-g', '1', '-n', '50', '-p', str(port)]
            procs = [self.start('h0', argv)]
            deadline = time.monotonic() + PATIENCE
            while not listening(port) and procs[0].poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            procs.append(self.start('h2', [*argv, '127.0.0.1']))
            self.all_ok(procs)
            self.assertGreaterEqual(self.unpacked() - before, 50)
            self.lab.restart_switch(topo, 'p1-t1-0')
            deadline = time.monotonic() + PATIENCE
            while not all(p['link'] for p in self.ctl('p1-t1-0', 'ports')['ports']):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)

    @unittest.skipUnless(os.geteuid() == 0, 'profiles of EVs take CAP_NET_ADMIN')
    def test_mrc_over_every_path(self):
        """Every packet of a queue pair, and of its answers, in SRv6: a T0 has no other way to a host's address of all planes."""
        port, out, n = free_port(), os.path.join(self.dir, 'mrcperf.json'), 200
        before = self.sids()
        perf = [app('incline-mrcperf'), '-p', str(port), '--paths']
        procs = [self.start('h2', [*perf, self.lab.path('h2.paths.json')])]
        deadline = time.monotonic() + PATIENCE
        while not listening(port):
            self.assertIsNone(procs[0].poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        procs.append(self.start('h0', [*perf, self.lab.path('h0.paths.json'), '--imm', '-n', str(n), '--json', out, '127.0.0.1']))
        self.all_ok(procs, 2 * PATIENCE)
        with open(out) as f:
            result = json.load(f)
        self.assertEqual(result['srv6_paths'], 4)
        self.assertEqual([(r['checked'], r['wrong']) for r in result['rows']], [(n, 0)])
        hits = {s: {action: n - before[s][action] for action, n in row.items()} for s, row in self.sids().items()}
        t1 = [h['un'] for s, h in hits.items() if 't1' in s]
        self.assertGreater(min(t1), 0)
        self.assertGreaterEqual(sum(t1), n * 65536 // 4096)
        own = [ipaddress.ip_address(h['ip']) for h in topology(self.topo).hosts]
        for switch, h in hits.items():
            self.assertEqual(h.get('dt46', 0), 0)
            for e in self.ctl(switch, 'table', 'read', 'route6')['entries']:
                self.assertFalse([ip for ip in own if ip in ipaddress.ip_network(e['key']['dst'])], e)

    @unittest.skipUnless(os.geteuid() == 0, 'profiles of EVs take CAP_NET_ADMIN')
    def test_denied_by_the_map(self):
        """Agents beside the hosts that write: a path over a T1 that forwards nothing is denied to MRC, and comes back."""
        self.agents(('h1', 'h3'), rate=100, timeout=1000)
        self.until([])
        port, out, log = free_port(), os.path.join(self.dir, 'mrcperf.json'), os.path.join(self.dir, 'mrcperf.log')
        perf = [app('incline-mrcperf'), '-p', str(port), '--map', ':'.join(self.files), '--paths']
        server = self.start('h2', [*perf, self.lab.path('h2.paths.json')])
        self.wait_for(lambda: listening(port), 'a server')
        with open(log, 'w') as f:
            client = self.lab.popen('h0', [*perf, self.lab.path('h0.paths.json'), '--imm', '-n', '20', '--seconds', '600', '--json', out,
                                           '127.0.0.1'], stdout=f, stderr=subprocess.STDOUT)
        self.procs.append(client)

        def says(line):
            with open(log) as f:
                return line in f.read() or client.poll() is not None
        self.wait_for(lambda: says('# SRv6, 4 paths'), 'paths')
        dead = 'sid=fcbb:bb00:2401::/48'
        self.ctl('p2-t1-1', 'table', 'delete', 'local_sid', dead)
        self.wait_for(lambda: says('# map: path 0x201 denied'), 'a denial')
        self.ctl('p2-t1-1', 'table', 'insert', 'local_sid', dead, 'un')
        self.wait_for(lambda: says('# map: path 0x201 returned'), 'its end')
        client.send_signal(signal.SIGINT)
        with open(log) as f:
            if client.wait(PATIENCE):
                server.terminate()
                self.fail(f'client: {f.read()}\nserver: {server.communicate(timeout=PATIENCE)}')
        self.all_ok([server], PATIENCE)
        with open(out) as f:
            result = json.load(f)
        self.assertGreaterEqual(result['map']['returns'], 1)
        self.assertEqual([(r['checked'] > 0, r['wrong']) for r in result['rows']], [(True, 0)])

    def wait_for(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def sids(self):
        """{switch: {what it does with a SID: how often}}"""
        return {s['name']: {e['action']: e['hits'] for e in self.ctl(s['name'], 'table', 'read', 'local_sid')['entries']}
                for s in self.lab.state()['switches']}

    def unpacked(self):
        rows = self.ctl('p1-t0-1', 'table', 'read', 'local_sid')['entries']
        return next(e['hits'] for e in rows if e['action'] == 'dt46')


if __name__ == '__main__':
    run_tests(verbosity=2)
