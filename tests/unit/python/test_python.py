#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Package incline without a fabric: what ctypes believes is what the headers say; every argument that cannot be is refused by
its name before the library is called; groups and environments that cannot be are named. Exit 77 without numpy."""
import ctypes
import errno
import gc
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, 'python'))
try:
    import numpy as np
except ImportError:
    print('skipped: numpy is not installed (tools/setup does)')
    sys.exit(77)
import incline  # noqa: E402
from incline import arrays, library  # noqa: E402

BUILD = os.environ.get('INCLINE_BUILD', os.path.join(TOP, 'build'))
os.environ.setdefault('INCLINE_CCL_LIBRARY', os.path.join(BUILD, 'lib/ccl/libincline-ccl.so'))
GROUP = {'name': 'job', 'bootstrap': 'unix:/nonexistent/boot',
         'manager': 'unix:/nonexistent/manager', 'ranks': [{'ip': f'10.77.0.{10 + r}'} for r in range(4)]}


NOT_QUEUED = 2**64 - 1


class Fake:
    """In place of the library: notes calls, and says what it is told to."""

    def __init__(self):
        self.calls, self.next, self.error, self.unfinished = [], 0, b'', 0
        self.queues = False  # in spite of errors
        self.mends = False   # a wait makes the communicator go on

    def _issue(self, name, req, *arguments):
        if self.next < 0 and not self.queues:
            return self.next
        if self.unfinished == 64:
            return -errno.EAGAIN
        req._obj.seq = len(self.calls)
        self.calls.append((name, *arguments))
        self.unfinished += 1
        return self.next

    def __getattr__(self, name):
        if name.startswith('ccl_i'):
            return lambda comm, *a: self._issue(name, a[-1], *a[:-1])
        raise AttributeError(name)

    def ccl_error(self, comm):
        return self.error

    def ccl_wait(self, comm, req, timeout):
        if self.mends:
            self.next, self.error, self.mends = 0, b'', False
        if req.seq == NOT_QUEUED:
            return -errno.EINVAL if not self.error else self.next
        if self.next == -errno.ETIMEDOUT:
            return self.next
        self.unfinished = 0
        return self.next

    def ccl_test(self, comm, req):
        return 0 if self.unfinished else 1

    def ccl_progress(self, comm, now):
        return self.next

    def ccl_abort(self, comm, reason):
        self.calls.append(('ccl_abort', reason))

    def ccl_comm_destroy(self, comm):
        self.calls.append(('ccl_comm_destroy',))
        return 0

    def ccl_register(self, comm, address, size):
        return self.next

    ccl_deregister = ccl_comm_destroy


def communicator(rank=1, size=4):
    comm = incline.Communicator.__new__(incline.Communicator)
    group = type('Group', (), {'_lib': Fake()})()
    comm._setup(group)
    comm._handle, comm._rank, comm._size = 1, rank, size
    return comm


class Headers(unittest.TestCase):
    """The compiler's word on numbers and layouts."""

    def test_values(self):
        lines, want = [], []
        for prefix, enum in ('REDUCE', library.Dtype), ('REDUCE', library.Op), ('CCL', library.Collective), ('CCL', library.Mode):
            for value in enum:
                lines.append(f'printf("%d ", {prefix}_{value.name});')
                want.append(int(value))
        for name, _ in library.Info._fields_:
            lines.append(f'printf("%zu ", offsetof(struct ccl_info, {name}));')
            want.append(getattr(library.Info, name).offset)
        for what, is_here in (('sizeof(struct ccl_info)', ctypes.sizeof(library.Info)), ('CCL_ERR_LEN', library.ERR_LEN),
                              ('sizeof(struct ccl_req)', ctypes.sizeof(library.Request)), ('CCL_N_COLLECTIVES', len(library.Collective)),
                              ('CCL_MAX_QUEUED', incline.communicator.MAX_QUEUED)):
            lines.append(f'printf("%zu ", (size_t){what});')
            want.append(is_here)
        with tempfile.TemporaryDirectory() as tmp:
            program = os.path.join(tmp, 'values')
            subprocess.run(['cc', '-I', os.path.join(TOP, 'include'), '-xc', '-o', program, '-'], check=True, text=True,
                           input='#include <incline/ccl.h>\n#include <stdio.h>\nint main(void) {' + '\n'.join(lines) + '}')
            said = subprocess.check_output([program], text=True)
        self.assertEqual([int(n) for n in said.split()], want)

    def test_arguments(self):
        """As many as declared, and each in the library."""
        with open(os.path.join(TOP, 'include/incline/ccl.h')) as f:
            header = re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)
        for name, (_, arguments) in library.FUNCTIONS.items():
            declared = re.search(rf'\b{name}\(([^;]*)\);', header)[1]
            self.assertEqual(len(declared.split(',')), len(arguments), name)
        library.library()

    def test_another_library(self):
        """What is not this version's is refused when it is loaded, with what it lacks."""
        for name, words in (('libc.so.6', '^libc.so.6 has no ccl_abort of version INCLINE_CCL_0'),
                            ('/nonexistent.so', '^/nonexistent.so cannot be loaded: ')):
            with mock.patch.object(library, '_loaded', None), mock.patch.dict(os.environ, INCLINE_CCL_LIBRARY=name):
                with self.assertRaisesRegex(ImportError, words):
                    library.library()


