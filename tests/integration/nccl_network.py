#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The NCCL plug-in on hosts of tools/lab, loaded and called by a program that stands for NCCL (nccl_rank.c): messages and sums
are exact, and a rank that ends is an error to who waits for it. Run by meson test, or by hand."""
import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from fabric_case import Fabric, build_dir, run_tests  # noqa: E402

PATIENCE = 120  # seconds: hangs only
INVALID_USAGE, REMOTE_ERROR = 5, 6


class Network(Fabric):
    def launch(self, *args, hosts=range(4)):
        """Rank by rank on these hosts."""
        tmp = tempfile.TemporaryDirectory(prefix='incline-')
        self.addCleanup(tmp.cleanup)
        os.environ['NCCL_NET_PLUGIN'] = 'incline'
        return [self.start(f'h{host}', ['env', f'LD_LIBRARY_PATH={build_dir()}/lib/nccl', f'{build_dir()}/tests/integration/nccl_rank',
                                        tmp.name, str(rank), str(len(hosts)), '1', *args]) for rank, host in enumerate(hosts)]

    def exact(self, **how):
        for rc, out, err in self.finish(self.launch(**how), PATIENCE):
            self.assertEqual((rc, out), (0, 'device incline0\n400 messages, 0 wrong\n200 sums, 0 wrong\n20 windows, 0 wrong\n'), err)
            self.assertEqual(len(re.findall('a caller is not taken: (?!it says nothing)', err)), 2, err)
            self.assertEqual(len(re.findall('a caller is not taken: it says nothing, and another calls', err)), 3, err)
            self.assertGreater(int(re.search(r'(\d+) operations in the network', err)[1]), 220)
        self.no_groups_left('s0')

    def test_exact(self):
        self.exact()

    def test_some(self):
        """Of the group file's ranks three, in another order."""
        self.exact(hosts=[3, 0, 2])

    def test_death(self):
        said = self.finish(self.launch('dies'), PATIENCE)
        self.assertEqual([rc for rc, _, _ in said], [0] * 4, said)
        for rank in 0, 2, 3:
            self.assertIn(f'AllReduce: {REMOTE_ERROR}\n', said[rank][1], said[rank][2])
        self.assertIn(f'send: {REMOTE_ERROR}\n', said[0][1], said[0][2])
        self.assertIn(f'receive: {REMOTE_ERROR}\n', said[2][1], said[2][2])

    def test_short(self):
        """A receiver with less room than its sender needs."""
        for rc, out, err in self.finish(self.launch('short'), PATIENCE):
            self.assertEqual((rc, out), (0, f'device incline0\nsend: {INVALID_USAGE}\n'), err)
            self.assertIn('WARN NET/Incline: incline0, sending: more bytes than the receiver has room for', err)


if __name__ == '__main__':
    run_tests()
