# SPDX-License-Identifier: BSD-3-Clause
"""Communicators: the six collectives on numpy arrays, where they lie."""
import ctypes
import errno
import os
import threading
import time
import warnings
import weakref

import numpy

from . import arrays
from .errors import CommunicatorError, Error, Unsupported, describe, told
from .group import Group
from .library import ERR_LEN, Collective, Info, Mode, Request as _Req

SLICE_NS = 100_000_000  # a wait lets signals (Ctrl-C) be handled this often
MAX_QUEUED = 64         # CCL_MAX_QUEUED
NOT_QUEUED = 2**64 - 1  # a collective that CommLib has not taken


_all = weakref.WeakSet()


def _forked():
    """In a new process, whose only thread holds none of the locks that others may have held."""
    for comm in list(_all):
        comm._lock = threading.RLock()


os.register_at_fork(after_in_child=_forked)


class Request:
    """A collective on its way; its buffers are the communicator's until it is done. Nothing to free: what is dropped
    goes on. Requests move only while some thread is in a call of their communicator."""

    def __init__(self, comm, seq, result):
        self._comm, self._seq, self._result = comm, seq, result

    def done(self):
        """True when the result is there. Does what there is to do, and does not wait; but where the groups have failed, and
        the group file says "resume", it meets the other ranks, as wait does, and waits for them."""
        return self._comm._test(self._seq)

    def wait(self, timeout=None):
        """Its result, when it is done. timeout: in seconds; TimeoutError, and the collective goes on. Without one, the
        group's timeout ends it, as an error."""
        self._comm._wait(self._seq, timeout)
        return self._result


