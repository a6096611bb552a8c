# SPDX-License-Identifier: BSD-3-Clause
"""Collectives in the network, on numpy arrays:

    import incline, numpy

    with incline.Communicator() as comm:  # INCLINE_GROUP, and the launcher's rank
        gradients = numpy.ones(1 << 20, 'float32')
        comm.allreduce(gradients)         # in place

`import incline.torch` makes "incline" a backend of torch.distributed."""
from .communicator import Communicator, Request
from .errors import CommunicatorError, Error, GroupError, Unsupported
from .group import Group
from .library import Dtype, Op

__all__ = ['Communicator', 'CommunicatorError', 'Dtype', 'Error', 'Group', 'GroupError', 'Op', 'Request', 'Unsupported']
