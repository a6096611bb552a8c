#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Package incline on four hosts of tools/lab: every collective, exact, in and out of place, registered and not; 80 at a time;
errors as exceptions, and others hear of them. Run by meson test, or by hand. Exit 77 without numpy."""
import os
import select
import sys

sys.dont_write_bytecode = True
try:
    import numpy as np
except ImportError:
    print('skipped: numpy is not installed (tools/setup does)')
    sys.exit(77)

PATIENCE = 60  # seconds: hangs only
PRODUCTS = ['float32', 'float64', 'int32', 'int64', 'uint32', 'uint64', 'float16']
NUMBERS = [*PRODUCTS, 'int8', 'uint8']
FOLD = {'sum': np.add, 'min': np.minimum, 'max': np.maximum, 'prod': np.multiply}


def given(rng, ranks, count, dtype, op):
    """What each rank gives, known to all: small numbers, so that floats are exact."""
    low = 0 if dtype.startswith('u') or op == 'prod' else -3
    return rng.integers(low, 4, (ranks, count)).astype(dtype)


def every_collective(comm):
    rng, n, me = np.random.default_rng(7), comm.size, comm.rank
    for dtype in NUMBERS:
        for op in FOLD if dtype in PRODUCTS else ('sum', 'min', 'max'):
            v = given(rng, n, 1000 * n, dtype, op)
            want = FOLD[op].reduce(v, dtype=dtype)
            root = int(rng.integers(n))
            mine = v[me].copy()
            out = comm.allreduce(v[me], np.empty_like(mine), op)
            assert (out == want).all(), ('allreduce', dtype, op)
            assert comm.allreduce(mine, op=op) is mine and (mine == want).all(), ('in place', dtype, op)
            got = comm.reduce(v[me], np.empty_like(mine) if me == root else None, op, root)
            assert got is None if me != root else (got == want).all(), ('reduce', dtype, op)
            mine = v[me].copy()
            block = comm.reduce_scatter(mine, op=op)
            assert np.shares_memory(block, mine), 'in place'
            assert (block == want[me * 1000:][:1000]).all(), ('reduce_scatter', dtype, op)
            assert (comm.reduce_scatter(v[me], np.empty_like(block), op) == block).all(), ('reduce_scatter', dtype, op)
    half = np.full(5, 0x3f80, 'uint16')  # 1.0
    assert (comm.allreduce(half, dtype='bfloat16') == 0x4080).all()
    for dtype in 'complex128', 'bool', 'S7', [('a', 'i4'), ('b', 'f8')]:
        v = rng.integers(0, 2, (n, 300)).astype(dtype)
        everybody = comm.allgather(v[me])
        assert (everybody == v).all(), ('allgather', dtype)
        mine = np.zeros_like(v)
        mine[me] = v[me]
        assert (comm.allgather(mine[me], mine) == v).all(), ('allgather in place', dtype)
        for root in range(n):
            assert (comm.broadcast(v[me].copy(), root) == v[root]).all(), ('broadcast', dtype)


def many_at_a_time(comm):
    """More than the library holds, the arrays registered, waited for from the last; a barrier tested until it is done."""
    v = comm.register(np.zeros((80, 4096), 'float32'))
    requests = []
    for i, row in enumerate(v):
        row[:] = i + comm.rank
        requests.append(comm.iallreduce(row))
    for i, request in reversed(list(enumerate(requests))):
        assert (request.wait() == 4 * i + 6).all(), i
    comm.deregister(v)
    barrier = comm.ibarrier()
    while not barrier.done():
        pass
    info = comm.info()
    assert info['kind'] == 'mixed' and info['mode'] == '2' and not info['fallback'], info
    assert info['device'] == 'incline0' and info['mtu'] == 4096, info
    assert info['staged_receives'] < info['messages'], info


def disagree(incline):
    """As many bytes, of another type: told to all."""
    with incline.Communicator(timeout=20) as comm:
        try:
            comm.allgather(np.zeros(8, 'int32' if comm.rank == 1 else 'float32'))
            raise AssertionError('ranks that disagree are not told')
        except incline.CommunicatorError as e:
            assert 'ctrl_mismatch' in str(e) or 'the ranks disagree' in str(e), e
            comm.abort('as it should')
            try:
                comm.close()
            except incline.CommunicatorError:
                pass


def until_told(incline):
    """Sums, waited for and tested, until rank 0 is told a line: a number more from it ends them."""
    with incline.Communicator() as comm:
        turns, told, v = 0, False, np.zeros(1000, 'int64')
        while not told:
            v[:] = 1 + (1000 if comm.rank == 0 and turns > 1 and select.select([sys.stdin], [], [], 0)[0] else 0)
            request = comm.iallreduce(v)
            while turns % 2 and not request.done():
                pass
            request.wait()
            assert (v == v[0]).all() and v[0] in (4, 1004), v
            told = v[0] == 1004
            turns += 1
            if turns == 2 and comm.rank == 0:
                print('ready', flush=True)
        assert comm.info()['resumed'], comm.info()


def main():
    import incline
    with incline.Communicator() as comm:
        every_collective(comm)
        many_at_a_time(comm)
    disagree(incline)
    try:
        with incline.Communicator(timeout=20) as comm:
            if comm.rank == 3:
                raise ArithmeticError('rank 3 gives up')
            comm.allreduce(np.zeros(10))
    except (ArithmeticError, incline.CommunicatorError) as e:
        print(f'{type(e).__name__}: {e}')


if __name__ == '__main__' and sys.argv[1:] == ['rank']:
    main()
    sys.exit(0)
if __name__ == '__main__' and sys.argv[1:] == ['told']:
    import incline
    until_told(incline)
    sys.exit(0)

import subprocess  # noqa: E402
import unittest  # noqa: E402

from fabric_case import TOP, Fabric, build_dir, run_tests  # noqa: E402


class Network(Fabric):
    def ranks(self, what, **more):
        env = {'PYTHONPATH': os.path.join(TOP, 'python'), 'PYTHONDONTWRITEBYTECODE': '1', 'OPENBLAS_NUM_THREADS': '1',
               'INCLINE_CCL_LIBRARY': os.path.join(build_dir(), 'lib/ccl/libincline-ccl.so'), **more}
        argv = ['env', *(f'{k}={v}' for k, v in env.items()), sys.executable, os.path.abspath(__file__), what]
        return [self.start(f'h{r}', argv, stdin=subprocess.PIPE) for r in range(4)]

    def test_resume(self):
        """A group that fails under a program whose group file says "resume"."""
        procs = self.ranks('told', INCLINE_GROUP=self.variant(resume=True, timeout_ms=30000))
        self.assertEqual(self.line(procs[0], PATIENCE), 'ready\n')
        group = self.rpc('s0', 'group.list')['result']['groups'][0]['name']
        self.rpc('s0', 'group.fail', {'group': group})
        procs[0].stdin.write('enough\n')
        procs[0].stdin.flush()
        for rank, (rc, out, err) in enumerate(self.finish(procs, PATIENCE)):
            self.assertEqual(rc, 0, f'rank {rank}: {err}')

    def test_four_ranks(self):
        ends = self.finish(self.ranks('rank'), PATIENCE)
        for rank, (rc, out, err) in enumerate(ends):
            self.assertEqual(rc, 0, f'rank {rank}: {err}')
            self.assertEqual(err, '')
            self.assertRegex(out, '^ArithmeticError: ' if rank == 3 else '^CommunicatorError: .*rank 3 gives up', f'rank {rank}')


del Fabric

if __name__ == '__main__':
    run_tests(verbosity=2)