class Arguments(unittest.TestCase):
    def refused(self, error, words, call, *args, **kwargs):
        comm = communicator()
        with self.assertRaisesRegex(error, words):
            getattr(comm, call)(*args, **kwargs)
        self.assertEqual(comm._lib.calls, [], 'the library was called')
        comm._handle = None

    def test_buffers(self):
        a = np.zeros((4, 6), 'float32')
        frozen = np.zeros(4)
        frozen.flags.writeable = False
        skewed = np.zeros(33, 'u1')[1:].view('f8')
        for error, words, *call in (
                (TypeError, r'^send: is list, not numpy.ndarray', 'allreduce', [1, 2]),
                (TypeError, r'^send: complex64 is not one of float32, ', 'allreduce', np.zeros(3, 'complex64')),
                (TypeError, r'^send: bool is not', 'reduce', np.zeros(3, bool)),
                (TypeError, r'^send: float32 of the other byte order', 'allreduce', np.zeros(3, '>f4')),
                (TypeError, r'^array: object holds references', 'broadcast', np.zeros(3, object)),
                (ValueError, r'^send: is not C-contiguous', 'allreduce', a.T),
                (ValueError, r'^send: is not C-contiguous', 'allgather', a[:, 1]),
                (ValueError, r'^send: is read-only', 'allreduce', frozen),
                (ValueError, r'^array: is read-only', 'broadcast', frozen),
                (ValueError, r'^recv: is read-only', 'allreduce', np.zeros(4), frozen),
                (ValueError, r'^recv: has 5 elements, 4 are needed \(send has 4\)', 'allreduce', np.zeros(4), np.zeros(5)),
                (ValueError, r'^recv: is float32, send is float64', 'allreduce', np.zeros(4), np.zeros(4, 'float32')),
                (ValueError, r'^recv: has 4 elements, 16 are needed', 'allgather', np.zeros(4, 'int8'), np.zeros(4, 'int8')),
                (ValueError, r'^recv: has 4 bytes, 16 are needed', 'allgather', np.zeros(4, bool), np.zeros(4, bool)),
                (ValueError, r'^recv: is int32, send is float32', 'allgather', np.zeros(4, 'f4'), np.zeros(16, 'i4')),
                (ValueError, r'^recv: is >f4, send is float32', 'allgather', np.zeros(4, 'f4'), np.zeros(16, '>f4')),
                (ValueError, r'^recv: is bool, send is int8', 'allgather', np.zeros(4, 'i1'), np.zeros(16, bool)),
                (ValueError, r'^send: its elements of float64 do not lie at multiples of 8 bytes', 'allreduce', skewed),
                (TypeError, r'^send: is a masked array', 'allreduce', np.ma.zeros(3)),
                (ValueError, r'^array: is empty', 'register', np.zeros(0)),
                (ValueError, r'^send: 7 elements are no multiple of 4 ranks', 'reduce_scatter', np.zeros(7)),
                (ValueError, r'^recv: has 8 elements, 2 are needed', 'reduce_scatter', np.zeros(8), np.zeros(8))):
            with self.subTest(words):
                self.refused(error, words, *call)

    def test_overlaps(self):
        """In place, apart, and nothing else; rank 1 of 4."""
        v = np.zeros(16)
        for call, send, recv in (('allreduce', v[:8], v[4:12]), ('reduce_scatter', v, v[:4]), ('allgather', v[:4], v),
                                 ('allgather', v[5:9], v), ('reduce_scatter', v, v[5:9])):
            with self.subTest(call):
                self.refused(ValueError, r'^recv: overlaps send other than in place', call, send, recv)
        comm = communicator()
        comm.allreduce(v[:8], v[8:])
        comm.allreduce(v, v)
        comm.allgather(v[4:8], v)
        comm.reduce_scatter(v, v[4:8])
        self.assertEqual(len(comm._lib.calls), 4)
        comm._handle = None

    def test_numbers(self):
        z = np.zeros(4)
        for error, words, call, args, more in (
                (ValueError, r"^op: 'avg' is not one of sum, min, max, prod", 'allreduce', (z,), {'op': 'avg'}),
                (ValueError, r'^op: 7 is not one of', 'reduce_scatter', (z,), {'op': 7}),
                (ValueError, r'^op: prod is not offered for int8', 'allreduce', (np.zeros(4, 'int8'),), {'op': 'prod'}),
                (ValueError, r'^op: ', 'reduce', (z,), {'op': 'none', 'root': 0}),
                (ValueError, r'^root: 4 is not one of 0 to 3', 'reduce', (z,), {'root': 4}),
                (ValueError, r'^root: -1 is not one of 0 to 3', 'broadcast', (z,), {'root': -1}),
                (TypeError, r"^root: 'a' is not an integer", 'broadcast', (z,), {'root': 'a'}),
                (ValueError, r"^dtype: 'half' is not 'bfloat16'", 'allreduce', (z,), {'dtype': 'half'}),
                (ValueError, r'^send: is float64; bfloat16 is given as uint16', 'allreduce', (z,), {'dtype': 'bfloat16'}),
                (ValueError, r"^collective: 'sum' is not one of allreduce, ", 'selected', ('sum', 1), {}),
                (ValueError, r'^nbytes: -1 is not', 'selected', ('allreduce', -1), {})):
            with self.subTest(words):
                self.refused(error, words, call, *args, **more)

    def test_what_c_gets(self):
        """Addresses, counts, types and roots, for every collective in and out of place."""
        comm = communicator()
        lib = comm._lib
        v, w = np.zeros(8, 'float32'), np.zeros(2, 'float32')
        at = v.ctypes.data
        self.assertIs(comm.allreduce(v, op='max'), v)
        self.assertEqual(comm.reduce_scatter(v).ctypes.data, at + 8)
        self.assertIs(comm.reduce_scatter(v, w, op=incline.Op.MIN), w)
        self.assertIs(comm.reduce(v, root=1), v)
        self.assertIsNone(comm.reduce(v, root=0))
        self.assertIs(comm.broadcast(v, root=2), v)
        self.assertEqual(comm.allgather(w).shape, (4, 2))
        gathered = comm.allgather(v[2:4], v)
        self.assertIs(gathered, v)
        comm.allreduce(np.zeros(3, 'uint16'), dtype='bfloat16')
        comm.barrier()
        got = [(name, *(int(x) if x is not None else x for x in a)) for name, *a in lib.calls]
        fresh = got[6][2]
        bf16 = got[8][1]
        self.assertEqual(got, [
            ('ccl_iallreduce', at, at, 8, 0, 2), ('ccl_ireduce_scatter', at, at + 8, 2, 0, 0),
            ('ccl_ireduce_scatter', at, w.ctypes.data, 2, 0, 1), ('ccl_ireduce', at, at, 8, 0, 0, 1),
            ('ccl_ireduce', at, None, 8, 0, 0, 0), ('ccl_ibroadcast', at, at, 8, 0, 2),
            ('ccl_iallgather', w.ctypes.data, fresh, 2, 0), ('ccl_iallgather', at + 8, at, 2, 0),
            ('ccl_iallreduce', bf16, bf16, 3, 2, 0), ('ccl_ibarrier',)])
        comm._handle = None


