#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs of librdmacm through a switch: rdma-core's rping, ucmatose, udaddy, rdma_server, and
perftest with -R, on hosts of tools/lab. Run by meson test, or by hand: tests/integration/verbs_cm.py [TEST...].
Exit 77 (skipped) without rdmacm-utils or perftest."""
import json
import os
import shutil
import sys
import unittest

sys.dont_write_bytecode = True
from cm_pair import ADDRESS, ADDRESS6, DROP_IN, PATIENCE, Pair  # noqa: E402
from fabric_case import TOP, Topology, run_tests  # noqa: E402


def two_families():
    with open(os.path.join(TOP, 'tools/fabrics/star4.json')) as f:
        fabric = json.load(f)
    for i, node in enumerate(fabric['hosts']):
        node['ip6'] = f'fd77::{10 + i}'
    for node in fabric['switches']:
        node['ip6'] = 'fd77::ff'
    return Topology(fabric)


class TwoFamilies(Pair):
    @classmethod
    def topology(cls):
        return two_families()


class Programs(TwoFamilies):
    def test_rping(self):
        self.rping(ADDRESS, 20)

    def test_rping_over_ipv6(self):
        self.rping(ADDRESS6, 10)

    def test_rping_one_after_another_at_a_persistent_server(self):
        self.persistent(5)

    def test_ucmatose(self):
        s, c = self.pair(['ucmatose', '-c', '10', '-C', '20', '-S', '1000'],
                         ['ucmatose', '-s', ADDRESS, '-c', '10', '-C', '20', '-S', '1000'])
        self.assertIn('return status 0', s)
        self.assertIn('return status 0', c)

    def test_udaddy(self):
        s, c = self.pair(['udaddy', '-c', '3', '-C', '10'], ['udaddy', '-s', ADDRESS, '-c', '3', '-C', '10'])
        self.assertIn('return status 0', s)
        self.assertIn('return status 0', c)

    def test_endpoints(self):
        """rdma_getaddrinfo, rdma_create_ep, rdma_get_request: IDs without a channel."""
        s, c = self.pair(['rdma_server'], ['rdma_client', '-s', ADDRESS])
        self.assertIn('rdma_server: end 0', s)
        self.assertIn('rdma_client: end 0', c)

    def test_perftest(self):
        for program in (['ib_write_bw'], ['ib_send_bw'], ['ib_read_bw', '-q', '4'], ['ib_send_bw', '-c', 'UD'],
                        ['ib_send_lat']):
            with self.subTest(' '.join(program)):
                argv = program + ['-R', '-F', '-n', '100', '-u', '20']
                s, c = self.pair(argv, argv + [ADDRESS])
                self.assertRegex(c, r'\n *\d+ +\d+ +[\d.]+')

    def test_perftest_by_the_drop_in_libraries(self):
        command = [*DROP_IN, 'ib_write_bw', '-R', '-n', '200', '-s', '65536', '-F', '-x', '1']
        s, c = self.pair(command, [*command, ADDRESS])
        self.assertRegex(c, r'(?m)^ 65536 +200 ')

    def test_nobody_listens(self):
        client = ['rping', '-c', '-a', ADDRESS, '-p', '7001', '-C', '1']
        c, s = self.once(['rping', '-s', '-a', ADDRESS, '-p', '7000'], client)
        self.assertNotEqual(c[0], 0)
        self.assertRegex(c[1], 'REJECTED|UNREACHABLE|ADDR_ERROR')

    def test_without_a_device_calls_pass_through(self):
        p = self.start('h2', ['env', '-u', 'INCLINE_RNIC', 'rping', '-s', '-a', ADDRESS])
        rc, out, err = self.finish([p], PATIENCE)[0]
        self.assertNotEqual(rc, 0, out)


class BadWeather(TwoFamilies):
    impair = {'loss': 0.05, 'tx_loss': 0.05, 'dup': 0.05, 'reorder': 0.05, 'seed': 7}

    def test_rping_and_ucmatose(self):
        self.in_weather(self.programs)

    def programs(self):
        self.rping(ADDRESS, 10, '-S', '60000')  # many packets at once: or none would be there to overtake
        s, c = self.pair(['ucmatose', '-c', '5', '-C', '5'], ['ucmatose', '-s', ADDRESS, '-c', '5', '-C', '5'])
        self.assertIn('return status 0', c)


# Their tests are not this file's.
del Pair, TwoFamilies

if __name__ == '__main__':
    os.environ.pop('LD_LIBRARY_PATH', None)  # meson names the drop-in libraries there
    for needed in 'rping', 'ib_send_bw':
        if not shutil.which(needed):
            print(f'skipped: {needed} is not installed (tools/setup does)')
            sys.exit(77)
    run_tests(verbosity=2)
