# SPDX-License-Identifier: BSD-3-Clause
"""What tests of MPI programs have in common: a directory of the class, launchers of Debian's libraries, the preload, and what it says at the end."""
import os
import re
import shutil
import subprocess
import tempfile

from fabric_case import Fabric, build_dir

PATIENCE = 300  # seconds: hangs only
RANKS = 4
LAUNCHERS = {'openmpi': ['mpirun.openmpi', '--oversubscribe', '--mca', 'pml', 'ob1', '--mca', 'btl', 'vader,self'],
             'mpich': ['mpirun.mpich']}
LIBRARIES = {mpi: os.path.join(build_dir(), 'lib/mpi', name) for mpi, name in
             (('openmpi', 'libincline_mpi.so'), ('mpich', 'libincline_mpi_mpich.so'))}
SUMMARY = re.compile(r'^incline: (\d+) of (\d+) calls of collectives in the network \(', re.M)


class MpiFabric(Fabric):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tmp = tempfile.mkdtemp(prefix='incline-')

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tmp)
        super().tearDownClass()

    def launch_ranks(self, mpi, argv, options=(), before=(), preload=False, env=None, **kwargs):
        """Four ranks of a program, whose launcher ends with the test; before: what runs the launcher."""
        as_root = ['--allow-run-as-root'] if mpi == 'openmpi' and os.geteuid() == 0 else []
        env = {**os.environ, 'INCLINE_LAB': self.dir, **(env or {})}
        if preload:
            env['INCLINE_PRELOAD_FIRST'] = LIBRARIES[mpi]
        process = subprocess.Popen([*before, *LAUNCHERS[mpi], *as_root, *options, '-np', str(RANKS), *argv], env=env, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **kwargs)
        self.procs.append(process)
        return process

    def summary(self, err, out=''):
        """(calls in the network, calls), as the preload says them."""
        said = SUMMARY.search(err)
        self.assertTrue(said, f'nothing is said of the network:\n{out}\n{err}')
        return int(said[1]), int(said[2])
