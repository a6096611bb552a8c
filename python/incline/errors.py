# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong. Arguments that are wrong by themselves are TypeError or ValueError, before anything is sent."""
import errno as _errno
import os as _os

__all__ = ['CommunicatorError', 'Error', 'GroupError', 'Unsupported']


def describe(number):
    """An error's name and what it means."""
    return f'{_errno.errorcode.get(number, number)}: {_os.strerror(number)}'


def told(error):
    """An exception as the other ranks are told of it."""
    try:
        return f'{type(error).__name__}: {error}'
    except Exception:  # its own __str__
        return type(error).__name__


class Error(Exception):
    """Of CommLib. errno: the number, positive, as in module errno."""

    def __init__(self, number, message):
        super().__init__(message or describe(number))
        self.errno = number

    def __reduce__(self):  # with both arguments, so that it comes through pickle
        return type(self), (self.errno, str(self))


class GroupError(Error):
    """A group file, or the environment, that cannot be used: the message names the field or variable."""


class CommunicatorError(Error):
    """The communicator cannot be made, or has failed: it stays failed."""


class Unsupported(Error):
    """This communicator does not do that collective, with that type and operation. Nothing has happened."""
