#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What hosts get: a build without DPDK, from libibverbs, jansson and OpenSSL alone, is installed into a folder; the example is built
by pkg-config from what lies there, and runs on four hosts of tools/lab. Run by meson test, or by hand."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from fabric_case import TOP, Fabric, run_tests  # noqa: E402

PATIENCE = 300  # seconds: hangs only
# Packages of the three libraries, with what they are made of.
FOUND = ['libibverbs', 'jansson', 'openssl', 'libssl', 'libcrypto', 'libnl-3.0', 'libnl-route-3.0']


def output(*argv, **kwargs):
    return subprocess.run(argv, check=True, text=True, capture_output=True, timeout=PATIENCE, **kwargs).stdout


class Host:
    """What is installed, and how programs are built with it."""

    def __init__(self):
        self.tmp = tempfile.mkdtemp(prefix='incline-')
        self.root = os.path.join(self.tmp, 'root')
        packages = os.path.join(self.tmp, 'pkgconfig')
        os.mkdir(packages)
        for folder in output('pkg-config', '--variable', 'pc_path', 'pkg-config').strip().split(':'):
            for name in FOUND:
                if os.path.exists(os.path.join(folder, name + '.pc')):
                    shutil.copy(os.path.join(folder, name + '.pc'), packages)
        env = dict(os.environ, PKG_CONFIG_LIBDIR=packages, DESTDIR=self.root, CCACHE_BASEDIR=TOP, CCACHE_NOHASHDIR='1')
        build = os.path.join(self.tmp, 'build')
        output('meson', 'setup', '-Dhost=only', '--prefix=/usr', build, cwd=TOP, env=env)
        output('ninja', '-C', build, 'install', env=env)
        self.libdir = os.path.dirname(glob.glob(self.root + '/usr/lib/**/libincline-ccl.so', recursive=True)[0])

    def flags(self, *what):
        env = dict(os.environ, PKG_CONFIG_PATH=self.libdir + '/pkgconfig', PKG_CONFIG_SYSROOT_DIR=self.root)
        return output('pkg-config', *what, 'incline-ccl', env=env).split()


def setUpModule():
    global host
    host = Host()


def tearDownModule():
    shutil.rmtree(host.tmp)


class Example(Fabric):
    def test_example(self):
        program = os.path.join(host.tmp, 'allreduce')
        source = host.root + '/usr/share/doc/incline/examples/allreduce.c'
        output('cc', '-Wall', '-Wextra', '-Werror', '-o', program, source, *host.flags('--cflags', '--libs'))
        # Rank as a launcher says it, not the lab.
        procs = [self.start(f'h{r}', ['env', '-u', 'INCLINE_RANK', f'OMPI_COMM_WORLD_RANK={r}', 'OMPI_COMM_WORLD_SIZE=4',
                                      'LD_LIBRARY_PATH=' + host.libdir, program]) for r in range(4)]
        for r, (rc, out, err) in enumerate(self.finish(procs, PATIENCE)):
            self.assertEqual((rc, out), (0, f'rank {r} of 4: 1048576 sums, 0 wrong\n'), err)


class Installed(unittest.TestCase):
    def test_headers_stand_alone(self):
        for compiler, language in ('cc', 'c'), ('c++', 'c++'):
            for header in 'ccl', 'types':
                output(compiler, '-x', language, '-Wall', '-Wextra', '-Werror', '-fsyntax-only', '-',
                       *host.flags('--cflags'), input=f'#include <incline/{header}.h>\n')

    def test_symbols(self):
        """The library shows what the header declares, and nothing else."""
        library = host.libdir + '/libincline-ccl.so'
        shown = {line.split()[-1].split('@')[0] for line in output('nm', '-D', '--defined-only', library).splitlines()
                 if ' A ' not in line}
        with open(os.path.join(TOP, 'include/incline/ccl.h')) as f:
            declared = set(re.findall(r'\b(ccl_\w+)\(', re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)))
        self.assertEqual(shown, declared)
        self.assertIn('libincline-ccl.so.0', output('readelf', '-d', library))

    def test_files(self):
        for name in ('bin/incline-perf', 'share/man/man3/incline-ccl.3', 'share/doc/incline/README.md', 'share/doc/incline/docs/mpi.md'):
            self.assertTrue(os.path.exists(os.path.join(host.root, 'usr', name)), name)
        self.assertTrue(glob.glob(host.root + '/usr/lib/python3*/**/incline/communicator.py', recursive=True))


del Fabric

if __name__ == '__main__':
    run_tests(verbosity=2)
