# SPDX-License-Identifier: BSD-3-Clause
"""Groups: who the ranks are and where they meet, from a group file (docs/group-file.md)."""
import ctypes
import errno
import json
import os
from numbers import Real

from . import arrays
from .errors import CommunicatorError, GroupError
from .library import ERR_LEN, library


class Group:
    """What a group file says. path: None for the one that INCLINE_GROUP names. A dict is taken for what the file would
    hold. GroupError names the field that is missing or wrong."""

    def __init__(self, path=None):
        self._lib = library()
        self._handle = None
        handle, why = ctypes.c_void_p(), ctypes.create_string_buffer(ERR_LEN)
        if isinstance(path, dict):
            try:
                text = json.dumps(path).encode()
            except (TypeError, ValueError) as e:
                raise GroupError(errno.EINVAL, f'group: is not what a JSON file can hold: {e}') from None
            rc = self._lib.ccl_group_load_text(text, ctypes.byref(handle), why)
        else:
            path = os.environ.get('INCLINE_GROUP') if path is None else path
            if path is None:
                raise GroupError(errno.ENOENT, 'group: no file is given, and INCLINE_GROUP is not set')
            if not isinstance(path, (str, bytes, os.PathLike)):
                raise TypeError(f'group: is {type(path).__name__}, not a Group, a path or a dict')
            rc = self._lib.ccl_group_load(os.fsencode(path), ctypes.byref(handle), why)
        self._check(GroupError, rc, why)
        self._handle = handle

    def __del__(self):
        if getattr(self, '_handle', None):
            self._lib.ccl_group_free(self._handle)

    @staticmethod
    def _check(error, rc, why):
        """The library's sentence, or if it has none the error's own."""
        if rc < 0:
            raise error(-rc, why.value.decode(errors='replace'))

    @property
    def size(self):
        """Number of ranks."""
        return self._lib.ccl_group_size(self._handle)

    def launched(self):
        """Own rank, as INCLINE_RANK or the launcher says (Open MPI, MPICH, PMIx, torchrun, Slurm)."""
        rank, size, why = ctypes.c_uint(), ctypes.c_uint(), ctypes.create_string_buffer(ERR_LEN)
        rc = self._lib.ccl_launched(self._handle, ctypes.byref(rank), ctypes.byref(size), why)
        self._check(GroupError, rc, why)
        return rank.value

    def set_timeout(self, seconds):
        """Overrides the file's: without progress for so long a communicator fails."""
        if not isinstance(seconds, Real):
            raise TypeError(f'timeout: {seconds!r} is not a number of seconds')
        if not 0.001 <= seconds <= 3600 or self._lib.ccl_group_set_timeout(self._handle, int(seconds * 1e9)):
            raise ValueError(f'timeout: {seconds} is not one of 0.001 to 3600 seconds')

    def set_algorithm(self, name):
        """Overrides the file's: 'auto', 'inc', 'ring' ... (lib/ccl/README.md)."""
        if not isinstance(name, str):
            raise TypeError(f'algorithm: {name!r} is not a string')
        number, why = self._lib.ccl_algorithm_parse(os.fsencode(name)), ctypes.create_string_buffer(ERR_LEN)
        if number < 0:
            raise ValueError(f'algorithm: {name!r} is not one that there is')
        self._check(GroupError, self._lib.ccl_group_set_algorithm(self._handle, number, why), why)

    def join(self, rank):
        """A communicator's handle; collective over all ranks."""
        handle, why = ctypes.c_void_p(), ctypes.create_string_buffer(ERR_LEN)
        rank = arrays.index('rank', rank, self.size)
        rc = self._lib.ccl_comm_create(self._handle, rank, ctypes.byref(handle), why)
        self._check(CommunicatorError, rc, why)
        return handle
