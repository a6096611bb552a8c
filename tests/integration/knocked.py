#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ten thousand knocks, of every kind, at every socket of a switch while its hosts sum: of those who are no clients, of
`incline-switch --check` and of a second switch with the same configuration. Results stay exact.

A control_tls port hears its ten thousand words of nonsense in tests/unit/ctl/test_tls.c (test_nonsense), and those who
never finish a handshake."""
import json
import os
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from fabric_case import Fabric, Topology, app, build_dir, topology, run_tests  # noqa: E402

KNOCKS = 10000  # at each socket, at least
BUSY, FREE = 11, 32  # kinds of knocks at a memif server whose port has a client, and has none
VHOST = 9  # and at a vhost port
REASONS = {'gone', 'type', 'length', 'version', 'mode', 'id', 'fds'}  # both count
MORE = {'name', 'region', 'region_size', 'region_file', 'ring', 'ring_size', 'ring_place', 'incomplete', 'driver'}


class Open(Topology):
    """A switch with every kind of socket."""
    def switch_config(self, folder, name, impair=None):
        config = super().switch_config(folder, name, impair)
        config['ports'].append({'name': 'guest', 'type': 'vhost', 'socket': folder.path(name + '.vhost')})
        return dict(config, control_tcp='127.0.0.1:0', metrics='unix:' + folder.path(name + '.metrics'))


class Knocked(Fabric):
    @classmethod
    def topology(cls):
        """A fifth host has a port, and nobody at it."""
        star = topology('star4')
        return Open({'name': 'star5', 'switches': star.switches,
                     'hosts': star.hosts + [{'name': 'h4', 'ip': '10.77.0.14', 'switch': 's0'}]})

    def setUp(self):
        super().setUp()
        path = self.lab.path('group.json')
        with open(path) as f:
            group = json.load(f)
        group['fallback'] = False
        del group['ranks'][4], group['switches'][0]['children'][4]
        with open(path, 'w') as f:
            json.dump(group, f)

    def knock(self, *args):
        return subprocess.Popen([os.path.join(build_dir(), 'tests/integration/knocker'), *map(str, args)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def switch(self, *args):
        return subprocess.run([app('incline-switch'), '-c', self.lab.path('s0.json'), *args],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)

    def values(self):
        return {v['name']: v['value'] for v in self.rpc('s0', 'stats.get', {'what': 'values'})['result']['values']}

    def job(self):
        return self.perf(range(4), '-b', '64K', '-e', '64K', '-n', '24000', '-d', 'int32')

    def knockers(self):
        tcp = self.lab.state()['switches'][0]['tcp'].removeprefix('tcp:')
        return [self.knock('busy', self.lab.link_socket('s0', 'h0'), KNOCKS // BUSY + 1),
                self.knock('free', self.lab.link_socket('s0', 'h4'), KNOCKS // FREE + 1),
                self.knock('stream', self.lab.control_socket('s0'), KNOCKS),
                self.knock('stream', tcp, KNOCKS),
                self.knock('stream', self.lab.path('s0.metrics'), KNOCKS),
                self.knock('vhost', self.lab.path('s0.vhost'), KNOCKS // VHOST + 1)]

    def await_clients(self, procs):
        """Until the job's hosts have their ports: a free one would take a knocker for its client."""
        deadline = time.monotonic() + 120
        while True:
            link = {p['name']: p['link'] for p in self.rpc('s0', 'port.list')['result']['ports']}
            if all(link[f'h{i}'] for i in range(4)):
                return
            self.going_on(procs)
            self.assertLess(time.monotonic(), deadline, f'links: {link}')
            time.sleep(0.05)

    def going_on(self, procs):
        if any(p.poll() is not None for p in procs):
            self.all_ok(procs, 60)  # says what they said
            self.fail('the job ended before the knocks')

    def test_results_stay_exact(self):
        switch = self.lab.state()['switches'][0]
        procs = self.job()
        self.await_clients(procs)
        knockers = self.knockers()
        self.procs += knockers
        check = self.switch('--check')
        self.assertEqual(check.returncode, 0, check.stderr)
        second = self.switch()
        self.assertEqual(second.returncode, 1, second.stdout)
        self.assertRegex(second.stderr, r'another process \(PID \d+\) serves ')
        while knockers[0].poll() is None:
            self.going_on(procs)
            time.sleep(0.05)
        self.going_on(procs)
        for out, err in (k.communicate(timeout=300) for k in knockers):
            self.assertEqual(err, '')
            self.assertGreaterEqual(int(out), KNOCKS)
        self.all_ok(procs, 300)
        self.assertTrue(self.lab.alive(switch), 'it is another process')
        values = self.values()
        self.assertGreaterEqual(int(values['vhost_lost']), KNOCKS // VHOST)  # whose memory is short
        for reason in REASONS | MORE | {'busy'}:
            least = (KNOCKS // BUSY if reason not in MORE else 0) + (KNOCKS // FREE if reason != 'busy' else 0)
            self.assertGreaterEqual(int(values['memif_refused_' + reason]), least, reason)


if __name__ == '__main__':
    run_tests(verbosity=2)
