#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The network interfaces of software RNICs, and several processes on one host: programs of the distribution on
hosts of tools/lab. Run by meson test, or by hand: tests/integration/netdev.py [TEST...]. What needs network
namespaces is skipped without root."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from fabric_case import Fabric, Lab, Topology, build_dir, run_tests  # noqa: E402
import incline_netns  # noqa: E402

PATIENCE = 300  # seconds: hangs only
PERFTEST = ['-x', '1', '-u', '20', '-F', '-n', '100']
TOPOLOGY = {'name': 'ports', 'switches': [{'name': 's0', 'ip': '10.77.255.1', 'ip6': 'fd77::ff:1'}],
            'hosts': [{'name': f'h{i}', 'ip': f'10.77.0.1{i}', 'ip6': f'fd77::1{i}', 'switch': 's0', 'ports': ports}
                      for i, ports in enumerate((1, 1, 3, 3))]}


def until(what, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f'{what}: not after {PATIENCE} s')
        time.sleep(0.02)


class Base(Fabric):
    @classmethod
    def topology(cls):
        return Topology(json.loads(json.dumps(TOPOLOGY)))

    def run_on(self, host, *argv):
        rc, out, err = self.finish([self.start(host, list(argv))], PATIENCE)[0]
        self.assertEqual(rc, 0, f'{argv}: {err}\n{out}')
        return out

    def listens(self, host, port):
        return f':{port} ' in subprocess.run(self.lab.within(host, ['ss', '-ltn']), capture_output=True, text=True).stdout

    def server(self, host, program, port, env=None):
        """A server of perftest, which has opened its device and waits for a client."""
        os.environ.update(env or {})
        try:
            p = self.start(host, [program, *PERFTEST, '-p', str(port)])
        finally:
            for name in env or {}:
                del os.environ[name]
        until(f'{program} on {host} listens', lambda: p.poll() is not None or self.listens(host, port))
        self.assertIsNone(p.poll(), p.communicate() if p.poll() is not None else '')
        return p


