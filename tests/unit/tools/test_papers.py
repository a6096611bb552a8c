#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/papers and docs/papers.md: one list, whose tests, programs and files there are."""
import importlib.machinery
import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
BUILD = os.environ.get('INCLINE_BUILD', os.path.join(TOP, 'build'))
import incline_papers as p  # noqa: E402
from incline_tests import known_tests  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader('papers', os.path.join(TOP, 'tools', 'papers'))
papers = importlib.util.module_from_spec(importlib.util.spec_from_loader('papers', LOADER))
LOADER.exec_module(papers)


class List(unittest.TestCase):
    def test_the_page_has_the_list(self):
        with open(os.path.join(TOP, 'docs', 'papers.md'), encoding='utf-8') as f:
            page = f.read()
        there = page[page.index(p.BEGIN) + len(p.BEGIN):page.index(p.END)]
        self.assertEqual(there, p.markdown(), 'tools/docs writes it anew')

    def test_names_are_names(self):
        names = [r.name for r in p.all_rows()]
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertRegex(name, r'^[a-z0-9-]+$')

    def test_every_state_is_accounted_for(self):
        for r in p.all_rows():
            with self.subTest(r.name):
                self.assertIn(r.state, p.STATES)
                self.assertEqual(r.state != 'shown', bool(r.why))
                if r.state == 'shown':
                    self.assertTrue(r.shows())
                    self.assertTrue(r.code)
                self.assertNotIn('|', ''.join((r.claim, r.why, r.place)))

    def test_what_is_named_is_there(self):
        known = known_tests(BUILD)
        for r in p.all_rows():
            with self.subTest(r.name):
                for path in r.code:
                    self.assertTrue(os.path.exists(os.path.join(TOP, path)), path)
                for test in r.tests:
                    self.assertIn(test, known)
                for command in r.commands:
                    word = shlex.split(command)[0]
                    self.assertTrue(word.startswith('build/apps/') or os.access(os.path.join(TOP, word), os.X_OK), word)
                    if word.startswith('build/apps/'):
                        self.assertTrue(os.path.exists(os.path.join(TOP, 'apps', os.path.basename(word) + '.c')), word)

    def test_short_is_for_commands(self):
        short = [r for r in p.all_rows() if r.short]
        self.assertTrue(short)
        for r in short:
            self.assertTrue(r.commands, r.name)


class Runs(unittest.TestCase):
    def test_each_step_once(self):
        rows = [p.row('a', '1', 'x', tests='t u', commands=('c 1',)), p.row('b', '1', 'x', tests='t', commands=('c 1',))]
        self.assertEqual(papers.steps(rows), {'tools/test t': ['a', 'b'], 'tools/test u': ['a'], 'c 1': ['a', 'b']})
        self.assertEqual(papers.steps(rows, short=True), {'c 1': ['a', 'b']})

    def test_programs_of_the_build_that_is_meant(self):
        self.assertEqual(papers.argv('build/apps/x 1', '/b'), ['/b/apps/x', '1'])
        self.assertEqual(papers.argv('tools/share', '/b'), ['tools/share'])
        self.assertEqual(papers.argv('tools/test wire', '/b')[:4], ['meson', 'test', '-C', '/b'])

    def test_what_fails_fails(self):
        passed, _, out = papers.run('sh -c "echo gone; exit 3"', BUILD)
        self.assertEqual((passed, out), (False, ['gone']))
        self.assertTrue(papers.run('true', BUILD)[0])
        self.assertFalse(papers.run('build/no-such-program', '/nowhere')[0])

    def test_exit_status_and_what_is_said(self):
        rows = [p.row('bad', '1', 'x', commands=('false',)), p.row('good', '1', 'x', commands=('true',)), p.row('none', '1', 'x')]
        with tempfile.TemporaryFile('w+') as f:
            results = papers.run_all(papers.arguments([]), rows, f)
            f.seek(0)
            said = f.read()
        self.assertEqual([r['passed'] for r in results], [False, True])
        self.assertRegex(said, r'(?m)^FAILED .* false  \(bad\)$')

    def test_wrong_row_is_refused(self):
        done = subprocess.run([os.path.join(TOP, 'tools', 'papers'), 'no-such-row'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn('no-such-row: no such row', done.stderr)


if __name__ == '__main__':
    unittest.main()
