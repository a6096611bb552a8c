#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/compiler.sh and what the scripts refuse."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def run(*argv, cwd=TOP):
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=60)


class Moved(unittest.TestCase):
    def build_dir(self, top, source):
        for directory, name, text in (
                ('meson-info', 'meson-info.json', json.dumps({'directories': {'source': source}})),
                ('meson-private', 'cmd_line.txt', '[options]\nb_sanitize = address,undefined\nbuildtype = debug\n\n[properties]\n'),
                ('corpus', 'wire', ''), ('.', 'build.ninja', '')):
            os.makedirs(os.path.join(top, 'b d', directory), exist_ok=True)
            with open(os.path.join(top, 'b d', directory, name), 'w') as f:
                f.write(text)
        return run('bash', '-euc', f'. "{TOP}/tools/compiler.sh"; empty_if_moved "b d"', cwd=top)

    def test_a_moved_checkout_is_configured_anew(self):
        with tempfile.TemporaryDirectory() as top:
            done = self.build_dir(top, '/somewhere/else')
            self.assertEqual(done.stdout, '-Db_sanitize=address,undefined\n-Dbuildtype=debug\n')
            self.assertIn('was made in /somewhere/else', done.stderr)
            self.assertEqual(os.listdir(os.path.join(top, 'b d')), ['corpus'])

    def test_one_that_stayed_is_left_alone(self):
        with tempfile.TemporaryDirectory() as top:
            done = self.build_dir(top, os.path.realpath(top))
            self.assertEqual((done.stdout, done.stderr), ('', ''))
            self.assertEqual(len(os.listdir(os.path.join(top, 'b d'))), 4)

    def test_nothing_there(self):
        with tempfile.TemporaryDirectory() as top:
            done = run('bash', '-euc', f'. "{TOP}/tools/compiler.sh"; empty_if_moved build; echo "$CCACHE_NOHASHDIR"', cwd=top)
            self.assertEqual((done.returncode, done.stdout), (0, '1\n'))


class Refused(unittest.TestCase):
    def test_help_and_unknown_options(self):
        for tool in 'build', 'fuzz':
            for option, status in ('--help', 0), ('--nosuch', 2):
                done = run(f'tools/{tool}', option)
                self.assertEqual(done.returncode, status, f'{tool} {option}: {done.stderr}')
                self.assertIn(f'tools/{tool} [', done.stdout)

    def test_unknown_targets(self):
        done = run('tools/fuzz', '-t', '1', 'nosuch')
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, 'nosuch: no such target; there are .*wire')


class Programs(unittest.TestCase):
    def test_without_tests(self):
        """What the demo builds first: every program that is installed and the RNIC that the lab preloads, no test."""
        build = os.environ.get('INCLINE_BUILD', os.path.join(TOP, 'build'))
        built = set(re.findall(r'^ +\| (\S+)$', run('ninja', '-C', build, '-t', 'query', 'programs').stdout, re.M))
        installed = json.loads(run('meson', 'introspect', '--installed', build).stdout)
        programs = {os.path.relpath(p, build) for p, to in installed.items() if os.path.basename(os.path.dirname(to)) == 'bin'}
        self.assertEqual(built, {p for p in programs if p.startswith('apps/')} | {'lib/verbs/libincline_verbs.so'})


class Suites(unittest.TestCase):
    def test_what_tests_of_suites_run(self):
        """What is built for the sanitizers: programs of tests, what these start, nothing else."""
        build = os.environ.get('INCLINE_BUILD', os.path.join(TOP, 'build'))
        found = run(sys.executable, 'tools/incline_suites.py', build, 'unit,scenario').stdout.split()
        tests = json.loads(run('meson', 'introspect', '--tests', build).stdout)
        suites = {t['name']: {s.split(':')[-1] for s in t['suite']} for t in tests}
        for t in tests:
            program = os.path.relpath(t['cmd'][0], build)
            if suites[t['name']] & {'unit', 'scenario'} and not program.startswith('..'):
                self.assertIn(program, found, t['name'])
        self.assertLessEqual({'apps/incline-switch', 'apps/inclinectl', 'tests/unit/wire/test_wire'}, set(found))
        self.assertEqual([f for f in found if f.startswith(('tests/fuzz/', 'tests/bench/', 'tests/interop/'))], [])
        self.assertEqual(len(found), len(set(found)))

    def test_unknown_suites(self):
        done = run(sys.executable, 'tools/incline_suites.py', os.environ.get('INCLINE_BUILD', os.path.join(TOP, 'build')), 'nosuch')
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('nosuch: no test of these suites', done.stderr)
        done = run('tools/build', '--tests')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('names of suites', done.stderr)


if __name__ == '__main__':
    unittest.main()
