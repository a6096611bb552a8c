#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A thousand connections at once through a switch: of two programs on libincline_stream.so, and of one with the Linux
kernel's TCP at the other end, either calling. Run by meson test, or by hand: tests/integration/stream_many.py [TEST...].
INCLINE_CROWD: how many to each of two addresses."""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
from fabric_case import run_tests  # noqa: E402
import incline_netns  # noqa: E402
import stream_programs  # noqa: E402

COUNT = int(os.environ.get('INCLINE_CROWD', '500'))  # as many as a device has to one address


class Many(stream_programs.Switch):
    """Both ends are ours."""

    def setUp(self):
        super().setUp()
        for host in 'h0', 'h1':
            path = self.lab.path(f'{host}.json')
            with open(path, encoding='utf-8') as f:
                config = json.load(f)
            with open(path, 'w', encoding='utf-8') as f:
                json.dump({**config, 'max_qp': COUNT}, f)

    def test_programs(self):
        stream_programs.checks.during(self.lab, ['s0'], self.impair, self.crowd, COUNT)


@unittest.skipIf(incline_netns.why_not(), incline_netns.why_not())
class Kernel(Many):
    """End `kernel` is a program with the sockets of the interface that its host has on the switch."""
    netns = True

    def start(self, end, argv, **kwargs):
        ours = self.preload(self.lab.path(f'h{end}.json')) if end != self.kernel else []
        return self.popen(self.lab.within(f'h{end}', ['env', *ours, *map(str, argv)]), **kwargs)

    def test_programs(self):
        for self.kernel in 1, 0:
            with self.subTest(kernel=self.kernel):
                super().test_programs()


if __name__ == '__main__':
    run_tests(verbosity=2)
