#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified verbs programs of the distribution through a switch: rdma-core's examples and perftest, on hosts
of tools/lab. Run by meson test (Sizes by tools/test --long), or by hand: tests/integration/verbs_programs.py [TEST...].
Exit 77 (skipped) without ibverbs-utils or perftest."""
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from fabric_case import Fabric, family, free_port, listening, run_tests  # noqa: E402

PATIENCE = 300  # seconds for a pair of programs: hangs only
SIZES = [1 << n for n in range(1, 24)]  # perftest's -a
# perftest's own retry budget is half a second, which a process that gets no CPU for so long exceeds.
COMMON = ['-x', '1', '-u', '20', '-F']
ROW = re.compile(r'^ *(\d+) +(\d+) +([\d.]+) +([\d.]+)')


class Pairs(Fabric):
    def pair(self, argv, hosts=('h0', 'h1')):
        """A server and, as soon as it listens, its client; what the client and the server print."""
        port = free_port()
        server = self.start(hosts[0], [*argv, '-p', str(port)])
        deadline = time.monotonic() + PATIENCE
        while not listening(port):
            if server.poll() is not None:
                self.fail(f'{argv}: the server has ended: {server.communicate()}')
            self.assertLess(time.monotonic(), deadline, f'{argv}: the server does not listen')
            time.sleep(0.01)
        client = self.start(hosts[1], [*argv, '-p', str(port), '127.0.0.1'])
        outs = []
        try:
            for p in client, server:
                try:
                    out, err = p.communicate(timeout=PATIENCE)
                except subprocess.TimeoutExpired:
                    self.fail(f'{argv}: no end after {PATIENCE} s')
                self.assertEqual(p.returncode, 0, f'{argv}: {err}\n{out}')
                outs.append(out)
        finally:
            for p in client, server:  # the next pair needs the host's port
                if p.poll() is None:
                    kill(family(p.pid))
                    p.wait()
        return outs

    def perftest(self, program, *args, sizes, iters, qps=1, reports=(0,), hosts=('h0', 'h1')):
        """reports: who prints a table, 0 the client, 1 the server."""
        with self.subTest(program + ' ' + ' '.join(args)):
            start = time.monotonic()
            outs = self.pair([program, *COMMON, '-n', str(iters), *args], hosts)
            for i in reports:
                rows = [ROW.match(line).groups() for line in outs[i].splitlines() if ROW.match(line)]
                self.assertEqual([int(r[0]) for r in rows], sizes, outs[i])
                for _, count, _, average in rows:
                    self.assertEqual(int(count), iters * qps, outs[i])
                    self.assertGreaterEqual(float(average), 0)
            print(f'  {program} {" ".join(args)}: {time.monotonic() - start:.1f} s', file=sys.stderr)


class Sizes(Pairs):
    """Every power of two up to 8 MB, by each verb."""

    def test_bandwidth(self):
        for program in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
            self.perftest(program, '-a', sizes=SIZES, iters=5)

    def test_latency(self):
        for program in 'ib_send_lat', 'ib_write_lat', 'ib_read_lat':
            self.perftest(program, '-a', sizes=SIZES, iters=5)


class Programs(Pairs):
    def test_devices(self):
        for argv, wanted in ((['ibv_devices'], ['incline0']),
                             (['ibv_devinfo', '-v'], ['incline0', 'PORT_ACTIVE (4)', 'RoCE v2', 'MEM_WINDOW',
                                                      'vendor_id:\t\t\t0x2494e'])):
            rc, out, err = self.finish([self.start('h2', argv)], PATIENCE)[0]
            self.assertEqual(rc, 0, err)
            for text in wanted:
                self.assertIn(text, out)

    def test_pingpong(self):
        for program in 'ibv_rc_pingpong', 'ibv_uc_pingpong', 'ibv_ud_pingpong', 'ibv_srq_pingpong':
            for events in [], ['-e']:
                with self.subTest(program + ' '.join(events)):
                    self.pingpong(program, 'h0', 'h1', '-n', '100', *events)
        self.pingpong('ibv_rc_pingpong', 'h0', 'h1', '-n', '100', '-c', '-s', '9000')  # it compares what it got
        self.pingpong('ibv_rc_pingpong', 'h0', 'h1', '-n', '20', '-s', '1048576', '-m', '4096')

    def test_bandwidth(self):
        """All sizes once; of the other verbs messages of several packets, the last a short one."""
        self.perftest('ib_write_bw', '-a', sizes=SIZES, iters=5)
        for program in 'ib_send_bw', 'ib_read_bw':
            self.perftest(program, '-s', '100000', sizes=[100000], iters=20)

    def test_bandwidth_both_ways_over_several_queue_pairs(self):
        for program in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
            self.perftest(program, '-b', '-q', '4', sizes=[65536], iters=20, qps=4)
        self.perftest('ib_atomic_bw', '-b', '-q', '2', sizes=[8], iters=50, qps=2)

    def test_unreliable_bandwidth(self):
        self.perftest('ib_write_bw', '-c', 'UC', '-s', '10000', sizes=[10000], iters=20)

    def test_latency(self):
        for program in 'ib_send_lat', 'ib_write_lat', 'ib_read_lat':
            self.perftest(program, '-s', '100000', sizes=[100000], iters=20)
        self.perftest('ib_send_lat', '-c', 'UD', '-s', '1000', sizes=[1000], iters=50)
        self.perftest('ib_send_lat', '-e', '-s', '64', sizes=[64], iters=50)
        for kind in 'FETCH_AND_ADD', 'CMP_AND_SWAP':
            self.perftest('ib_atomic_lat', '-A', kind, sizes=[8], iters=50)

# They have no tests of their own, and Fabric's are not this file's.
del Fabric, Pairs

if __name__ == '__main__':
    for needed in 'ibv_rc_pingpong', 'ib_send_bw':
        if not shutil.which(needed):
            print(f'skipped: {needed} is not installed (tools/setup does)')
            sys.exit(77)
    run_tests(verbosity=2)
