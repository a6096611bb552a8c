# SPDX-License-Identifier: BSD-3-Clause
"""A backend of torch.distributed, "incline", by its interface for third parties; nothing is compiled.

    import incline.torch
    torch.distributed.init_process_group('incline')   # torchrun's environment, and INCLINE_GROUP

AllReduce, Reduce, Broadcast, Barrier, ReduceScatter and AllGather of dense CPU tensors run in CommLib; what it has no type or
operation for, all other calls (send, gather, all_to_all ...), and groups of fewer ranks than the group file's go to gloo, which
is started beside it. Ranks decide by type, operation and call only, which are the same at all of them."""
import collections
import errno
import os
import queue
import sys
import threading
import warnings
import weakref

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work as _Work

from .arrays import index
from .communicator import Communicator
from .errors import CommunicatorError, told
from .group import Group

__all__ = ['ProcessGroup', 'Work', 'calls']

COMPUTED = {torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int32, torch.int64, torch.uint8}
OPS = (dist.ReduceOp.SUM, 'sum'), (dist.ReduceOp.MIN, 'min'), (dist.ReduceOp.MAX, 'max'), (dist.ReduceOp.PRODUCT, 'prod')
SOON = 0.005  # who waits for a collective looks this often for new ones to issue
KEPT = 8      # DistributedDataParallel waits for the third last of its calls at the latest

_inside = threading.local()  # worker: this is a _Worker's thread
_counted = {True: collections.Counter(), False: collections.Counter()}


def calls():
    """Calls of this process so far: ({name: by CommLib}, {name: by gloo})."""
    return dict(_counted[True]), dict(_counted[False])


def _only(tensors):
    """The one tensor of a list, which must be where CommLib can take it."""
    if len(tensors) != 1:
        raise ValueError(f'tensors: {len(tensors)}, and one is taken')
    return _usable(tensors[0])


def _usable(tensor, name='tensor'):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f'{name}: is {type(tensor).__name__}, not a tensor')
    if tensor.device.type != 'cpu':
        raise ValueError(f'{name}: is on {tensor.device}; backend incline takes tensors on the CPU only')
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise ValueError(f'{name}: is not dense ({tensor.layout}, {tensor.dtype})')
    if not tensor.is_contiguous():
        raise ValueError(f'{name}: is not contiguous (strides {tuple(tensor.stride())} of shape {tuple(tensor.shape)})')
    if tensor.is_conj() or tensor.is_neg():
        raise ValueError(f'{name}: is a view with conjugation or negation still to be done (resolve_conj(), resolve_neg())')
    return tensor.detach()


def _parts(name, lists, n, like):
    """The one list, which has a tensor for each rank, each of the type and shape of another one."""
    if len(lists) != 1:
        raise ValueError(f'{name}: {len(lists)} lists, and one is taken')
    if not isinstance(lists[0], (list, tuple)):
        raise TypeError(f'{name}: is {type(lists[0]).__name__}, not a list of tensors')
    if len(lists[0]) != n:
        raise ValueError(f'{name}: has {len(lists[0])} tensors, and is to have {n}, one for each rank')
    parts = [_usable(t, f'{name}[{i}]') for i, t in enumerate(lists[0])]
    for i, t in enumerate(parts):
        if t.dtype != like.dtype or t.shape != like.shape:
            raise ValueError(f'{name}[{i}]: is of {t.dtype} and shape {tuple(t.shape)}, and is to be of {like.dtype} and '
                             f'shape {tuple(like.shape)}')
    return parts


def _whole(name, whole, part, n):
    """One tensor with a part for each rank."""
    if whole.dtype != part.dtype or whole.numel() != n * part.numel():
        raise ValueError(f'{name}: has {whole.numel()} elements of {whole.dtype}, and is to have {n} times {part.numel()} of {part.dtype}')


def _array(tensor):
    """The same memory for numpy, which has no bfloat16."""
    return tensor.view(torch.int16).numpy().view('uint16') if tensor.dtype == torch.bfloat16 else tensor.numpy()


