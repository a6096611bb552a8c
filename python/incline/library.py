# SPDX-License-Identifier: BSD-3-Clause
"""libincline-ccl.so by ctypes: what include/incline/ccl.h and types.h declare, in their names. A test compares the two.

ctypes lets go of the interpreter's lock during a call: other threads run while one waits."""
import ctypes
import enum
import os
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p

ERR_LEN = 512
IP_LEN = 46


class Dtype(enum.IntEnum):
    """Types of elements."""
    FP32 = 0
    FP16 = 1
    BF16 = 2
    INT32 = 3
    FP64 = 4
    INT64 = 5
    INT8 = 6
    UINT8 = 7
    UINT32 = 8
    UINT64 = 9
    BYTES = 15


class Op(enum.IntEnum):
    """Operations of AllReduce, Reduce and ReduceScatter."""
    SUM = 0
    MIN = 1
    MAX = 2
    PROD = 3


class Collective(enum.IntEnum):
    """Bits of ccl_info.collectives, and what ccl_selected is asked for."""
    ALLREDUCE = 0
    REDUCE = 1
    BROADCAST = 2
    BARRIER = 3
    REDUCE_SCATTER = 4
    ALLGATHER = 5


class Mode(enum.IntEnum):
    """Of a communicator's group."""
    MODE_1 = 1
    MODE_2 = 2
    MODE_3 = 3
    MODE_NETREDUCE = 4
    MODE_RING = 5


class Request(ctypes.Structure):
    """struct ccl_req"""
    _fields_ = [('seq', c_uint64)]


class Info(ctypes.Structure):
    """struct ccl_info"""
    _fields_ = [('device', c_char * 64), ('local_ip', c_char * IP_LEN), ('remote_ip', c_char * IP_LEN),
                ('local_qpn', c_uint32), ('remote_qpn', c_uint32), ('start_psn', c_uint32),
                ('mtu', c_uint), ('m', c_uint), ('w', c_uint), ('gid_index', c_uint), ('mode', c_int), ('kind', c_int),
                ('n_groups', c_uint), ('collectives', c_uint), ('fallback', c_bool), ('selection', c_char * ERR_LEN),
                ('lease_granted', c_uint64), ('lease_refused', c_uint64), ('operations', c_uint64),
                ('messages', c_uint64), ('staged_sends', c_uint64), ('staged_receives', c_uint64),
                ('resumed', c_bool), ('resumed_at', c_uint64)]


_GROUP, _COMM, _ERR, _OUT = c_void_p, c_void_p, c_char_p, POINTER(c_void_p)
_REQ = POINTER(Request)
# name: (result, arguments)
FUNCTIONS = {
    'ccl_abort': (None, [_COMM, c_char_p]),
    'ccl_algorithm_name': (c_char_p, [c_int]),
    'ccl_algorithm_parse': (c_int, [c_char_p]),
    'ccl_comm_create': (c_int, [_GROUP, c_uint, _OUT, _ERR]),
    'ccl_comm_destroy': (c_int, [_COMM]),
    'ccl_deregister': (c_int, [_COMM, c_void_p]),
    'ccl_error': (c_char_p, [_COMM]),
    'ccl_group_free': (None, [_GROUP]),
    'ccl_group_load': (c_int, [c_char_p, _OUT, _ERR]),
    'ccl_group_load_text': (c_int, [c_char_p, _OUT, _ERR]),
    'ccl_group_set_algorithm': (c_int, [_GROUP, c_int, _ERR]),
    'ccl_group_set_timeout': (c_int, [_GROUP, c_uint64]),
    'ccl_group_size': (c_uint, [_GROUP]),
    'ccl_iallgather': (c_int, [_COMM, c_void_p, c_void_p, c_uint64, c_int, _REQ]),
    'ccl_iallreduce': (c_int, [_COMM, c_void_p, c_void_p, c_uint64, c_int, c_int, _REQ]),
    'ccl_ibarrier': (c_int, [_COMM, _REQ]),
    'ccl_ibroadcast': (c_int, [_COMM, c_void_p, c_void_p, c_uint64, c_int, c_uint, _REQ]),
    'ccl_ireduce': (c_int, [_COMM, c_void_p, c_void_p, c_uint64, c_int, c_int, c_uint, _REQ]),
    'ccl_ireduce_scatter': (c_int, [_COMM, c_void_p, c_void_p, c_uint64, c_int, c_int, _REQ]),
    'ccl_kind_name': (c_char_p, [c_int]),
    'ccl_launched': (c_int, [_GROUP, POINTER(c_uint), POINTER(c_uint), _ERR]),
    'ccl_query': (None, [_COMM, POINTER(Info)]),
    'ccl_rank': (c_uint, [_COMM]),
    'ccl_register': (c_int, [_COMM, c_void_p, c_size_t]),
    'ccl_selected': (c_int, [_COMM, c_int, c_uint64, POINTER(c_int), _ERR]),
    'ccl_size': (c_uint, [_COMM]),
    'ccl_test': (c_int, [_COMM, Request]),
    'ccl_progress': (c_int, [_COMM, c_uint64]),
    'ccl_wait': (c_int, [_COMM, Request, c_uint64]),
}
VERSION = 'INCLINE_CCL_0'  # of the symbols; another one means other layouts
_loaded = None


def _function(lib, name):
    """Its address as this version has it, else ImportError: a library with other layouts would write past our structures."""
    find = ctypes.CDLL(None).dlvsym
    find.restype, find.argtypes = c_void_p, [c_void_p, c_char_p, c_char_p]
    if not find(lib._handle, name.encode(), VERSION.encode()):
        raise ImportError(f'{lib._name} has no {name} of version {VERSION}: it is no libincline-ccl.so, or not the one that this '
                          'package was made for; INCLINE_CCL_LIBRARY names another')
    return getattr(lib, name)


def library():
    """The library, loaded once: INCLINE_CCL_LIBRARY if that is set, else where the loader looks (ldconfig,
    LD_LIBRARY_PATH). ImportError with what was tried, or what it lacks."""
    global _loaded
    if _loaded is None:
        name = os.environ.get('INCLINE_CCL_LIBRARY') or 'libincline-ccl.so.0'
        try:
            lib = ctypes.CDLL(name)
        except OSError as e:
            raise ImportError(f'{name} cannot be loaded: {e}; INCLINE_CCL_LIBRARY names another') from None
        for function, (result, arguments) in FUNCTIONS.items():
            f = _function(lib, function)
            f.restype, f.argtypes = result, arguments
        _loaded = lib
    return _loaded
