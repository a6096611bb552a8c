# SPDX-License-Identifier: BSD-3-Clause
"""A backend of torch.distributed, "incline", by its interface for third parties; nothing is compiled.

    import incline.torch
    torch.distributed.init_process_group('incline')   # torchrun's environment, and INCLINE_GROUP

AllReduce, Reduce, Broadcast, Barrier, ReduceScatter and AllGather of dense CPU tensors run in CommLib; what it has no type or
operation for, all other calls (send, gather, all_to_all ...), and groups of fewer ranks than the group file's go to gloo, which
is started beside it. Ranks decide by type, operation and call only, which are the same at all of them."""
import collections
import queue
import sys
import threading
import warnings
import weakref

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work as _Work

from .communicator import Communicator
from .errors import CommunicatorError
from .group import Group

__all__ = ['ProcessGroup', 'Work', 'calls']

COMPUTED = {torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int32, torch.int64, torch.uint8}
OPS = (dist.ReduceOp.SUM, 'sum'), (dist.ReduceOp.MIN, 'min'), (dist.ReduceOp.MAX, 'max'), (dist.ReduceOp.PRODUCT, 'prod')
SOON = 0.005  # who waits for a collective looks this often for new ones to issue
KEPT = 8      # DistributedDataParallel waits for the third last of its calls at the latest

_counted = {True: collections.Counter(), False: collections.Counter()}


def calls():
    """Calls of this process so far: ({name: by CommLib}, {name: by gloo})."""
    return dict(_counted[True]), dict(_counted[False])


def _only(tensors):
    """The one tensor of a list, which must be where CommLib can take it."""
    if len(tensors) != 1:
        raise ValueError(f'tensors: {len(tensors)}, and one is taken')
    return _usable(tensors[0])


def _usable(tensor):
    if tensor.device.type != 'cpu' or tensor.layout != torch.strided or not tensor.is_contiguous():
        raise ValueError(f'tensor: is not dense, contiguous and on the CPU ({tensor.device}, {tensor.layout}, '
                         f'strides {tuple(tensor.stride()) if tensor.layout == torch.strided else None})')
    return tensor.detach()


def _array(tensor):
    """The same memory for numpy, which has no bfloat16."""
    return tensor.view(torch.int16).numpy().view('uint16') if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _how(tensor, op):
    """Arguments of a reduction, or None: CommLib has no such thing."""
    name = next((ours for theirs, ours in OPS if op == theirs), None)
    if name is None or tensor.dtype not in COMPUTED or (name == 'prod' and tensor.element_size() == 1):
        return None
    return {'op': name, 'dtype': 'bfloat16' if tensor.dtype == torch.bfloat16 else None}


class Work(_Work):
    """A collective on its way. wait raises what became of it; torch's own Work, made of a future, would not."""

    def __init__(self, issue, after, result):
        super().__init__()
        self.issue, self.after, self.error = issue, after, None
        self._ended, self._begun = threading.Event(), torch.futures.Future()

        def value(_):
            if self.error is not None:
                raise self.error
            return result

        # A future that is given an exception is none that has failed, for C++: one whose callback raises is.
        self._future = self._begun.then(value)

    def end(self, error):
        self.issue, self.after, self.error = None, None, error
        self._ended.set()
        self._begun.set_result(None)

    def wait(self, timeout=None):
        seconds = timeout.total_seconds() if timeout else None
        if not self._ended.wait(seconds or None):
            raise TimeoutError(f'wait: not done after {seconds} s')
        if self.error is not None:
            raise self.error
        return True

    def is_completed(self):
        return self._ended.is_set()

    def is_success(self):
        return self._ended.is_set() and self.error is None

    def exception(self):
        return self.error

    def get_future(self):
        return self._future


def _called_by_python():
    """Is it torch.distributed that has called the process group? C++ holds its half of a Work only, and must find ours
    alive. (Frames: this, call, _here, the collective, its caller.)"""
    try:
        return sys._getframe(4).f_globals.get('__name__') == dist.distributed_c10d.__name__
    except ValueError:
        return False  # a thread of C++'s own


class _Worker:
    """A communicator, and the thread that alone calls it: issues in the order of the calls, waits in the same."""

    def __init__(self, group, rank):
        self.comm = Communicator(group, rank)
        self.size, self.users = self.comm.size, 0
        self.kept = collections.deque(maxlen=KEPT)
        self.queue = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name='incline', daemon=True)
        self.thread.start()

    def call(self, issue, after, result):
        """issue() gives a Request; when it is done after(), if it is not None."""
        work = Work(issue, after, result)
        if not _called_by_python():
            self.kept.append(work)
        self.queue.put(work)
        return work

    def _run(self):
        open_ = collections.deque()
        while True:
            try:
                work = self.queue.get(block=not open_)
                if work is None:
                    self._end(open_)
                    return
                open_.append((work, self._issue(work)))
            except queue.Empty:
                if self._finish(*open_[0], SOON):
                    open_.popleft()

    def _issue(self, work):
        try:
            return work.issue()
        except Exception as e:
            return e

    def _finish(self, work, request, timeout):
        """False: not yet."""
        try:
            if isinstance(request, Exception):
                raise request
            request.wait(timeout)
            if work.after:
                work.after()
        except TimeoutError:
            return False
        except Exception as e:
            work.end(e)
        else:
            work.end(None)
        return True

    def _end(self, open_):
        while open_:
            self._finish(*open_.popleft(), None)
        failed = self.comm.error
        try:
            self.comm.close()
        except CommunicatorError as e:
            if not failed:  # else somebody has been told
                warnings.warn(f'incline: {e}', RuntimeWarning)

    def leave(self):
        """The last process group that uses it has gone."""
        global _world
        self.users -= 1
        if self.users == 0:
            _world = None
            self.queue.put(None)
            self.thread.join()


