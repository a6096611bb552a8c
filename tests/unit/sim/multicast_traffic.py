#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""incline-sim multicast traffic: bytes at all switches' ports, as the paper's figure 12 has them."""
import json
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()


class Traffic(unittest.TestCase):
    def test_small(self):
        out = subprocess.run([PROGRAM, 'multicast', 'traffic', '--quick', '--json', '-'], check=True,
                             capture_output=True, text=True).stdout
        rows = json.loads(out[out.index('{\n'):])['rows']
        ratio = {(r['collective'], r['algorithm']): r['ratio'] for r in rows if r['ranks'] == 188}
        self.assertEqual(len(ratio), 6)
        for of in ('broadcast', 'ring'), ('broadcast', 'k-nomial, 4'), ('allgather', 'ring'):
            self.assertGreaterEqual(ratio[of], 1.5, of)
            self.assertLessEqual(ratio[of], 2.05, of)
        self.assertGreater(ratio['broadcast', 'binary tree'], ratio['broadcast', 'k-nomial, 4'])

    def test_unknown(self):
        done = subprocess.run([PROGRAM, 'multicast', 'speed'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn('multicast: speed: ', done.stderr)


if __name__ == '__main__':
    unittest.main()
