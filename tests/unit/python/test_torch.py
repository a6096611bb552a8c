#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Backend "incline" of torch.distributed without a fabric: what is refused, and by which name; what becomes of works, of their
tensors and of the group when something fails or ends early. Of tools/test --long, which installs python3-torch. Exit 77 without
it."""
import datetime
import gc
import os
import queue
import signal
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
    def __init__(self, comm, name):
        self.comm, self.name, self.go_on = comm, name, comm.go_on

    def wait(self, timeout=None):
        self.comm.said.put((self.name, 'waits' if timeout else 'waits as the last'))
        if not self.go_on.wait(timeout):
            raise TimeoutError
        if self.comm.error:
            raise CommunicatorError(5, self.comm.error)


class Comm:
    """In place of the communicator, of one rank: notes calls, and finishes them when the test lets it. What its thread does
    can be had from said, in turn."""
    size, rank = 1, 0

    def __init__(self, group, rank):
        self.calls, self.error, self.go_on, self.closed = [], '', threading.Event(), False
        self.said = queue.Queue()
        self.go_on.set()

    def __getattr__(self, name):
        if not name.startswith('i'):
            raise AttributeError(name)
        return self._issue(name)

    def _issue(self, name):
        def call(*arguments, **more):
            self.calls.append((name, [a.size for a in arguments if hasattr(a, 'size')]))
            self.said.put((name, 'issued'))
            return Request(self, name)
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
        self.group = self.another()
        self.comm, self.thread = self.group._worker.comm, self.group._worker.thread

    def another(self):
        return incline.torch.ProcessGroup(self.store, 0, 1, datetime.timedelta(seconds=PATIENCE))

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

    def turns(self, *what):
        """The thread has come to this."""
        while self.comm.said.get(timeout=PATIENCE) != what:
            pass

    def test_barrier_comes_behind(self):
        """It is not done, even if its own messages are, while what was called before is not."""
        held = self.comm.go_on = threading.Event()
        first = self.group.allreduce([torch.zeros(4)])
        self.turns('iallreduce', 'issued')
        self.comm.go_on = threading.Event()
        self.comm.go_on.set()
        barrier = self.group.barrier()
        self.turns('ibarrier', 'issued')
        self.assertEqual([self.comm.said.get(timeout=PATIENCE) for _ in range(2)], [('iallreduce', 'waits')] * 2)
        self.assertFalse(barrier.is_completed())
        held.set()
        self.assertTrue(barrier.wait())
        self.assertTrue(first.is_success())

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
        works, before = [self.group.allreduce([torch.zeros(4)]) for _ in range(3)], []

        def let_go():
            self.turns('iallreduce', 'waits as the last')
            before.extend([self.comm.closed, *(w.is_completed() for w in works)])
            self.comm.go_on.set()
        other = threading.Thread(target=let_go, daemon=True)
        other.start()
        self.group = None
        gc.collect()
        self.assertEqual([w.is_success() for w in works], [True] * 3)
        self.assertTrue(self.comm.closed)
        other.join(PATIENCE)
        self.assertEqual(before, [False] * 4)
        self.assertIsNone(incline.torch._world)

    def child(self, write):
        """What a process that was forked is told: of a call, of a process group of its own; and its end is not the job's."""
        for call in self.group.barrier, self.another:
            try:
                call()
            except CommunicatorError as e:
                os.write(write, f'{e}\n'.encode())
        self.group._worker.leave()
        os.write(write, f'{self.group._worker.queue.qsize()} put before the thread\n'.encode())

    def test_forked(self):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(PATIENCE)
            try:
                self.child(write)
            except BaseException as e:
                os.write(write, repr(e).encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as f:
            said = f.read().splitlines()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(said, [f'the process group is that of process {os.getpid()}: it does not follow into one that was '
                                'forked'] * 2 + ['0 put before the thread'])
        self.assertTrue(self.group.barrier().wait())

    def test_an_end_whose_abort_fails(self):
        """What is pending is finished and the communicator closed all the same; the error is shown."""
        self.comm.go_on.clear()
        work, shown = self.group.allreduce([torch.zeros(4)]), []

        def fails(comm, why):
            comm.go_on.set()
            raise OSError(f'not told: {why}')
        with mock.patch.object(Comm, 'abort', fails), mock.patch.object(threading, 'excepthook', shown.append), \
                mock.patch.object(incline.torch, '_died_of', lambda: 'dead'):
            self.group = None
            gc.collect()
        self.assertTrue(work.is_success())
        self.assertEqual([str(s.exc_value) for s in shown], ['not told: dead'])


class Death(unittest.TestCase):
    """Of programs: what the communicator is told when they end."""

    def told(self, text, status):
        head = f'''import sys
sys.dont_write_bytecode = True
sys.path[:0] = {[os.path.dirname(os.path.abspath(__file__)), os.path.join(TOP, 'python')]!r}
import datetime, test_torch, incline.torch
class Comm(test_torch.Comm):
    def close(self):
        print(self.calls)
incline.torch.Communicator, incline.torch.Group = Comm, type('Group', (), {{'size': 1}})
group = incline.torch.ProcessGroup(test_torch.dist.HashStore(), 0, 1, datetime.timedelta(seconds={PATIENCE}))
'''
        done = subprocess.run([sys.executable, '-c', head + text], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def test_says_why(self):
        for error, said in (("KeyError('gone')", "KeyError: 'gone'"), ("type('Mute', (Exception,), {'__str__': None})()", 'Mute')):
            self.assertEqual(self.told(f'def fails(): raise {error}\nfails()', 1), f"{[('abort', said)]}\n")

    def test_what_was_handled_is_no_reason(self):
        """pytest and others leave in sys.last_value what they have caught."""
        runner = """
def runner():
    try:
        raise KeyError('gone')
    except KeyError as e:
        sys.last_type, sys.last_value, sys.last_traceback = type(e), e, e.__traceback__
runner()
"""
        self.assertEqual(self.told(runner, 0), '[]\n')
        self.assertEqual(self.told(runner + "raise ValueError('now')", 1), "[('abort', 'ValueError: now')]\n")


if __name__ == '__main__':
    unittest.main()
