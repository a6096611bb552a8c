#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs on devices whose queue pairs are iWARP's (docs/iwarp.md), through a switch, on hosts of tools/lab:
ibv_devinfo, rping, ucmatose and rdma_server of rdma-core, perftest with -R; what is not to be had is refused by name. Run
by meson test, or by hand: tests/integration/verbs_iwarp.py [TEST...]. Exit 77 (skipped) without rdmacm-utils or perftest."""
import json
import os
import shutil
import sys
import time
import unittest

sys.dont_write_bytecode = True
from cm_pair import ADDRESS, ADDRESS6, DROP_IN, PATIENCE, Pair  # noqa: E402
from fabric_case import run_tests  # noqa: E402
from incline_lab import free_port, listening  # noqa: E402


class OverTcp(Pair):
    topo = 'iwarp2'

    def counters(self, client, *server):
        """What the client's device has counted, of a pair that ends well."""
        stats = self.lab.path('stats.json')
        self.pair([*server], ['env', f'INCLINE_STATS={stats}', *client])
        with open(stats) as f:
            return json.load(f)['counters']


class Programs(OverTcp):
    def test_devinfo(self):
        rc, out, err = self.finish([self.start('h0', ['ibv_devinfo'])], PATIENCE)[0]
        self.assertEqual(rc, 0, err)
        self.assertRegex(out, r'transport:\s+iWARP \(1\)')
        self.assertRegex(out, r'state:\s+PORT_ACTIVE')

    def test_rping(self):
        self.rping(ADDRESS, 20)

    def test_rping_over_ipv6(self):
        self.rping(ADDRESS6, 10)

    def test_rping_one_after_another_at_a_persistent_server(self):
        self.persistent(3)

    def test_ucmatose(self):
        s, c = self.pair(['ucmatose', '-c', '10', '-C', '20', '-S', '1000'],
                         ['ucmatose', '-s', ADDRESS, '-c', '10', '-C', '20', '-S', '1000'])
        self.assertIn('return status 0', s)
        self.assertIn('return status 0', c)

    def test_endpoints(self):
        s, c = self.pair(['rdma_server'], ['rdma_client', '-s', ADDRESS])
        self.assertIn('rdma_server: end 0', s)
        self.assertIn('rdma_client: end 0', c)

    def test_perftest(self):
        for program in (['ib_write_bw'], ['ib_send_bw'], ['ib_read_bw', '-q', '4'], ['ib_send_lat'], ['ib_read_lat'],
                        ['ib_write_lat']):
            with self.subTest(' '.join(program)):
                argv = program + ['-R', '-F', '-n', '100']
                s, c = self.pair(argv, argv + [ADDRESS])
                self.assertRegex(c, r'\n *\d+ +\d+ +[\d.]+')

    def test_perftest_by_the_drop_in_libraries(self):
        argv = [*DROP_IN, 'ib_write_bw', '-R', '-F', '-n', '100']
        s, c = self.pair(argv, argv + [ADDRESS])
        self.assertRegex(c, r'(?m)^ 65536 +100 ')

    def test_it_is_tcp(self):
        argv = ['rping', '-C', '5', '-a', ADDRESS]
        counters = self.counters([*argv, '-c'], *argv, '-s')
        self.assertEqual(counters['iwarp_established'], 1)
        self.assertGreater(counters['tcp_sent'], 10)
        self.assertEqual(counters['cm_tx'], 0)

    def test_datagrams_are_refused(self):
        rc, out, err = self.finish([self.start('h0', ['env', 'INCLINE_VERBS_DEBUG=1', 'udaddy'])], PATIENCE)[0]
        self.assertNotEqual(rc, 0)
        self.assertIn('iWARP has connections of RDMA_PS_TCP only', out + err)

    def test_connecting_by_hand_is_refused(self):
        port = free_port()
        argv = ['ibv_rc_pingpong', '-g', '0', '-p', str(port)]
        server = self.start('h0', ['env', 'INCLINE_VERBS_DEBUG=1', *argv])
        deadline = time.monotonic() + PATIENCE
        while not listening(port):
            self.assertTrue(server.poll() is None and time.monotonic() < deadline, 'the server does not listen')
            time.sleep(0.02)
        (s, out, err), (c, _, _) = self.finish([server, self.start('h1', [*argv, '127.0.0.1'])], PATIENCE)
        self.assertNotEqual(s, 0)
        self.assertNotEqual(c, 0)
        self.assertIn('queue pairs of iWARP are connected by rdma_connect and rdma_accept', out + err)

    def test_nobody_listens(self):
        c, s = self.once(['rping', '-s', '-a', ADDRESS, '-p', '7000'],
                         ['rping', '-c', '-a', ADDRESS, '-p', '7001', '-C', '1'])
        self.assertNotEqual(c[0], 0)
        self.assertIn('REJECTED', c[1])


class BadWeather(OverTcp):
    impair = {'loss': 0.02, 'tx_loss': 0.02, 'dup': 0.02, 'reorder': 0.02, 'seed': 7}

    def test_rping_and_perftest(self):
        self.rping(ADDRESS, 10)
        argv = ['ib_write_bw', '-R', '-F', '-n', '100']
        self.pair(argv, argv + [ADDRESS])


# Their tests are not this file's.
del OverTcp, Pair

if __name__ == '__main__':
    os.environ.pop('LD_LIBRARY_PATH', None)  # meson names the drop-in libraries there
    for needed in 'rping', 'ib_send_bw':
        if not shutil.which(needed):
            print(f'skipped: {needed} is not installed (tools/setup does)')
            sys.exit(77)
    run_tests(verbosity=2)
