#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ten thousand knocks at the sockets of a switch while its hosts sum: of those who are no clients, of
`incline-switch --check` and of a second switch with the same configuration. Results stay exact."""
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from fabric_case import Fabric, app, build_dir  # noqa: E402

KNOCKS = 5000  # at each socket, at least


class Knocked(Fabric):
    def knock(self, *args):
        return subprocess.Popen([os.path.join(build_dir(), 'tests/integration/knocker'), *map(str, args)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def switch(self, *args):
        return subprocess.run([app('incline-switch'), '-c', self.lab.path('s0.json'), *args],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)

    def values(self):
        return {v['name']: v['value'] for v in self.rpc('s0', 'stats.get', {'what': 'values'})['result']['values']}

    def test_results_stay_exact(self):
        # Long enough that the port has its client until the last knock: a free one would take a knocker for it.
        procs = self.perf(range(4), '-b', '64K', '-e', '64K', '-n', '24000', '-d', 'int32')
        knockers = [self.knock('memif', self.lab.link_socket('s0', 'h0'), 0, KNOCKS // 10 + 1),
                    self.knock('control', self.lab.control_socket('s0'), KNOCKS)]
        self.procs += knockers
        check = self.switch('--check')
        self.assertEqual(check.returncode, 0, check.stderr)
        second = self.switch()
        self.assertEqual(second.returncode, 1, second.stdout)
        self.assertRegex(second.stderr, r'another process \(PID \d+\) serves ')
        for out, err in [k.communicate(timeout=240) for k in knockers]:
            self.assertEqual(err, '')
            self.assertGreaterEqual(int(out), KNOCKS)
        self.assertTrue(all(p.poll() is None for p in procs), 'the job ended before the knocks')
        self.all_ok(procs, 240)
        values = self.values()
        for reason in 'gone', 'type', 'length', 'version', 'mode', 'id', 'busy', 'fds':
            self.assertGreaterEqual(int(values['memif_refused_' + reason]), KNOCKS // 10, reason)


if __name__ == '__main__':
    unittest.main(verbosity=2)