@unittest.skipIf(incline_netns.why_not(), incline_netns.why_not())
class Interfaces(Base):
    netns = True

    def ping(self, host, to, *args):
        """Until three are answered."""
        self.run_on(host, 'ping', '-c', '3', '-w', '60', '-i', '0.2', *args, to)

    def test_ping_with_and_without_a_program(self):
        for to in 'h1', 'fd77::11', '10.77.0.13':
            self.ping('h0', to)
        self.ping('h0', 'h1', '-s', '20000')  # fragments are the kernel's
        server = self.server('h1', 'ib_send_bw', 18520)
        self.ping('h0', 'h1')
        self.ping('h0', 'fd77::11')
        self.assertIsNone(server.poll())
        server.kill()
        server.wait()
        self.ping('h0', 'h1')

    def test_programs_meet_over_the_fabric(self):
        stats = os.path.join(self.dir, 'stats.json')
        for program in 'ib_send_bw', 'ib_read_lat':
            server = self.server('h0', program, 18521, {'INCLINE_STATS': stats})
            self.run_on('h2', program, *PERFTEST, '-p', '18521', 'h0')
            self.assertEqual(server.wait(PATIENCE), 0)
            with open(stats) as f:
                port = json.load(f)['port']
            os.remove(stats)
            self.assertGreater(port['tap_rx'], 3)
            self.assertGreater(port['tap_tx'], 3)
            self.assertEqual(port['tap_tx_too_long'], 0)
        self.pair_of_pingpongs('h3', 'h0')

    @unittest.skipUnless(shutil.which('qperf'), 'qperf is not installed (tools/setup does)')
    def test_qperf(self):
        """Its queue pairs have no GRH unless RDMA-CM connects them, on any RoCE NIC."""
        port = '18550'
        server = self.start('h0', ['qperf', '-lp', port])
        until('qperf listens', lambda: server.poll() is not None or self.listens('h0', int(port)))
        for tests, result in ((('rc_bw', 'rc_bi_bw', 'rc_rdma_read_bw', 'rc_rdma_write_bw'), 'bw'),
                              (('rc_lat', 'rc_rdma_read_lat', 'rc_rdma_write_lat', 'rc_rdma_write_poll_lat'), 'latency'),
                              (('rc_compare_swap_mr', 'rc_fetch_add_mr', 'ver_rc_compare_swap', 'ver_rc_fetch_add'),
                               'msg_rate')):
            out = self.run_on('h1', 'qperf', '-lp', port, '-t', '1', '-to', '60', '-cm', '1', 'h0', *tests)
            for test in tests:
                with self.subTest(test):
                    self.assertRegex(out, rf'(?m)^{test}:\n +{result} +=  [1-9]')
        server.kill()

    def pair_of_pingpongs(self, server, client):
        port = '18530'
        one = self.start(server, ['ibv_rc_pingpong', '-g', '1', '-p', port])
        until('ibv_rc_pingpong listens', lambda: self.listens(server, port) or one.poll() is not None)
        two = self.start(client, ['ibv_rc_pingpong', '-g', '1', '-p', port, server])
        if two.wait(PATIENCE):
            one.kill()
        self.all_ok([two, one], PATIENCE)

    def test_a_connection_outlives_programs(self):
        """TCP between two hosts, during which programs take and leave the ports at both ends."""
        listen = self.start('h0', ['python3', '-c', '''
import socket
s = socket.create_server(("10.77.0.10", 18540)); print("listens", flush=True)
c, _ = s.accept(); f = c.makefile("rw")
for line in f:
    f.write(line); f.flush()
'''], env_rnic=False)
        until('the server listens', lambda: self.listens('h0', 18540))
        talk = self.start('h1', ['python3', '-c', '''
import socket, sys
f = socket.create_connection(("10.77.0.10", 18540)).makefile("rw")
for i, _ in enumerate(sys.stdin):
    f.write(f"{i}\\\\n"); f.flush(); assert f.readline() == f"{i}\\\\n"; print(i, flush=True)
'''.replace('\\\\', '\\')], env_rnic=False, stdin=subprocess.PIPE)
        for i in range(4):
            talk.stdin.write('\n')
            talk.stdin.flush()
            self.assertEqual(talk.stdout.readline(), f'{i}\n')
            self.assertIn('PORT_ACTIVE', self.run_on('h0' if i % 2 else 'h1', 'ibv_devinfo'))
        talk.stdin.close()
        talk.stdin = None
        self.assertEqual(talk.wait(PATIENCE), 0)
        self.assertEqual(listen.wait(PATIENCE), 0)

    def start(self, host, argv, env_rnic=True, **kwargs):
        if env_rnic:
            return super().start(host, argv, **kwargs)
        p = subprocess.Popen(self.lab.within(host, argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             **kwargs)
        self.procs.append(p)
        return p

    def test_what_is_wrong_with_the_interface_is_told(self):
        path = self.lab.path('h1.json')
        with open(path) as f:
            config = json.load(f)
        try:
            # In place: a lock is on the file.
            with open(path, 'w') as f:
                json.dump({**config, 'netdev': {'name': 'lo'}}, f)
            rc, _, err = self.finish([self.start('h1', ['ibv_devinfo'])], PATIENCE)[0]
            self.assertNotEqual(rc, 0)
            self.assertIn('netdev: lo: it is no tap device', err)
        finally:
            with open(path, 'w') as f:
                json.dump(config, f)

    def test_down_finds_what_a_crash_left(self):
        with tempfile.TemporaryDirectory(prefix='incline-') as d:
            directory = os.path.join(d, 'lab')
            lab = Lab(directory)
            state = lab.up(Topology(json.loads(json.dumps(TOPOLOGY))), netns=True)
            names = [h['netns'] for h in state['hosts']]
            for row in state['switches'] + state['keepers']:
                os.kill(row['pid'], signal.SIGKILL)
            for p in lab.processes:
                p.wait()
            self.assertTrue(all(os.path.exists(f'/run/netns/{n}') for n in names))
            Lab(directory).down()
            self.assertFalse(any(os.path.exists(f'{at}/{n}') for n in names for at in ('/run/netns', '/etc/netns')))


class Ports(Base):
    def device(self, process):
        """Which port a program took: it says so itself, under INCLINE_VERBS_DEBUG."""
        line = process.stderr.readline()
        return re.fullmatch(r'incline: (incline\d): this process has port .*\.json\n', line).group(1)

    def test_each_process_takes_a_free_port(self):
        debug = {'INCLINE_VERBS_DEBUG': '1'}
        servers = [self.server('h2', 'ib_send_bw', 18550 + i, debug) for i in range(3)]
        self.assertEqual([self.device(p) for p in servers], ['incline0', 'incline1', 'incline2'])
        rc, out, err = self.finish([self.start('h2', ['ibv_devices'])], PATIENCE)[0]
        self.assertIn('INCLINE_RNIC: all 3 ports are taken', err)
        for p, name in zip(servers, ('h2', 'h2-1', 'h2-2')):
            self.assertIn(f'/{name}.json by process {p.pid}', err)
        # Killed, a process gives its port back.
        servers[1].kill()
        servers[1].wait()
        servers[1] = self.server('h2', 'ib_send_bw', 18551, debug)
        self.assertEqual(self.device(servers[1]), 'incline1')
        # All three at once with clients on one other host.
        clients = [self.start('h3', ['ib_send_bw', *PERFTEST, '-s', '65536', '-p', str(18550 + i), '127.0.0.1'])
                   for i in range(3)]
        self.all_ok(clients + servers, PATIENCE)

    def test_one_process_with_several_devices(self):
        os.environ['INCLINE_DEVICES'] = '3'
        try:
            out = self.run_on('h3', 'ibv_devinfo')
        finally:
            del os.environ['INCLINE_DEVICES']
        self.assertEqual(re.findall(r'hca_id:\s*(\S+)', out), ['incline0', 'incline1', 'incline2'])
        self.assertEqual(out.count('PORT_ACTIVE'), 3)

    def forker(self, *args):
        os.environ['INCLINE_DEVICES'] = '2'
        try:
            return self.start('h2', [os.path.join(build_dir(), 'tests/integration/forker'), *args])
        finally:
            del os.environ['INCLINE_DEVICES']

    def test_fork(self):
        rc, out, err = self.finish([self.forker()], PATIENCE)[0]
        self.assertEqual((rc, out), (0, 'ok\n'), err)

    def test_ports_of_a_killed_process_whose_children_live_on(self):
        for _ in range(2):
            parent = self.forker('stay')
            children = [int(word) for word in parent.stdout.readline().split()[1:]]
            self.assertEqual(len(children), 2)
            try:
                parent.kill()
                parent.wait()
                rc, out, err = self.finish([self.forker()], PATIENCE)[0]
                self.assertEqual((rc, out), (0, 'ok\n'), err)
                for child in children:
                    os.kill(child, 0)  # still there
            finally:
                for child in children:
                    os.kill(child, signal.SIGKILL)

    def test_one_port_is_one_process(self):
        server = self.server('h0', 'ib_send_bw', 18560)
        rc, _, err = self.finish([self.start('h0', ['ibv_devinfo'])], PATIENCE)[0]
        self.assertNotEqual(rc, 0)
        self.assertIn(f'h0.json: process {server.pid} uses this port already', err)
        self.run_on('h0', 'ibv_devices')  # looking at the list needs no port


# Their tests are not this file's.
del Fabric

if __name__ == '__main__':
    for needed in 'ib_send_bw', 'ibv_rc_pingpong', 'ping', 'ss':
        if not shutil.which(needed):
            print(f'skipped: {needed} is not installed (tools/setup does)')
            sys.exit(77)
    run_tests(verbosity=2)