class Life(unittest.TestCase):
    def setUp(self):
        self.comm = communicator()
        self.lib = self.comm._lib

    def tearDown(self):
        self.comm._handle = None

    def test_buffers_are_kept_until_done(self):
        v = np.zeros(4)
        before = sys.getrefcount(v)
        request = self.comm.iallreduce(v)
        del request  # the collective goes on
        self.assertGreater(sys.getrefcount(v), before)
        self.comm.barrier()
        self.comm.iallreduce(np.zeros(1)).wait()
        for _ in range(70):
            self.comm.iallreduce(np.zeros(1))  # the 65th waits for the oldest
        self.assertEqual(sys.getrefcount(v), before)

    def test_buffers_of_one_that_was_queued_in_spite_of_an_error(self):
        """The device may write to them until the communicator is closed."""
        v = np.zeros(4)
        before = sys.getrefcount(v)
        self.lib.queues, self.lib.next, self.lib.error = True, -errno.ECONNABORTED, b'the switch is gone'
        request = self.comm.iallreduce(v)
        for _ in range(2):
            with self.assertRaisesRegex(incline.CommunicatorError, '^the switch is gone$'):
                request.wait()
        del request
        gc.collect()
        self.assertGreater(sys.getrefcount(v), before)
        self.comm.close()
        self.assertEqual(sys.getrefcount(v), before)

    def test_resumes(self):
        """An error is one when a wait has not mended it, whatever call meets it."""
        v = np.zeros(4)
        for queues in False, True:
            self.lib.queues, self.lib.next, self.lib.error, self.lib.mends = queues, -errno.ECONNABORTED, b'a switch', True
            self.assertIs(self.comm.allreduce(v), v)
        request = self.comm.iallreduce(v)
        self.lib.queues, self.lib.next, self.lib.error, self.lib.mends = False, -errno.ECONNABORTED, b'a switch', True
        self.assertFalse(request.done())
        self.assertIs(request.wait(), v)

    def test_timeouts(self):
        request = self.comm.iallreduce(np.zeros(4))
        for wrong in 'a', float('nan'), [1]:
            with self.assertRaisesRegex(TypeError, '^timeout: .* is not a number of seconds'):
                request.wait(wrong)
        request.wait(float('inf'))

    def test_fork(self):
        """The child's end is not the job's, and its calls say why they cannot be."""
        request = self.comm.iallreduce(np.zeros(4))
        taken, go_on = threading.Event(), threading.Event()

        def hold():
            with self.comm._lock:
                taken.set()
                go_on.wait()
        holder = threading.Thread(target=hold)
        holder.start()
        taken.wait()
        read, write = os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(30)  # hangs only
            said = []
            for call in self.comm.barrier, request.wait, request.done, lambda: self.comm.abort('x'):
                try:
                    call()
                except incline.CommunicatorError as e:
                    said.append(str(e))
            with self.comm:
                pass
            said += map(str, self.lib.calls[1:])
            os.write(write, '\n'.join(said).encode())
            os._exit(0)
        go_on.set()
        holder.join()
        os.close(write)
        with os.fdopen(read) as f:
            said = f.read().split('\n')
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(said, [f'the communicator is that of process {os.getpid()}: '
                                'it does not follow into one that was forked'] * 4)

    def test_errors_have_words(self):
        self.lib.next = -errno.EINVAL
        with self.assertRaisesRegex(incline.Error, '^allreduce: EINVAL: Invalid argument$'):
            self.comm.allreduce(np.zeros(4))
        error = pickle.loads(pickle.dumps(incline.CommunicatorError(errno.ETIMEDOUT, 'rank 3')))
        self.assertEqual((error.errno, str(error)), (errno.ETIMEDOUT, 'rank 3'))

    def test_timeout_leaves_it(self):
        v = np.zeros(4)
        request = self.comm.iallreduce(v)
        self.lib.next = -errno.ETIMEDOUT
        with self.assertRaisesRegex(TimeoutError, 'not done after 0.25 s'):
            request.wait(0.25)
        self.lib.next = 0
        self.assertFalse(request.done())
        self.assertIs(request.wait(), v)
        self.assertTrue(request.done())

    def test_errors(self):
        v = np.zeros(4)
        self.lib.next = -errno.EOPNOTSUPP
        with self.assertRaisesRegex(incline.Unsupported, '^reduce: the communicator does not do it'):
            self.comm.reduce(v)
        self.lib.next, self.lib.error = -errno.ETIMEDOUT, b'rank 3 has gone away'
        with self.assertRaisesRegex(incline.CommunicatorError, '^rank 3 has gone away$') as caught:
            self.comm.allreduce(v)
        self.assertEqual(caught.exception.errno, errno.ETIMEDOUT)
        self.assertEqual(self.comm.error, 'rank 3 has gone away')

    def test_register(self):
        v = np.zeros(4)
        for call in self.comm.register, self.comm.deregister:
            with self.assertRaisesRegex(TypeError, '^array: is list, not numpy.ndarray'):
                call([1, 2])
        self.comm.register(v)
        self.lib.next = -errno.EEXIST
        with self.assertRaisesRegex(ValueError, '^array: overlaps one that is registered'):
            self.comm.register(v)

    def test_exception_aborts(self):
        with self.assertRaises(KeyError), self.comm:
            raise KeyError('gone')
        self.assertEqual(self.lib.calls, [('ccl_abort', b"KeyError: 'gone'"), ('ccl_comm_destroy',)])
        with self.assertRaisesRegex(incline.CommunicatorError, 'is closed'):
            self.comm.barrier()
        self.comm.close()  # again: nothing
        self.assertEqual(len(self.lib.calls), 2)

    def test_exceptions_without_words(self):
        """The communicator ends all the same; the others are told what can be."""
        mute = type('Mute', (Exception,), {'__str__': None})
        for error, said in (mute(), b'Mute'), (OSError('\udc80'), b'OSError: ?'):
            comm = communicator()
            with self.assertRaises(type(error)), comm:
                raise error
            self.assertEqual(comm._lib.calls, [('ccl_abort', said), ('ccl_comm_destroy',)])

    def test_closed_with_unfinished(self):
        request = self.comm.iallreduce(np.zeros(1))
        self.comm.close()
        for ask in request.wait, request.done:
            with self.assertRaisesRegex(incline.CommunicatorError, 'closed before the collective was done'):
                ask()

    def test_forgotten(self):
        comm = communicator()
        lib = comm._lib
        with self.assertWarnsRegex(ResourceWarning, 'rank 1 of 4> was not closed'):
            del comm
        self.assertEqual([c[0] for c in lib.calls], ['ccl_abort', 'ccl_comm_destroy'])


