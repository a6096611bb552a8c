# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong. Arguments that are wrong by themselves are TypeError or ValueError, before anything is sent."""
import errno as _errno

__all__ = ['CommunicatorError', 'Error', 'GroupError', 'Unsupported']


class Error(Exception):
    """Of CommLib. errno: the number, positive, as in module errno."""

    def __init__(self, number, message):
        super().__init__(message or _errno.errorcode.get(number, f'error {number}'))
        self.errno = number


class GroupError(Error):
    """A group file, or the environment, that cannot be used: the message names the field or variable."""


class CommunicatorError(Error):
    """The communicator cannot be made, or has failed: it stays failed."""


class Unsupported(Error):
    """This communicator does not do that collective, with that type and operation. Nothing has happened."""
