#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""UCX and Open MPI of the distribution, unmodified, on hosts of tools/lab: over RC and UD of the software RNIC.
Run by meson test, or by hand: tests/integration/ucx_mpi.py [TEST...]. Exit 77 (skipped) without ucx-utils, openmpi-bin or
libopenmpi-dev; what needs network namespaces is skipped without root."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from fabric_case import TOP, Fabric, Topology, listening, run_tests  # noqa: E402
import incline_matrix  # noqa: E402
import incline_mpi  # noqa: E402
import incline_netns  # noqa: E402

PATIENCE = 300  # seconds: hangs only
TOPOLOGY = {'name': 'mpi', 'switches': [{'name': 's0', 'ip': '10.77.255.1'}],
            'hosts': [{'name': f'h{i}', 'ip': f'10.77.0.1{i}', 'switch': 's0', 'ports': 4 if i == 3 else 1} for i in range(4)]}
# Not shared memory, by which processes on one machine would find each other.
RC, UD = 'rc,self', 'ud,self'
# What a host that does not get the CPU needs: UCX's own budgets are 7 times a second, and 30 s.
PATIENT = {'UCX_RC_VERBS_TIMEOUT': '4s', 'UCX_UD_VERBS_TIMEOUT': '300s', 'UCX_LOG_LEVEL': 'warn'}


class Base(Fabric):
    @classmethod
    def topology(cls):
        return Topology(json.loads(json.dumps(TOPOLOGY)))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tmp = tempfile.mkdtemp(prefix='incline-')
        cls.program = os.path.join(cls.tmp, 'mpi_allreduce')
        subprocess.run(['mpicc', '-O2', '-o', cls.program, os.path.join(TOP, 'tests/integration/mpi_allreduce.c')],
                       check=True, timeout=PATIENCE)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tmp)
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.saved = dict(os.environ)
        os.environ.update(PATIENT)

    def tearDown(self):
        os.environ.clear()
        os.environ.update(self.saved)
        super().tearDown()

    def stats(self, name):
        with open(os.path.join(self.tmp, name)) as f:
            return json.load(f)

    def mpirun(self, *args):
        start = time.monotonic()
        argv = ['mpirun', '--mca', 'pml', 'ucx', '--mca', 'btl', '^vader,openib', '-x', 'UCX_TLS=' + RC, *args, self.program]
        if os.geteuid() == 0:
            argv.insert(1, '--allow-run-as-root')
        self.saved_stats = os.path.join(self.tmp, 'mpi.json')
        os.environ['INCLINE_STATS'] = self.saved_stats
        os.environ['INCLINE_LAB'] = self.dir
        rc, out, err = self.finish([self.start('h3', argv)], PATIENCE)[0]
        self.assertEqual((rc, out.strip()), (0, '4 ranks, 21 rounds, 0 wrong'), err)
        self.assertGreater(self.stats('mpi.json')['counters']['tx_bytes'], 10 << 20)
        print(f'  mpirun {" ".join(args)}: {time.monotonic() - start:.1f} s', file=sys.stderr)