def _how(tensors, op):
    """Arguments of a reduction, or None: CommLib has no such thing."""
    tensor = tensors[0] if len(tensors) == 1 else _only(tensors)
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
        try:
            self._begun.set_result(None)
        except Exception:  # of what others have hung on the future; they are shown, and end nobody's wait
            sys.excepthook(*sys.exc_info())

    def wait(self, timeout=None):
        seconds = timeout.total_seconds() if timeout else None
        if getattr(_inside, 'worker', False) and not self._ended.is_set():
            raise RuntimeError('wait: in a callback of a future, which runs where the collective is to be done')
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


def _died_of():
    """The exception that ends this program, if one does: the others are told, and need not wait for their timeouts.
    sys.last_value may be one that was handled, too (pytest's, Tk's): there were frames below the one that it came to."""
    error = getattr(sys, 'last_value', None)
    trace = getattr(error, '__traceback__', None)
    return told(error) if trace and not trace.tb_frame.f_back and not hasattr(sys, 'ps1') else None


class _End:
    """Behind the last collective."""

    def __init__(self, why):
        self.why = why


class _Worker:
    """A communicator, and the thread that alone calls it: issues in the order of the calls, waits in the same."""

    def __init__(self, group, rank):
        self.comm, self.process = Communicator(group, rank), os.getpid()
        self.size, self.users = self.comm.size, 0
        self.kept = collections.deque(maxlen=KEPT)
        self.queue = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name='incline', daemon=True)
        self.thread.start()

    def own(self):
        """A child has neither the thread nor the device, and cannot open that either."""
        if self.process != os.getpid():
            raise CommunicatorError(errno.ENOTCONN, f'the process group is that of process {self.process}: '
                                                    'it does not follow into one that was forked')

    def call(self, issue, after, result):
        """issue(communicator) gives a Request; when it is done after(), if it is not None."""
        self.own()
        if not self.thread.is_alive():
            raise CommunicatorError(errno.ENOTCONN, 'the process group has ended')
        work = Work(issue, after, result)
        if not _called_by_python():
            self.kept.append(work)
        self.queue.put(work)
        return work

    def _run(self):
        open_, _inside.worker = collections.deque(), True
        while True:
            try:
                work = self.queue.get(block=not open_)
            except queue.Empty:
                if self._finish(*open_[0], SOON):
                    open_.popleft()
                continue
            if isinstance(work, _End):
                self._end(open_, work.why)
                return
            open_.append((work, self._issue(work)))
            del work  # or the last one would stay until the next comes

    def _issue(self, work):
        try:
            return work.issue(self.comm)
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

    def _end(self, open_, why):
        try:
            if why:
                self.comm.abort(why)
        finally:
            self._close(open_)

    def _close(self, open_):
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
        if self.users or self.process != os.getpid():
            return
        if _world is self:
            _world = None
        self.queue.put(_End(_died_of()))
        if self.thread is not threading.current_thread():
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
        if _world:
            _world.own()
        self._gloo = dist.ProcessGroupGloo(dist.PrefixStore('incline-gloo', store), rank, size, timeout=timeout)
        self._worker = _join(rank, size)
        if self._worker:
            self._worker.users += 1
            weakref.finalize(self, self._worker.leave)

    def getBackendName(self):
        return 'incline'

    _get_backend_name = getBackendName

    def _elsewhere(self, name, *arguments):
        """By gloo, whose errors do not say of what they are."""
        _counted[False][name] += 1
        try:
            return getattr(self._gloo, name)(*arguments)
        except (AttributeError, RuntimeError) as e:
            raise RuntimeError(f'{name}: CommLib has no such call, type or operation, or none for these ranks; '
                               f'nor has gloo, or it has failed: {e}') from e

    def _here(self, name, issue, after=None, result=None):
        _counted[True][name] += 1
        return self._worker.call(issue, after, result)

    def allreduce(self, tensors, opts=None):
        opts = opts or dist.AllreduceOptions()
        how = self._worker and _how(tensors, opts.reduceOp)
        if not how:
            return self._elsewhere('allreduce', tensors, opts)
        t = _array(_only(tensors))
        return self._here('allreduce', lambda comm: comm.iallreduce(t, **how), result=list(tensors))

    def reduce(self, tensors, opts):
        how = self._worker and _how(tensors, opts.reduceOp)
        if not how:
            return self._elsewhere('reduce', tensors, opts)
        t, root = _array(_only(tensors)), index('root', opts.rootRank, self.size())
        return self._here('reduce', lambda comm: comm.ireduce(t, root=root, **how), result=list(tensors))

    def broadcast(self, tensors, opts=None):
        opts = opts or dist.BroadcastOptions()
        if not self._worker:
            return self._elsewhere('broadcast', tensors, opts)
        t, root = _array(_only(tensors)), index('root', opts.rootRank, self.size())
        return self._here('broadcast', lambda comm: comm.ibroadcast(t, root), result=list(tensors))

    def barrier(self, opts=None):
        """When it is done all ranks have called it, and all that this one has called before is done."""
        if not self._worker:
            return self._elsewhere('barrier', opts or dist.BarrierOptions())
        return self._here('barrier', lambda comm: comm.ibarrier(), result=[])

    def allgather(self, outputs, inputs, opts=None):
        """Into a list of tensors: through one that lies in a row."""
        if not self._worker:
            return self._elsewhere('allgather', outputs, inputs, opts or dist.AllgatherOptions())
        t = _only(inputs)
        out = _parts('tensor_list', outputs, self.size(), t)
        row = torch.empty((self.size(), t.numel()), dtype=t.dtype)
        mine, every = _array(t.reshape(-1)), _array(row)

        def spread():
            for one, got in zip(out, row):
                one.copy_(got.view(one.shape))
        return self._here('allgather', lambda comm: comm.iallgather(mine, every), spread, [list(outputs[0])])

    def _allgather_base(self, output, tensor, opts=None):
        if not self._worker:
            return self._elsewhere('_allgather_base', output, tensor, opts or dist.AllgatherOptions())
        out, t = _usable(output, 'output_tensor'), _usable(tensor, 'input_tensor')
        _whole('output_tensor', out, t, self.size())
        mine, every = _array(t), _array(out)
        return self._here('allgather', lambda comm: comm.iallgather(mine, every), result=[output])

    def reduce_scatter(self, outputs, inputs, opts=None):
        """From a list of tensors: through one that lies in a row."""
        opts = opts or dist.ReduceScatterOptions()
        how = self._worker and _how(outputs, opts.reduceOp)
        if not how:
            return self._elsewhere('reduce_scatter', outputs, inputs, opts)
        out = _only(outputs)
        row = torch.stack([t.view(-1) for t in _parts('input_list', inputs, self.size(), out)])
        every, mine = _array(row), _array(out.view(-1))
        return self._here('reduce_scatter', lambda comm: comm.ireduce_scatter(every, mine, **how), result=list(outputs))

    def _reduce_scatter_base(self, output, tensor, opts=None):
        opts = opts or dist.ReduceScatterOptions()
        how = self._worker and _how([output], opts.reduceOp)
        if not how:
            return self._elsewhere('_reduce_scatter_base', output, tensor, opts)
        out, t = _usable(output, 'output_tensor'), _usable(tensor, 'input_tensor')
        _whole('input_tensor', t, out, self.size())
        every, mine = _array(t), _array(out)
        return self._here('reduce_scatter', lambda comm: comm.ireduce_scatter(every, mine, **how), result=[output])


def _gloo_call(name):
    def call(self, *arguments):
        return self._elsewhere(name, *arguments)
    call.__name__, call.__doc__ = name, 'By gloo.'
    return call


for _name in ('allgather_coalesced', 'allreduce_coalesced', 'alltoall', 'alltoall_base', 'gather', 'monitored_barrier', 'recv',
              'recv_anysource', 'scatter', 'send'):
    setattr(ProcessGroup, _name, _gloo_call(_name))

dist.Backend.register_backend('incline', ProcessGroup)
