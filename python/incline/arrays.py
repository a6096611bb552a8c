# SPDX-License-Identifier: BSD-3-Clause
"""What may be given to a collective, and what C gets of it: addresses, counts, types. Nothing is copied."""
import math
import operator
from numbers import Real
from typing import NamedTuple

import numpy

from .library import Dtype, Op

TYPES = {'float32': Dtype.FP32, 'float16': Dtype.FP16, 'int32': Dtype.INT32, 'float64': Dtype.FP64,
         'int64': Dtype.INT64, 'int8': Dtype.INT8, 'uint8': Dtype.UINT8, 'uint32': Dtype.UINT32, 'uint64': Dtype.UINT64}
FOREVER = 2**64 - 1  # nanoseconds
BYTES_OF = {Dtype.FP32: 4, Dtype.FP16: 2, Dtype.BF16: 2, Dtype.INT32: 4, Dtype.FP64: 8, Dtype.INT64: 8, Dtype.INT8: 1,
            Dtype.UINT8: 1, Dtype.UINT32: 4, Dtype.UINT64: 8, Dtype.BYTES: 1}


class Span(NamedTuple):
    """Where the elements of a buffer lie. keep: who owns them."""
    address: int
    count: int
    dtype: Dtype
    keep: object

    @property
    def bytes(self):
        return self.count * BYTES_OF[self.dtype]

    def block(self, rank, ranks):
        """A rank's part of a vector with one for each."""
        count = self.count // ranks
        return Span(self.address + rank * count * BYTES_OF[self.dtype], count, self.dtype, self.keep)

    def overlaps(self, other):
        return self.address < other.address + other.bytes and other.address < self.address + self.bytes


def buffer(name, array, writable):
    """An array as it lies in memory, or an error that names the argument."""
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f'{name}: is {type(array).__name__}, not numpy.ndarray (numpy.asarray makes one)')
    if isinstance(array, numpy.ma.MaskedArray):
        raise TypeError(f'{name}: is a masked array, whose mask would stay here (its filled() makes one without)')
    if not array.flags.c_contiguous:
        raise ValueError(f'{name}: is not C-contiguous (numpy.ascontiguousarray makes a copy that is)')
    if writable and not array.flags.writeable:
        raise ValueError(f'{name}: is read-only')
    return array


def number_type(name, array, dtype=None):
    """The type of what is computed with. dtype: 'bfloat16' for an array of uint16, which numpy has no type for."""
    if dtype is not None:
        if dtype != 'bfloat16':
            raise ValueError(f'dtype: {dtype!r} is not \'bfloat16\'; all other types are the array\'s own')
        if array.dtype != numpy.uint16:
            raise ValueError(f'{name}: is {array.dtype}; bfloat16 is given as uint16')
        return Dtype.BF16
    if array.dtype.isnative and array.dtype.name in TYPES:
        return TYPES[array.dtype.name]
    order = '' if array.dtype.isnative else ' of the other byte order'
    raise TypeError(f'{name}: {array.dtype.name}{order} is not one of {", ".join(TYPES)} (bfloat16: dtype=\'bfloat16\')')


def numbers(name, array, writable=False, dtype=None):
    array = buffer(name, array, writable)
    kind = number_type(name, array, dtype)
    if not array.flags.aligned:
        raise ValueError(f'{name}: its elements of {array.dtype} do not lie at multiples of {array.dtype.alignment} bytes '
                         '(a copy() of it does)')
    return Span(array.ctypes.data, array.size, kind, array)


def data(name, array, writable=False):
    """What is only moved: every type but references to objects. Those that CommLib knows go by their names, so that ranks
    with different ones are told."""
    array = buffer(name, array, writable)
    if array.dtype.hasobject:
        raise TypeError(f'{name}: {array.dtype} holds references, which mean nothing elsewhere')
    if array.dtype.isnative and array.dtype.name in TYPES:
        return Span(array.ctypes.data, array.size, TYPES[array.dtype.name], array)
    return Span(array.ctypes.data, array.nbytes, Dtype.BYTES, array)


def operation(op, dtype):
    """'sum', 'min', 'max', 'prod', or Op."""
    try:
        op = Op[op.upper()] if isinstance(op, str) else Op(op)
    except (KeyError, ValueError):
        raise ValueError(f'op: {op!r} is not one of {", ".join(o.name.lower() for o in Op)}') from None
    if op == Op.PROD and dtype in (Dtype.INT8, Dtype.UINT8):
        raise ValueError(f'op: prod is not offered for {dtype.name.lower()}')
    return op


def nanoseconds(name, seconds):
    """None is for ever; less than nothing is nothing."""
    if seconds is None or seconds == math.inf:
        return FOREVER
    if not isinstance(seconds, Real) or math.isnan(seconds):
        raise TypeError(f'{name}: {seconds!r} is not a number of seconds')
    return min(max(0, int(seconds * 1e9)), FOREVER)


def index(name, value, size):
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f'{name}: {value!r} is not an integer') from None
    if not 0 <= value < size:
        raise ValueError(f'{name}: {value} is not one of 0 to {size - 1}')
    return value


def same(send, recv, count=None):
    """recv gets as much as send has, or count elements, of the same type."""
    want = send.count if count is None else count
    what = 'bytes' if send.dtype == Dtype.BYTES else 'elements'
    if recv.keep.dtype != send.keep.dtype:
        raise ValueError(f'recv: is {recv.keep.dtype}, send is {send.keep.dtype}')
    if recv.count != want:
        raise ValueError(f'recv: has {recv.count} {what}, {want} are needed (send has {send.count})')


def apart(send, recv, place, other):
    """They lie apart, or `other`, one of them, is its place in the other one."""
    if send.overlaps(recv) and (place.address, place.count) != (other.address, other.count):
        raise ValueError('recv: overlaps send other than in place')


def blocks(name, span, ranks):
    if span.count % ranks:
        raise ValueError(f'{name}: {span.count} elements are no multiple of {ranks} ranks')
    return span.count // ranks