class Groups(unittest.TestCase):
    """By the real library, which opens no device for that."""

    def setUp(self):
        self.env = {k: os.environ.pop(k) for k in list(os.environ) if re.match('INCLINE_(GROUP|RANK)$|OMPI_|PMI|RANK$|WORLD_SIZE$', k)}

    def tearDown(self):
        os.environ.pop('INCLINE_RANK', None)
        os.environ.update(self.env)

    def test_none(self):
        with self.assertRaisesRegex(incline.GroupError, 'INCLINE_GROUP is not set'):
            incline.Communicator()

    def test_files(self):
        with self.assertRaisesRegex(incline.GroupError, '/nonexistent/group.json') as caught:
            incline.Group('/nonexistent/group.json')
        self.assertEqual(caught.exception.errno, errno.ENOENT)
        with self.assertRaisesRegex(incline.GroupError, 'colour'):
            incline.Group({**GROUP, 'colour': 1})
        with self.assertRaisesRegex(incline.GroupError, '^group: is not what a JSON file can hold: '):
            incline.Group({**GROUP, 'name': b'x'})
        with self.assertRaisesRegex(TypeError, '^group: is int, not a Group, a path or a dict'):
            incline.Communicator(7)

    def test_ranks(self):
        group = incline.Group(GROUP)
        self.assertEqual(group.size, 4)
        with self.assertRaisesRegex(incline.GroupError, 'set INCLINE_RANK'):
            group.launched()
        os.environ['INCLINE_RANK'] = '4'
        with self.assertRaisesRegex(incline.GroupError, 'INCLINE_RANK=4, and the group has ranks 0 to 3'):
            incline.Communicator(group)
        os.environ['INCLINE_RANK'] = '2'
        self.assertEqual(group.launched(), 2)
        with self.assertRaisesRegex(ValueError, '^rank: 4 is not one of 0 to 3'):
            incline.Communicator(group, 4)
        with self.assertRaisesRegex(TypeError, "^rank: 'x' is not an integer"):
            incline.Communicator(group, 'x')

    def test_overrides(self):
        for seconds in 0, -1, 3601, float('nan'):
            with self.assertRaisesRegex(ValueError, r'^timeout: .* is not one of 0.001 to 3600 seconds'):
                incline.Communicator(GROUP, 0, timeout=seconds)
        with self.assertRaisesRegex(TypeError, "^timeout: '1' is not a number of seconds"):
            incline.Communicator(GROUP, 0, timeout='1')
        with self.assertRaisesRegex(TypeError, '^algorithm: 1 is not a string'):
            incline.Communicator(GROUP, 0, algorithm=1)
        with self.assertRaisesRegex(ValueError, "^algorithm: 'magic' is not one"):
            incline.Communicator(GROUP, 0, algorithm='magic')
        with self.assertRaisesRegex(incline.GroupError, 'multicast'):
            incline.Communicator(GROUP, 0, algorithm='multicast')


if __name__ == '__main__':
    unittest.main()
