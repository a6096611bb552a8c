#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py, as Debian has it, with libincline_mpi.so preloaded on four hosts of tools/lab: its calls on numpy arrays, pickled
objects, sub-communicators, without waiting, in random order; exact, and how many ran in the network. Of tools/test --long, which
installs python3-mpi4py. Exit 77 without it."""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
ROUNDS = 60


def calls_of(comm, MPI, np, rng):
    """One round on a communicator: what every rank gives is known to all."""
    n, me = comm.size, comm.rank
    dtype = rng.choice(['f4', 'f8', 'i4', 'i8', 'u1', 'i2', 'c8'])  # the last two are none of the network's
    name = rng.choice(['SUM', 'MAX', 'MIN', 'PROD'] if dtype != 'c8' else ['SUM', 'PROD'])
    op, fold = getattr(MPI, name), {'SUM': np.add, 'MAX': np.maximum, 'MIN': np.minimum, 'PROD': np.multiply}[name]
    count, root = int(rng.integers(1, 5000)), int(rng.integers(n))
    v = rng.integers(0, 4, (n, n * count)).astype(dtype)
    want = fold.reduce(v, dtype=dtype)
    out = np.empty_like(v[me])
    comm.Allreduce(v[me], out, op)
    assert (out == want).all(), ('Allreduce', dtype, name)
    out[:] = v[me]
    comm.Allreduce(MPI.IN_PLACE, out, op)
    assert (out == want).all(), ('Allreduce in place', dtype, name)
    out[:] = 0
    comm.Reduce(v[me], out if me == root else None, op, root)
    assert me != root or (out == want).all(), ('Reduce', dtype, name)
    block = np.empty(count, dtype)
    comm.Reduce_scatter_block(v[me], block, op)
    assert (block == want[me * count:][:count]).all(), ('Reduce_scatter_block', dtype, name)
    everybody = np.empty_like(v)
    comm.Allgather(v[me], everybody)
    assert (everybody == v).all(), ('Allgather', dtype)
    out[:] = v[me]
    comm.Bcast(out, root)
    assert (out == v[root]).all(), ('Bcast', dtype)
    comm.Barrier()
    requests = [comm.Iallreduce(v[me], out, op), comm.Iallgather(v[me], everybody), comm.Ibarrier()]
    MPI.Request.Waitall(requests)
    assert (out == want).all() and (everybody == v).all(), 'Iallreduce, Iallgather'
    # Pickled: mpi4py makes Bcasts of lengths and bytes of it, or calls of others.
    assert comm.bcast({'root': root} if me == root else None, root) == {'root': root}
    assert comm.allreduce(me) == n * (n - 1) // 2
    assert comm.allgather((me, 'x')) == [(r, 'x') for r in range(n)]


def main():
    import numpy as np
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    rng = np.random.default_rng(5)
    halves = world.Split(world.rank % 2, world.rank)
    for i in range(ROUNDS):
        calls_of(world if i % 3 else halves, MPI, np, rng)
        peer = world.rank ^ 1
        assert world.sendrecv(i, peer, source=peer) == i
    halves.Free()
    print(f'rank {world.rank} is right')


if __name__ == '__main__' and sys.argv[1:] == ['rank']:
    main()
    sys.exit(0)

import unittest  # noqa: E402

from fabric_case import TOP, run_tests  # noqa: E402
from mpi_case import PATIENCE, RANKS, MpiFabric  # noqa: E402


class Mpi4py(MpiFabric):
    def test_program(self):
        each = f'exec {TOP}/tools/lab exec h$OMPI_COMM_WORLD_RANK -- {sys.executable} {os.path.abspath(__file__)} rank'
        p = self.launch_ranks('openmpi', ['sh', '-c', each], preload=True, env={'INCLINE_MPI_SHOW': '1', 'OPENBLAS_NUM_THREADS': '1'})
        rc, out, err = self.finish([p], PATIENCE)[0]
        self.assertEqual((rc, len(re.findall(r'^rank \d is right$', out, re.M))), (0, RANKS), out + err)
        here, of = self.summary(err, out)
        self.assertGreater(here, of / 2)
        print(err, file=sys.stderr)


del MpiFabric

if __name__ == '__main__':
    if subprocess.run([sys.executable, '-c', 'import mpi4py'], capture_output=True).returncode:
        print('skipped: python3-mpi4py is not installed (tools/test --long does)')
        sys.exit(77)
    run_tests(verbosity=2)
