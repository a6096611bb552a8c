#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What tools/demo says of the switch beside a ring: counted at the ports, and nothing where a run did not end well."""
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../tools'))
import incline_compare as c  # noqa: E402

HEADERS = 1.01  # bytes sent per byte of payload


class Lab:
    """Two hosts at a switch, and a port between switches that does not count."""
    def __init__(self, directory):
        self.directory, self.sent = directory, 0

    def path(self, name):
        return os.path.join(self.directory, name)

    def state(self):
        return {'switches': [{'name': 's0'}], 'hosts': [{'name': 'h0', 'rank': 0}, {'name': 'h1', 'rank': 1}]}

    def ctl(self, switch, *words):
        assert (switch, words) == ('s0', ('ports',))
        return {'ports': [{'name': n, 'rx_bytes': b, 'tx_bytes': b} for n, b in (('h0', self.sent), ('h1', self.sent), ('up', 999 * self.sent))]}


class Compare(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix='incline-')
        self.addCleanup(directory.cleanup)
        self.lab, self.said, self.wrong, self.ends, self.row = Lab(directory.name), [], 0, True, None

    def run_ranks(self, lab, program, args, group, timeout, show=True):
        argv = args(0)
        way, size = argv[argv.index('--algorithm') + 1], int(argv[argv.index('-b') + 1])
        runs = 2 * (int(argv[argv.index('-n') + 1]) + 1)
        lab.sent += int(runs * size * HEADERS * {'ring': 1.5, 'inc': 1}[way])
        with open(argv[argv.index('--json') + 1], 'w') as f:
            json.dump({'allreduce': [{'algorithm': self.row or way, 'wrong': self.wrong, 'algbw_gbps': 2.5}]}, f)
        return self.ends

    def compare(self):
        return c.run(self.lab, self.run_ranks, self.said.append, 1)

    def test_rows(self):
        ring, inc = self.compare()
        self.assertEqual([(r['algorithm'], round(r['sent'], 3), round(r['received'], 3)) for r in (ring, inc)],
                         [('ring', 1.515, 1.515), ('inc', 1.01, 1.01)])
        self.assertEqual([line.count('#') for line in c.picture([ring, inc])], [c.BAR, round(c.BAR / 1.5)])

    def test_what_did_not_end_well(self):
        for name, value in ('wrong', 1), ('ends', False), ('row', 'multicast'):
            with self.subTest(name):
                good = getattr(self, name)
                setattr(self, name, value)
                self.assertIsNone(self.compare())
                setattr(self, name, good)
        self.assertIsNotNone(self.compare())


if __name__ == '__main__':
    unittest.main()
