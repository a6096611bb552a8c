# SPDX-License-Identifier: BSD-3-Clause
"""A sum over all ranks, in the network:

    INCLINE_GROUP=group.json mpirun python3 allreduce.py

with mpirun, srun, torchrun, or any other way to start a process per rank (INCLINE_RANK=N)."""
import numpy

import incline

COUNT = 1 << 20

with incline.Communicator() as comm:
    v = (comm.rank + numpy.arange(COUNT) % 1000).astype('float32')
    comm.register(v)  # optional: no copies on the way to the device
    comm.allreduce(v)
    n = comm.size
    wrong = numpy.count_nonzero(v != n * (n - 1) // 2 + n * (numpy.arange(COUNT) % 1000))
    print(f'rank {comm.rank} of {n}: {COUNT} sums, {wrong} wrong')