_world = None  # of all ranks of the group file; process groups of all ranks share it


def _join(rank, size):
    """The worker for a process group, or None: it is not of all ranks."""
    global _world
    if _world is None:
        group = Group()
        if group.size != size:
            if dist.is_initialized():
                return None
            raise ValueError(f'world_size: {size}, and the group of INCLINE_GROUP has {group.size} ranks')
        _world = _Worker(group, rank)
    return _world if _world.size == size else None


class ProcessGroup(dist.ProcessGroup):
    """What torch.distributed calls, and what C++ (DistributedDataParallel) calls."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._gloo = dist.ProcessGroupGloo(dist.PrefixStore('incline-gloo', store), rank, size, timeout=timeout)
        self._worker = _join(rank, size)
        if self._worker:
            self._worker.users += 1
            weakref.finalize(self, self._worker.leave)

    def getBackendName(self):
        return 'incline'

    _get_backend_name = getBackendName

    def _elsewhere(self, name, *arguments):
        _counted[False][name] += 1
        return getattr(self._gloo, name)(*arguments)

    def _here(self, name, issue, after=None, result=None):
        _counted[True][name] += 1
        return self._worker.call(issue, after, result)

    def allreduce(self, tensors, opts=None):
        opts = opts or dist.AllreduceOptions()
        t = _only(tensors)
        how = _how(t, opts.reduceOp)
        if not self._worker or not how:
            return self._elsewhere('allreduce', tensors, opts)
        return self._here('allreduce', lambda: self._worker.comm.iallreduce(_array(t), **how), result=list(tensors))

    def reduce(self, tensors, opts):
        t = _only(tensors)
        how = _how(t, opts.reduceOp)
        if not self._worker or not how:
            return self._elsewhere('reduce', tensors, opts)
        root = opts.rootRank
        return self._here('reduce', lambda: self._worker.comm.ireduce(_array(t), root=root, **how), result=list(tensors))

    def broadcast(self, tensors, opts=None):
        opts = opts or dist.BroadcastOptions()
        t, root = _only(tensors), opts.rootRank
        if not self._worker:
            return self._elsewhere('broadcast', tensors, opts)
        return self._here('broadcast', lambda: self._worker.comm.ibroadcast(_array(t), root), result=list(tensors))

    def barrier(self, opts=None):
        if not self._worker:
            return self._elsewhere('barrier', opts or dist.BarrierOptions())
        return self._here('barrier', lambda: self._worker.comm.ibarrier(), result=[])

    def allgather(self, outputs, inputs, opts=None):
        """Into a list of tensors: through one that lies in a row."""
        if not self._worker:
            return self._elsewhere('allgather', outputs, inputs, opts or dist.AllgatherOptions())
        t, out = _only(inputs), outputs[0]
        if len(outputs) != 1 or len(out) != self.size() or any(o.numel() != t.numel() or o.dtype != t.dtype for o in out):
            raise ValueError(f'tensor_list: is not {self.size()} tensors of {t.numel()} elements of {t.dtype}')
        row = torch.empty((self.size(), t.numel()), dtype=t.dtype)

        def spread():
            for one, got in zip(out, row):
                one.detach().copy_(got.view(one.shape))
        return self._here('allgather', lambda: self._worker.comm.iallgather(_array(t.reshape(-1)), _array(row)), spread, [list(out)])

    def _allgather_base(self, output, tensor, opts=None):
        if not self._worker:
            return self._elsewhere('_allgather_base', output, tensor, opts or dist.AllgatherOptions())
        out, t = _usable(output), _usable(tensor)
        return self._here('allgather', lambda: self._worker.comm.iallgather(_array(t), _array(out)), result=[output])

    def reduce_scatter(self, outputs, inputs, opts=None):
        """From a list of tensors: through one that lies in a row."""
        opts = opts or dist.ReduceScatterOptions()
        out = _only(outputs)
        how = _how(out, opts.reduceOp)
        if not self._worker or not how:
            return self._elsewhere('reduce_scatter', outputs, inputs, opts)
        if len(inputs) != 1 or len(inputs[0]) != self.size() or any(t.numel() != out.numel() or t.dtype != out.dtype for t in inputs[0]):
            raise ValueError(f'input_list: is not {self.size()} tensors of {out.numel()} elements of {out.dtype}')
        row = torch.stack([t.detach().reshape(-1) for t in inputs[0]])
        return self._here('reduce_scatter', lambda: self._worker.comm.ireduce_scatter(_array(row), _array(out.view(-1)), **how),
                          result=list(outputs))

    def _reduce_scatter_base(self, output, tensor, opts=None):
        opts = opts or dist.ReduceScatterOptions()
        out, t = _usable(output), _usable(tensor)
        how = _how(out, opts.reduceOp)
        if not self._worker or not how:
            return self._elsewhere('_reduce_scatter_base', output, tensor, opts)
        return self._here('reduce_scatter', lambda: self._worker.comm.ireduce_scatter(_array(t), _array(out), **how), result=[output])


def _gloo_call(name):
    def call(self, *arguments):
        return self._elsewhere(name, *arguments)
    call.__name__, call.__doc__ = name, 'By gloo.'
    return call


for _name in ('allgather_coalesced', 'allreduce_coalesced', 'alltoall', 'alltoall_base', 'gather', 'monitored_barrier', 'recv',
              'recv_anysource', 'scatter', 'send'):
    setattr(ProcessGroup, _name, _gloo_call(_name))

dist.Backend.register_backend('incline', ProcessGroup)
