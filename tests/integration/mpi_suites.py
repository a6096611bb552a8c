#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPI programs that nobody here wrote, with libincline_mpi.so preloaded on four hosts of tools/lab: the collectives of MPICH's
own test suite, compiled for Open MPI, and Debian's HPC Challenge. What passes without the library passes with it, and it is
said how many calls ran in the network. Of tools/test --long, which installs hpcc; the suite is of Debian's source package
mpich, which is fetched into the build directory. Exit 77 (skipped) without Open MPI."""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from fabric_case import TOP, build_dir, run_tests  # noqa: E402
from mpi_case import PATIENCE, MpiFabric  # noqa: E402

YIELD = '--mca', 'mpi_yield_when_idle', '1'
# Datatype pools of the suite are of MPI 1's names, which Open MPI's header has only to refuse them.
OLD_NAMES = {'Type_hindexed': 'Type_create_hindexed', 'Type_hvector': 'Type_create_hvector', 'Type_struct': 'Type_create_struct',
             'Address': 'Get_address'}
MPI_4 = re.compile(r'coll_large|p_')  # programs of what Open MPI 4.1 has not


class Programs(MpiFabric):
    topo = 'star4'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.counts = [0, 0]

    @classmethod
    def tearDownClass(cls):
        print('  {} of {} calls of collectives ran in the network'.format(*cls.counts), file=sys.stderr)
        super().tearDownClass()

    def run4(self, argv, network, cwd=None):
        """Four ranks, plain on this machine or in the network on hosts of the lab: (exit status, output, errors)."""
        env = {'OPENBLAS_NUM_THREADS': '1'}
        if network:
            env['INCLINE_MPI_SHOW'] = '1'
            each = f'exec {shlex.quote(TOP)}/tools/lab exec h$OMPI_COMM_WORLD_RANK -- "$@"'
            argv = ['sh', '-c', each, 'sh', *argv]
        p = self.launch_ranks('openmpi', argv, YIELD, preload=network, env=env, cwd=cwd or self.tmp, stdin=subprocess.DEVNULL)
        rc, out, err = self.finish([p], PATIENCE)[0]
        if network:
            for i, n in enumerate(self.summary(err, out)):
                self.counts[i] += n
        return rc, out, err


def sources(package):
    """Debian's source of a package below the build directory, from where this machine's packages come from."""
    where = os.path.join(build_dir(), 'suites')
    os.makedirs(os.path.join(where, 'lists/partial'), exist_ok=True)
    if not glob.glob(os.path.join(where, package + '_*.orig.tar.*')):
        uris = subprocess.run(['apt-get', 'indextargets', '--format', '$(REPO_URI) $(CODENAME) $(COMPONENT)', 'Created-By: Packages', 'Origin: Debian'],
                              check=True, capture_output=True, text=True).stdout
        with open(os.path.join(where, 'sources.list'), 'w') as f:
            f.writelines(f'deb-src {line}\n' for line in sorted(set(uris.splitlines())))
        mine = ['-o', f'Dir::Etc::sourcelist={where}/sources.list', '-o', 'Dir::Etc::sourceparts=-', '-o', f'Dir::State::lists={where}/lists',
                '-o', 'APT::Sandbox::User=root']
        for command in ['update'], ['source', '--download-only', package]:
            subprocess.run(['apt-get', '-q', *mine, *command], cwd=where, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
    return glob.glob(os.path.join(where, package + '_*.orig.tar.*'))[0]


class Mpich(Programs):
    """test/mpi/coll of the suite: a program says "No Errors" and ends with 0."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.suite = os.path.join(cls.tmp, 'mpi')
        subprocess.run(['tar', 'xf', sources('mpich'), '--wildcards', '--strip-components=2', '*/test/mpi'], cwd=cls.tmp, check=True)
        subprocess.run(['./configure', '--with-mpi=/usr', 'MPICC=mpicc.openmpi', '--disable-fortran', '--disable-cxx', '--disable-romio'],
                       cwd=cls.suite, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE)
        names = os.path.join(cls.tmp, 'names.h')
        with open(names, 'w') as f:
            f.write('#include <mpi.h>\n')
            f.writelines(f'#undef MPI_{old}\n#define MPI_{old} MPI_{new}\n' for old, new in OLD_NAMES.items())
        cls.cc = ['mpicc.openmpi', '-O1', '-w', '-DHAVE_CONFIG_H', '-include', names, *(f'-I{cls.suite}/{d}' for d in
                  ('include', 'dtpools/include', 'dtpools', 'dtpools/src', '.'))]
        util = [os.path.join(cls.suite, 'util', f) for f in ('mtest.c', 'mtest_common.c', 'mtest_single.c', 'dtypes.c')]
        subprocess.run([*cls.cc, '-c', *util, *glob.glob(f'{cls.suite}/dtpools/src/*.c')], cwd=cls.tmp, check=True, timeout=PATIENCE)
        cls.objects = glob.glob(f'{cls.tmp}/*.o')

    def listed(self):
        """(program, arguments) of the suite's own list, each once."""
        with open(os.path.join(self.suite, 'coll/testlist')) as f:
            lines = [line.split() for line in f if line.strip() and not line.startswith('#')]
        each = {(name, *(a[4:] for a in rest if a.startswith('arg='))) for name, _, *rest in lines}
        return sorted(e for e in each if not MPI_4.match(e[0]) and
                      os.path.exists(os.path.join(self.suite, f'coll/{e[0]}.c')))

    def passes(self, argv, network):
        rc, out, err = self.run4(argv, network)
        return rc == 0 and 'No Errors' in out, out + err

    def test_collectives(self):
        others = []
        for name, *args in self.listed():
            path = os.path.join(self.tmp, name)
            if not os.path.exists(path):
                subprocess.run([*self.cc, '-o', path, f'{self.suite}/coll/{name}.c', *self.objects, '-lm', '-lpthread'], check=True,
                               timeout=PATIENCE)
            right, said = self.passes([path, *args], False)
            if not right:
                others.append((name, said))
                continue
            with self.subTest(' '.join([name, *args])):
                right, said = self.passes([path, *args], True)
                self.assertTrue(right, said)
        for name, said in others:
            print(f'  not right without the library either: {name}: {" ".join(said.split())[:300]}', file=sys.stderr)
        self.assertGreater(self.counts[0], 1000)


class Hpcc(Programs):
    """HPC Challenge of Debian: its own checks of what it has computed."""

    def test_challenge(self):
        with open('/usr/share/doc/hpcc/examples/_hpccinf.txt') as f, open(os.path.join(self.tmp, 'hpccinf.txt'), 'w') as to:
            to.write(re.sub(r'^1000 ', '400  ', f.read(), flags=re.M))
        rc, out, err = self.run4(['hpcc'], True)
        self.assertEqual(rc, 0, out + err)
        with open(os.path.join(self.tmp, 'hpccoutf.txt')) as f:
            said = f.read()
        self.assertIn('\nSuccess=1\n', said)
        self.assertEqual(re.findall(r'^.*\.\.\.+ *FAILED.*$', said, re.M), [])
        self.assertGreater(self.counts[0], self.counts[1] / 2)


# Their tests are not this file's.
del Programs, MpiFabric

if __name__ == '__main__':
    missing = [p for p in ('mpirun.openmpi', 'mpicc.openmpi', 'hpcc') if not shutil.which(p)]
    if missing:
        print(f"skipped: {', '.join(missing)} not installed (tools/test --long does)")
        sys.exit(77)
    run_tests(verbosity=2)