class Communicator:
    """Collectives among the ranks of a group. Making one is collective over all of them and blocks.

    group: a Group, the path of a group file, its content as a dict, or None: the file that INCLINE_GROUP names.
    rank: own rank, None: as INCLINE_RANK or the launcher says. timeout (seconds) and algorithm override the file's.

    As a context manager it is closed at the end of the block; if that ends by an exception the others are told why and
    nobody is waited for. All ranks call the same collectives in the same order, with the same counts, types, operations
    and roots.

    Arrays are numpy's, C-contiguous; they are sent from and received into where they lie. Reductions take float32,
    float16, float64, int8, int32, int64, uint8, uint32, uint64, and bfloat16 as uint16 with dtype='bfloat16'; op is
    'sum', 'min', 'max' or 'prod'. Broadcast and AllGather move arrays of any type but objects; recv has the type of send.

    Every collective has a form with an i in front which gives a Request. After 64 unfinished ones it waits for the
    oldest. Threads may share a communicator: calls take turns.

    TypeError and ValueError name the argument; CommunicatorError says what failed in the network; Unsupported: this
    communicator does not do that."""

    def __init__(self, group=None, rank=None, *, timeout=None, algorithm=None):
        self._handle = None
        self._setup(group if isinstance(group, Group) else Group(group))
        if timeout is not None:
            self._group.set_timeout(timeout)
        if algorithm is not None:
            self._group.set_algorithm(algorithm)
        self._handle = self._group.join(self._group.launched() if rank is None else rank)
        self._rank, self._size = self._lib.ccl_rank(self._handle), self._lib.ccl_size(self._handle)

    def _setup(self, group):
        self._group, self._lib = group, group._lib  # the group must outlive the communicator
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._held = {}       # by number of the collective: who owns its buffers
        self._lost = set()    # unfinished when it was closed
        self._registered = {}
        _all.add(self)

    # ---- life ----

    def close(self):
        """Waits for the others, as long as the group's timeout, and leaves. Again: nothing. CommunicatorError: they
        did not come; it is closed all the same."""
        if self._process != os.getpid():
            self._handle = None  # it is the parent's
            return
        with self._lock:
            if not self._handle:
                return
            handle, self._handle = self._handle, None
            rc = self._lib.ccl_comm_destroy(handle)
            self._lost.update(self._held)
            self._held.clear()
            self._registered.clear()
        if rc < 0:
            raise CommunicatorError(-rc, f'close: {describe(-rc)}: the other ranks did not come')

    def abort(self, reason):
        """Fails the communicator: the others hear the reason, and close waits for nobody."""
        with self._lock:
            self._lib.ccl_abort(self._open(), str(reason).encode(errors='replace')[:ERR_LEN - 1])

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if kind is None or self._process != os.getpid():
            self.close()
            return
        if self._handle:
            self.abort(told(error))
            try:
                self.close()
            except CommunicatorError:
                pass  # the first error is the one to be shown

    def __del__(self):
        if getattr(self, '_handle', None) and self._process == os.getpid():
            warnings.warn(f'{self!r} was not closed', ResourceWarning, source=self)
            self.__exit__(ResourceWarning, ResourceWarning('the communicator was not closed'), None)

    def __repr__(self):
        return f'<incline.Communicator rank {self._rank} of {self._size}{"" if self._handle else ", closed"}>'

    def _open(self):
        if not self._handle:
            raise CommunicatorError(errno.ENOTCONN, 'the communicator is closed')
        if self._process != os.getpid():
            raise CommunicatorError(errno.ENOTCONN, f'the communicator is that of process {self._process}: '
                                                    'it does not follow into one that was forked')
        return self._handle

    # ---- what it is ----

    @property
    def rank(self):
        """Own rank."""
        return self._rank

    @property
    def size(self):
        """Number of ranks."""
        return self._size

    @property
    def error(self):
        """In a sentence what has failed; '' while nothing has."""
        with self._lock:
            return self._lib.ccl_error(self._open()).decode(errors='replace')

    def info(self):
        """How it was set up and what it has done, as a dict (struct ccl_info of incline/ccl.h)."""
        info = Info()
        with self._lock:
            self._lib.ccl_query(self._open(), ctypes.byref(info))
        said = {name: getattr(info, name) for name, _ in Info._fields_}
        said = {name: v.decode(errors='replace') if isinstance(v, bytes) else v for name, v in said.items()}
        said['mode'] = Mode(info.mode).name.lower().replace('mode_', '')
        said['kind'] = self._lib.ccl_kind_name(info.kind).decode()
        said['collectives'] = [c.name.lower() for c in Collective if info.collectives >> c & 1]
        return said

    def selected(self, collective, nbytes):
        """How a collective ('allreduce' ...) of so many bytes of the whole vector is done, and why: two strings."""
        try:
            which = Collective[collective.upper()]
        except (KeyError, AttributeError):
            raise ValueError(f'collective: {collective!r} is not one of '
                             + ', '.join(c.name.lower() for c in Collective)) from None
        nbytes = arrays.index('nbytes', nbytes, 2**63)
        algorithm, why = ctypes.c_int(), ctypes.create_string_buffer(ERR_LEN)
        with self._lock:
            self._check(self._lib.ccl_selected(self._open(), which, nbytes, ctypes.byref(algorithm), why), collective)
            return self._lib.ccl_algorithm_name(algorithm).decode(), why.value.decode(errors='replace')

    # ---- registered memory ----

    def register(self, array):
        """Collectives on buffers inside the array go without a copy to and from the device, until deregister."""
        array = arrays.buffer('array', array, True)
        if not array.nbytes:
            raise ValueError('array: is empty')
        with self._lock:
            rc = self._lib.ccl_register(self._open(), array.ctypes.data, array.nbytes)
            self._check(rc, 'register', {errno.EEXIST: 'array: overlaps one that is registered',
                                         errno.ENOSPC: 'array: 64 are registered already'})
            self._registered[array.ctypes.data] = array
        return array

    def deregister(self, array):
        """Of an array as given to register."""
        array = arrays.buffer('array', array, False)
        with self._lock:
            rc = self._lib.ccl_deregister(self._open(), array.ctypes.data)
            self._check(rc, 'deregister', {errno.ENOENT: 'array: is not registered',
                                           errno.EBUSY: 'array: a collective that uses it is unfinished'})
            self._registered.pop(array.ctypes.data, None)

    # ---- the machinery of collectives ----

    def _check(self, rc, what, known=None):
        if rc >= 0:
            return
        said = self._lib.ccl_error(self._handle).decode(errors='replace')
        if said:
            raise CommunicatorError(-rc, said)
        if known and -rc in known:
            raise ValueError(known[-rc])
        if rc == -errno.EOPNOTSUPP:
            raise Unsupported(-rc, f'{what}: the communicator does not do it (collectives and types of its group: info())')
        raise Error(-rc, f'{what}: {describe(-rc)}')

    def _issue(self, function, result, spans, *arguments, what):
        """Calls ccl_i...; spans are whose memory it uses. One that is queued in spite of an error has its buffers, too: its
        wait says what becomes of it."""
        req = _Req(NOT_QUEUED)
        with self._lock:
            handle = self._open()
            if len(self._held) >= MAX_QUEUED:
                self._sweep()
            rc = function(handle, *arguments, ctypes.byref(req))
            while req.seq == NOT_QUEUED:
                if rc == -errno.EAGAIN:
                    self._oldest()
                elif not self._mended():
                    self._check(min(rc, -1), what)
                rc = function(handle, *arguments, ctypes.byref(req))
            self._held[req.seq] = [s.keep for s in spans if s]
        return Request(self, req.seq, result)

    def _mended(self):
        """True: it had failed, and goes on ("resume" in the group file). Only a wait finds that out, one for anything."""
        if not self._lib.ccl_error(self._handle):
            return False
        self._lib.ccl_wait(self._handle, _Req(NOT_QUEUED), 0)
        return not self._lib.ccl_error(self._handle)

    def _progress(self):
        rc = self._lib.ccl_progress(self._handle, time.monotonic_ns())
        if rc < 0 and not self._mended():
            self._check(rc, 'progress')

    def _oldest(self):
        """Room for one more: the oldest collective is finished, and the library has seen it."""
        if self._held:
            self._wait(min(self._held), None)
        self._progress()

    def _sweep(self):
        for seq in [s for s in self._held if self._lib.ccl_test(self._handle, _Req(s)) == 1]:
            del self._held[seq]

    def _is_done(self, seq):
        """As was found before."""
        if seq in self._lost:
            raise CommunicatorError(errno.ENOTCONN, 'the communicator was closed before the collective was done')
        return seq not in self._held

    def _test(self, seq):
        with self._lock:
            if self._is_done(seq):
                return True
            handle = self._open()
            rc = self._lib.ccl_test(handle, _Req(seq))  # it may be done although others have failed
            if rc != 1:
                self._progress()
                rc = self._lib.ccl_test(handle, _Req(seq))
            self._check(rc, 'test')
            if rc == 1:
                del self._held[seq]
            return rc == 1

    def _wait(self, seq, timeout):
        left = arrays.nanoseconds('timeout', timeout)
        while True:
            now = min(left, SLICE_NS)
            with self._lock:
                if self._is_done(seq):
                    return
                rc = self._lib.ccl_wait(self._open(), _Req(seq), now)
                if rc != -errno.ETIMEDOUT or self._lib.ccl_error(self._handle):
                    self._check(rc, 'wait')
                    del self._held[seq]
                    return
            if timeout is not None:
                left -= now
                if left <= 0:
                    raise TimeoutError(f'wait: not done after {timeout} s')

    # ---- collectives ----

    def _reduction(self, send, recv, op, dtype, count=None):
        """Spans of both, checked, and the operation. recv None: in place."""
        out = arrays.numbers('send', send, recv is None, dtype)
        back = out if recv is None else arrays.numbers('recv', recv, True, dtype)
        if recv is not None:
            arrays.same(out, back, count)
        return out, back, arrays.operation(op, out.dtype)

    def iallreduce(self, send, recv=None, op='sum', dtype=None):
        """allreduce, as a Request."""
        out, back, op = self._reduction(send, recv, op, dtype)
        arrays.apart(out, back, out, back)
        return self._issue(self._lib.ccl_iallreduce, send if recv is None else recv, (out, back), out.address,
                           back.address, out.count, out.dtype, op, what='allreduce')

    def allreduce(self, send, recv=None, op='sum', dtype=None):
        """recv[i] = op over all ranks of send[i]. Without recv in place, in send. Returns where the result is."""
        return self.iallreduce(send, recv, op, dtype).wait()

    def ireduce(self, send, recv=None, op='sum', root=0, dtype=None):
        """reduce, as a Request."""
        root = arrays.index('root', root, self._size)
        if self._rank != root:
            out = arrays.numbers('send', send, False, dtype)
            op = arrays.operation(op, out.dtype)
            return self._issue(self._lib.ccl_ireduce, None, (out,), out.address, None, out.count, out.dtype, op, root,
                               what='reduce')
        out, back, op = self._reduction(send, recv, op, dtype)
        arrays.apart(out, back, out, back)
        return self._issue(self._lib.ccl_ireduce, send if recv is None else recv, (out, back), out.address, back.address,
                           out.count, out.dtype, op, root, what='reduce')

    def reduce(self, send, recv=None, op='sum', root=0, dtype=None):
        """The same for the root alone, which gets the array with the result; the others get None, and their recv is not
        looked at."""
        return self.ireduce(send, recv, op, root, dtype).wait()

    def ibroadcast(self, array, root=0):
        """broadcast, as a Request."""
        root = arrays.index('root', root, self._size)
        span = arrays.data('array', array, self._rank != root)
        # The root's own result is where it was; C wants to be told a place for it.
        return self._issue(self._lib.ccl_ibroadcast, array, (span,), span.address, span.address, span.count, span.dtype,
                           root, what='broadcast')

    def broadcast(self, array, root=0):
        """Everybody's array becomes the root's. Returns it."""
        return self.ibroadcast(array, root).wait()

    def ibarrier(self):
        """barrier, as a Request."""
        return self._issue(self._lib.ccl_ibarrier, None, (), what='barrier')

    def barrier(self):
        """Returns when all ranks have called it."""
        self.ibarrier().wait()

    def ireduce_scatter(self, send, recv=None, op='sum', dtype=None):
        """reduce_scatter, as a Request."""
        out = arrays.numbers('send', send, recv is None, dtype)
        op = arrays.operation(op, out.dtype)
        count = arrays.blocks('send', out, self._size)
        own = out.block(self._rank, self._size)
        if recv is None:
            back, recv = own, send.reshape(-1)[self._rank * count:(self._rank + 1) * count]
        else:
            back = arrays.numbers('recv', recv, True, dtype)
            arrays.same(out, back, count)
            arrays.apart(out, back, own, back)
        return self._issue(self._lib.ccl_ireduce_scatter, recv, (out, back), out.address, back.address, count, out.dtype,
                           op, what='reduce_scatter')

    def reduce_scatter(self, send, recv=None, op='sum', dtype=None):
        """send has a block for each rank, one after the other; recv gets op over all ranks of the own block. Without
        recv in place: in the own block of send. Returns where the result is."""
        return self.ireduce_scatter(send, recv, op, dtype).wait()

    def iallgather(self, send, recv=None):
        """allgather, as a Request."""
        out = arrays.data('send', send)
        if recv is None:
            recv = numpy.empty((self._size, *send.shape), send.dtype)
        back = arrays.data('recv', recv, True)
        arrays.same(out, back, out.count * self._size)
        arrays.apart(out, back, back.block(self._rank, self._size), out)
        return self._issue(self._lib.ccl_iallgather, recv, (out, back), out.address, back.address, out.count,
                           out.dtype, what='allgather')

    def allgather(self, send, recv=None):
        """recv gets every rank's send, in the order of ranks. In place: send is the own block of recv (recv[rank]).
        Without recv an array of shape (size, *send.shape) is made. Returns it."""
        return self.iallgather(send, recv).wait()
