#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Backend "incline" of torch.distributed without a fabric: what is refused, and by which name; what becomes of works, of their
tensors and of the group when something fails or ends early. Of tools/test --long, which installs python3-torch. Exit 77 without
it."""
import datetime
import gc
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref
from unittest import mock

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, 'python'))
if __name__ == '__main__' and subprocess.run([sys.executable, '-c', 'import torch, numpy'], capture_output=True).returncode:
    print('skipped: python3-torch is not installed (tools/test --long does)')
    sys.exit(77)
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import incline.torch  # noqa: E402
from incline.errors import CommunicatorError  # noqa: E402

os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')
PATIENCE = 60  # seconds: hangs only


class Request:
    def __init__(self, comm):
        self.comm = comm

    def wait(self, timeout=None):
        if not self.comm.go_on.wait(timeout):
            raise TimeoutError
        if self.comm.error:
            raise CommunicatorError(5, self.comm.error)


class Comm:
    """In place of the communicator, of one rank: notes calls, and finishes them when the test lets it."""
    size, rank = 1, 0

    def __init__(self, group, rank):
        self.calls, self.error, self.go_on, self.closed = [], '', threading.Event(), False
        self.go_on.set()

    def __getattr__(self, name):
        if not name.startswith('i'):
            raise AttributeError(name)
        return self._issue(name)

    def _issue(self, name):
        def call(*arguments, **more):
            self.calls.append((name, [a.size for a in arguments if hasattr(a, 'size')]))
            return Request(self)
        return call

    def abort(self, why):
        self.calls.append(('abort', why))
        self.error = why

    def close(self):
        self.closed = True


class Backend(unittest.TestCase):
    def setUp(self):
        group = type('Group', (), {'size': 1})
        for name, fake in ('Communicator', Comm), ('Group', group):
            patch = mock.patch.object(incline.torch, name, fake)
            patch.start()
            self.addCleanup(patch.stop)
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.store = dist.FileStore(os.path.join(self.dir.name, 'store'), 1)
        self.group = incline.torch.ProcessGroup(self.store, 0, 1, datetime.timedelta(seconds=PATIENCE))
        self.comm, self.thread = self.group._worker.comm, self.group._worker.thread

    def tearDown(self):
        self.comm.go_on.set()
        self.group = None
        gc.collect()
        self.thread.join(PATIENCE)
        self.assertFalse(self.thread.is_alive())
        self.assertTrue(self.comm.closed)

    def refused(self, words, call, *arguments, error=ValueError):
        before = incline.torch.calls()
        with self.assertRaisesRegex(error, words):
            getattr(self.group, call)(*arguments)
        self.assertEqual(incline.torch.calls(), before)

    def test_refused_by_name(self):
        z, n = torch.zeros(4), torch.zeros(4, 4)
        for words, *call in (
                ('^tensor: is on meta; backend incline takes tensors on the CPU only', 'allreduce', [z.to('meta')]),
                (r'^tensor: is not contiguous \(strides \(1, 4\) of shape \(4, 4\)\)', 'broadcast', [n.t()]),
                ('^tensor: is not dense', 'allreduce', [n.to_sparse()]),
                ('^tensor: is not dense', 'broadcast', [torch.quantize_per_tensor(z, 0.1, 0, torch.qint8)]),
                ('^tensor: is a view with conjugation', 'broadcast', [torch.zeros(3, dtype=torch.complex64).conj()]),
                ('^tensors: 2, and one is taken', 'allreduce', [z, z]),
                ('^tensors: 0, and one is taken', 'allreduce', []),
                ('^tensor_list: has 2 tensors, and is to have 1, one for each rank', 'allgather', [[z, z]], [z]),
                ('^tensor_list: has 0 tensors, and is to have 1', 'allgather', [[]], [z]),
                ('^tensor_list: 0 lists, and one is taken', 'allgather', [], [z]),
                (r'^tensor_list\[0\]: is of torch.int32 and shape \(4,\), and is to be of torch.float32 and shape \(4,\)', 'allgather',
                 [[z.int()]], [z]),
                (r'^tensor_list\[0\]: is of torch.float32 and shape \(2, 2\), and is to be', 'allgather', [[z.view(2, 2)]], [z]),
                (r'^tensor_list\[0\]: is on meta; backend incline takes tensors on the CPU only', 'allgather', [[z.to('meta')]], [z]),
                (r'^tensor_list\[0\]: is not contiguous \(strides \(1, 4\)', 'allgather', [[n.t()]], [n]),
                (r'^input_list\[0\]: is not dense', 'reduce_scatter', [n], [[n.to_sparse()]]),
                ('^output_tensor: is not contiguous', '_allgather_base', n.t(), n),
                ('^input_tensor: is not dense', '_reduce_scatter_base', n, n.to_sparse()),
                ('^output_tensor: has 4 elements of torch.int32, and is to have 1 times 4 of torch.float32', '_allgather_base', z.int(), z),
                ('^output_tensor: has 16 elements of torch.float32, and is to have 1 times 4', '_allgather_base', n, z),
                ('^input_tensor: has 16 elements of torch.float32, and is to have 1 times 4', '_reduce_scatter_base', z, n),
                (r'^input_list\[0\]: is of torch.float64', 'reduce_scatter', [z], [[z.double()]])):
            with self.subTest(words):
                self.refused(words, *call)
        for words, *call in (('^tensor_list: is Tensor, not a list of tensors', 'allgather', [z], [z]),
                             (r'^tensor_list\[0\]: is int, not a tensor', 'allgather', [[7]], [z])):
            with self.subTest(words):
                self.refused(words, *call, error=TypeError)
        options = dist.BroadcastOptions()
        options.rootRank = 7
        self.refused('^root: 7 is not one of 0 to 0', 'broadcast', [z], options)
        self.assertEqual(self.comm.calls, [])

    def test_left_to_gloo_by_name(self):
        """What neither of the two has says of what it is."""
        options = dist.ReduceScatterOptions()
        options.reduceOp = dist.ReduceOp.BOR
        z = torch.zeros(4, dtype=torch.int32)
        with self.assertRaisesRegex(RuntimeError, '^reduce_scatter: CommLib has no such call, type or operation'):
            self.group.reduce_scatter([z], [[z]], options)

    def test_an_error_is_the_waits(self):
        self.comm.error = 'the switch is gone'
        work = self.group.allreduce([torch.zeros(4)])
        for _ in range(2):
            with self.assertRaisesRegex(CommunicatorError, '^the switch is gone$'):
                work.wait()
        self.assertTrue(work.is_completed())
        self.assertFalse(work.is_success())
        with self.assertRaisesRegex(RuntimeError, 'the switch is gone'):
            work.get_future().wait()

    def test_wait_has_a_bound(self):
        self.comm.go_on.clear()
        work = self.group.allreduce([torch.zeros(4)])
        with self.assertRaisesRegex(TimeoutError, '^wait: not done after 0.01 s'):
            work.wait(datetime.timedelta(seconds=0.01))
        self.comm.go_on.set()
        self.assertTrue(work.wait())

    def test_barrier_comes_behind(self):
        self.comm.go_on.clear()
        self.group.allreduce([torch.zeros(4)])
        barrier = self.group.barrier()
        self.assertFalse(barrier.is_completed())
        self.comm.go_on.set()
        self.assertTrue(barrier.wait())
        self.assertEqual([c[0] for c in self.comm.calls], ['iallreduce', 'ibarrier'])

    def test_callbacks(self):
        """One that raises ends nobody's wait; one that waits for what its own thread has to do is told so."""
        self.comm.go_on.clear()
        first, second = (self.group.allreduce([torch.zeros(4)]) for _ in range(2))

        def wrong(_):
            raise ArithmeticError('wrong')

        def waits(_):
            second.wait()
        raised, waited = (first.get_future().then(f) for f in (wrong, waits))
        self.comm.go_on.set()
        self.assertTrue(first.wait() and second.wait())
        with self.assertRaisesRegex(RuntimeError, 'wrong'):
            raised.wait()
        with self.assertRaisesRegex(RuntimeError, 'wait: in a callback of a future'):
            waited.wait()

    def test_nothing_is_kept(self):
        """Of a work that is done and forgotten, nothing; of C++'s, the last few, whose Python half must not go."""
        tensor = torch.zeros(4)
        tensor_is, work = weakref.ref(tensor), self.group.allreduce([tensor])
        work.wait()
        work_is = weakref.ref(work)
        del tensor, work
        for _ in range(incline.torch.KEPT):
            self.group.barrier().wait()
        self.thread_has_turned()
        gc.collect()
        self.assertIsNone(tensor_is())
        self.assertIsNone(work_is())

    def thread_has_turned(self):
        """What the thread has in its hands is of a later work."""
        self.group.barrier().wait()

    def test_destroyed_with_pending_works(self):
        """The end waits for them; they are done, and nothing hangs, whoever lets go of the group last."""
        self.comm.go_on.clear()
        works = [self.group.allreduce([torch.zeros(4)]) for _ in range(3)]
        threading.Timer(0.05, self.comm.go_on.set).start()
        self.group = None
        gc.collect()
        self.assertTrue(all(w.is_success() for w in works))
        self.assertIsNone(incline.torch._world)

    def test_forked(self):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                self.group.barrier()
            except CommunicatorError as e:
                os.write(write, str(e).encode())
            self.group._worker.leave()  # as the child's end would
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            self.assertRegex(f.read(), f'^the process group is that of process {os.getpid()}: ')
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertTrue(self.group.barrier().wait())

    def test_a_program_that_dies_says_so(self):
        with mock.patch.object(sys, 'last_value', KeyError('gone'), create=True):
            self.group = None
            gc.collect()
        self.assertEqual(self.comm.calls, [('abort', "KeyError: 'gone'")])


if __name__ == '__main__':
    unittest.main()
