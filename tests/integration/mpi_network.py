#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that know MPI only, with libincline_mpi.so preloaded, on four hosts of tools/lab: what docs/mpi.md says runs in
the network does, all of it, and results are exact. Open MPI, and MPICH where it is installed. Run by meson test, or by hand.
Exit 77 (skipped) without Open MPI."""
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from fabric_case import TOP, run_tests  # noqa: E402
from mpi_case import LAUNCHERS, LIBRARIES, PATIENCE, MpiFabric  # noqa: E402

ROUNDS = '50'
SAID = re.compile(r'(\d+) calls, (\d+) of them for the network, (\d+) wrong')


class Network(MpiFabric):
    topo = 'tree-2x2'

    def program(self, mpi, source):
        path = os.path.join(self.tmp, f'{source}.{mpi}')
        if not os.path.exists(path):
            subprocess.run(['mpicc.' + mpi, '-O1', '-o', path, os.path.join(TOP, 'tests/integration', source)],
                           check=True, timeout=PATIENCE)
        return path

    def launch(self, mpi, args, preload=True, host='$rank', source='mpi_calls.c', **env):
        """Rank by rank on h0 to h3, or as an expression of the shell says. A rank that fails ends the launcher: MPICH's does not
        notice one that ends before MPI_Init, and the others wait for it there without a bound."""
        each = (f'rank=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}; {TOP}/tools/lab exec h{host} -- env $GROUP "$@"; rc=$?\n'
                '[ $rc -eq 0 ] || { echo "rank $rank ended with $rc" >>$ENDED; kill $LAUNCHER; }; exit $rc')
        self.ended = os.path.join(self.tmp, 'ended')  # what ranks write themselves may die with the launcher
        open(self.ended, 'w').close()
        return self.launch_ranks(mpi, ['sh', '-c', each, 'sh', self.program(mpi, source), *args],
                                 before=['sh', '-c', 'export LAUNCHER=$$; exec "$@"', 'sh'], preload=preload,
                                 env={'ENDED': self.ended, **env}, stdin=subprocess.PIPE)

    def exact(self, mpi, seed, *more, **how):
        rc, out, err = self.finish([self.launch(mpi, [seed, ROUNDS, *more], **how)], PATIENCE)[0]
        said = SAID.search(out)
        self.assertTrue(rc == 0 and said, f'{out}\n{err}')
        calls, network, wrong = map(int, said.groups())
        self.assertEqual(wrong, 0)
        return calls, network, err

    def in_network(self, mpi, seed, *more, **how):
        calls, network, err = self.exact(mpi, seed, *more, **how)
        self.assertEqual(self.summary(err), (network, calls), err)
        self.assertGreater(network, calls / 2)
        print(f'  {mpi}: {network} of {calls} calls ran in the network', file=sys.stderr)
        return err

    def test_openmpi(self):
        """The world's ranks on hosts in another order than the group file has them."""
        err = self.in_network('openmpi', '1', host='$((3 - rank))', INCLINE_MPI_SHOW='1')
        self.assertIn('incline: MPI_COMM_WORLD of 4 ranks: in the network: ', err)
        self.assertIn('of 1 ranks: not in the network: a rank alone needs no network', err)
        self.assertRegex(err, r'elsewhere \d+: type')

    def test_without(self):
        """The program is right about itself; the library without a group leaves all to MPI, and says so."""
        _, _, err = self.exact('openmpi', '1', preload=False)
        self.assertNotIn('incline', err)
        calls, _, err = self.exact('openmpi', '1', INCLINE_MPI_SHOW='1', GROUP='-u INCLINE_GROUP')
        self.assertIn(f'incline: 0 of {calls} calls', err)
        self.assertIn('neither INCLINE_GROUP nor INCLINE_MANAGER is set', err)

    @unittest.skipUnless(os.path.exists(LIBRARIES['mpich']), 'MPICH is not installed')
    def test_mpich(self):
        """Its launcher gives each rank a session of its own, in which a rank that waits for a message polls the switches off
        their cores (docs/lab.md, "A crowded machine"): so no messages here."""
        self.in_network('mpich', '3', 'calm', INCLINE_MPI_REGISTER='all')

    def test_resume(self):
        """A group that fails under a program whose group file says "resume": it goes on by a ring, and nothing is wrong."""
        p = self.launch('openmpi', ['told'], GROUP='INCLINE_GROUP=' + self.variant(resume=True, timeout_ms=60000))
        self.assertEqual(self.line(p, PATIENCE), 'ready\n')
        groups = [g['name'] for g in self.rpc('spine', 'group.list')['result']['groups']]
        self.assertEqual(groups, ['tree-2x2.0.0'], 'the world is not in the network')
        self.rpc('leaf1', 'group.fail', {'group': groups[0]})
        p.stdin.write('enough\n')
        rc, out, err = self.finish([p], PATIENCE)[0]
        self.assertEqual(rc, 0, out + err)
        self.assertRegex(out, r'^\d+ turns, 0 wrong\n$', err)
        self.assertEqual(err.count('goes on by a ring of the hosts, without the switches, from collective'), 1, err)
        self.assertIn('(100.0 %)', err)
        self.no_groups_left('spine', 'leaf0', 'leaf1')

    def test_resume_two_at_once(self):
        """Both groups fail under a program of which half the ranks wait for the one communicator first and half for the other;
        and a rank that waits for a message is needed in both. At the end they have seen the two in different orders."""
        p = self.launch('openmpi', [], source='mpi_meet.c',
                        GROUP='INCLINE_GROUP=' + self.variant(resume=True, timeout_ms=60000))
        self.assertEqual(self.line(p, PATIENCE), 'ready\n')
        groups = sorted(g['name'] for g in self.rpc('spine', 'group.list')['result']['groups'])
        self.assertEqual(groups, ['tree-2x2.0.0', 'tree-2x2.0.1', 'tree-2x2.0.2'], 'not all are in the network')
        for name in groups[1:]:
            self.rpc('leaf1', 'group.fail', {'group': name})
        p.stdin.write('enough\n')
        rc, out, err = self.finish([p], PATIENCE)[0]
        self.assertEqual(rc, 0, out + err)
        self.assertRegex(out, r'^\d+ turns, 0 wrong\n$', err)
        for name in groups[1:]:
            self.assertEqual(err.count(f'group {name} goes on by a ring of the hosts, without the switches, '), 1, err)
        self.no_groups_left('spine', 'leaf0', 'leaf1')

    def test_refused_at_one(self):
        """What is refused at one rank alone ends the communicator for all, at that call: the next one would pass for it."""
        for how in ('waits', 'later'):
            with self.subTest(how):
                p = self.launch('openmpi', [how], source='mpi_refused.c',
                                GROUP='INCLINE_GROUP=' + self.variant(timeout_ms=60000))
                rc, out, err = self.finish([p], PATIENCE)[0]
                self.assertEqual(rc, 0, out + err)
                said = re.findall(r'^rank \d, call \d: Incline: .*was refused at this one: Invalid argument', out, re.M)
                self.assertEqual(len(said), 8, out)

    def test_resume_without_room(self):
        """The world takes all memory of the switches: for the second communicator they have none, and a ring from the beginning
        is nothing for an MPI program, whose library has better."""
        full = self.variant(resume=True, M=64, W=16)
        _, _, err = self.exact('openmpi', '1', INCLINE_MPI_SHOW='1', GROUP='INCLINE_GROUP=' + full)
        self.assertIn('incline: MPI_COMM_WORLD of 4 ranks: in the network: one mixed group', err)
        self.assertRegex(err, 'a communicator of 4 ranks: not in the network: a ring of the hosts, without the switches: ')

    def test_multicast(self):
        """The file's multicast group is the world's, and no other communicator's; here nothing is long enough for it."""
        group = self.variant(multicast={'group': '239.129.0.1', 'min_bytes': 2**31 - 1})
        _, _, err = self.exact('openmpi', '1', INCLINE_MPI_SHOW='1', GROUP='INCLINE_GROUP=' + group)
        self.assertRegex(err, 'incline: MPI_COMM_WORLD of 4 ranks: in the network: .*by multicast')
        self.assertRegex(err, 'a communicator of [234] ranks: in the network: ')
        self.assertEqual(err.count('by multicast'), 1, err)

    def test_a_rank_does_not_start(self):
        for mpi in LAUNCHERS:
            if shutil.which(LAUNCHERS[mpi][0]) and shutil.which('mpicc.' + mpi):
                with self.subTest(mpi):
                    p = self.launch(mpi, ['3', '1', 'calm'], preload=False, host='$((rank == 1 ? 9 : rank))')
                    rc, out, err = self.finish([p], PATIENCE)[0]
                    self.assertNotEqual(rc, 0, out + err)
                    with open(self.ended) as f:
                        self.assertRegex(f.read(), r'rank 1 ended with \d+')

    def test_switch_dies(self):
        """An error of the network is one of the communicator's, in CommLib's words."""
        p = self.launch('openmpi', ['fail'], GROUP='INCLINE_GROUP=' + self.variant(timeout_ms=2000))
        self.assertEqual(self.line(p, PATIENCE), 'ready\n')
        self.breaks_fabric()
        self.lab.signal(self.lab.state()['switches'][0], 9)
        rc, out, err = self.finish([p], PATIENCE)[0]
        self.assertEqual(rc, 0, err)
        self.assertEqual(len(re.findall(r'^rank \d: own class: Incline: .*(switch|rank)', out, re.M)), 4, out)


# Its tests are not this file's.
del MpiFabric

if __name__ == '__main__':
    if not shutil.which('mpirun.openmpi') or not shutil.which('mpicc.openmpi'):
        print('skipped: Open MPI is not installed (tools/setup does)')
        sys.exit(77)
    run_tests(verbosity=2)