class Ucx(Base):
    serial = 0

    def perftest(self, tls, *args):
        Ucx.serial += 1
        port = 13400 + Ucx.serial
        with self.subTest(f'{tls} {args}'):
            os.environ['UCX_TLS'] = tls
            argv = ['ucx_perftest', '-p', str(port), '-w', '10', *args]
            server = self.start('h0', argv)
            deadline = time.monotonic() + PATIENCE
            while not listening(port):
                self.assertIsNone(server.poll(), 'the server has ended')
                self.assertLess(time.monotonic(), deadline, 'the server does not listen')
                time.sleep(0.01)
            os.environ['INCLINE_STATS'] = os.path.join(self.tmp, 'client.json')
            client = self.start('h1', [argv[0], '127.0.0.1', *argv[1:]])
            del os.environ['INCLINE_STATS']
            (rc, out, err), (rc2, _, err2) = self.finish([client, server], PATIENCE)
            self.assertEqual((rc, rc2), (0, 0), f'{out}\n{err}\n{err2}')
            final = [line.split() for line in out.splitlines() if line.startswith('Final:')]
            self.assertEqual(len(final), 1, out)
            self.assertEqual(final[0][1], args[args.index('-n') + 1])
            return self.stats('client.json')['counters']

    def test_messages(self):
        for tls in RC, UD:
            for test in 'tag_lat', 'tag_bw', 'tag_sync_lat', 'stream_bw', 'ucp_am_bw':
                count = self.perftest(tls, '-t', test, '-n', '100', '-s', '8')
                self.assertGreater(count['tx_frames'], 4)
            count = self.perftest(tls, '-t', 'tag_bw', '-n', '20', '-s', '1000000')
            self.assertGreater(count['tx_bytes'] + count['rx_bytes'], 20 * 1000000)

    def test_memory(self):
        for test in 'ucp_put_bw', 'ucp_get', 'ucp_add', 'ucp_fadd', 'ucp_swap', 'ucp_cswap':
            self.perftest(RC, '-t', test, '-n', '100', '-s', '8')

    def test_transports(self):
        for transport, tests in ('rc_verbs', ('am_lat', 'am_bw', 'put_lat', 'get', 'fadd', 'cswap')), ('ud_verbs', ('am_lat', 'am_bw')):
            for test in tests:
                layout = ['-D', 'zcopy', '-s', '4096'] if test == 'get' else ['-s', '8']
                self.perftest('all', '-x', transport, '-d', 'incline0:1', '-t', test, *layout, '-n', '100')

    def test_mpi_on_one_host(self):
        """Four ranks, each with a port of the host's."""
        self.mpirun('-np', '4', '--oversubscribe')


@unittest.skipIf(incline_netns.why_not(), incline_netns.why_not())
class Mpi(Base):
    netns = True

    def test_mpi_on_four_hosts(self):
        """A rank on each; mpirun's daemons meet over the hosts' network interfaces."""
        self.mpirun('-np', '4', '--host', 'h3,h0,h1,h2', '--mca', 'plm_rsh_agent', os.path.join(TOP, 'tools/lab') + ' rsh',
                    '--mca', 'oob_tcp_if_include', 'eth0', '--mca', 'btl_tcp_if_include', 'eth0')
        self.assertGreater(self.stats('mpi.json')['port']['tap_rx'], 0)


    def test_collectives_over_tcp(self):
        """The last column of tools/demo --paper: by the interfaces of the hosts."""
        def frames():
            return sum(p['rx_packets'] for p in self.lab.ctl('s0', 'ports')['ports'])
        before = frames()
        path, hosts = incline_mpi.program(self.dir), [h['name'] for h in self.topology().hosts]
        us, wrong, said = incline_mpi.run(self.lab, path, hosts, 'allreduce', 1 << 20, 2, PATIENCE, incline_mpi.TCP)
        self.assertEqual((wrong, said), (0, ''))
        self.assertGreater(us, 0)
        self.assertGreater(frames() - before, 4 * (1 << 20) // 4200)


class Matrix(Fabric):
    """The column beside the modes of tools/demo --matrix."""
    topo = 'tree-2x2'

    def test_every_collective(self):
        hosts = [h['name'] for h in self.topology().hosts]
        path = incline_mpi.program(self.dir)
        for collective in incline_matrix.COLLECTIVES:
            us, wrong, said = incline_mpi.run(self.lab, path, hosts, collective, 1 << 16, 2, PATIENCE)
            self.assertEqual((wrong, said), (0, ''), collective)
            self.assertGreater(us, 0)
        us, wrong, said = incline_mpi.run(self.lab, path, hosts, 'alltoall', 1 << 16, 2, PATIENCE)
        self.assertEqual((us, wrong), (None, None))
        self.assertIn('usage: collectives_mpi', said)


# Their tests are not this file's.
del Fabric

if __name__ == '__main__':
    for needed in 'ucx_perftest', 'mpirun', 'mpicc':
        if not shutil.which(needed):
            print(f'skipped: {needed} is not installed (tools/setup does)')
            sys.exit(77)
    run_tests(verbosity=2)
