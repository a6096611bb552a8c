#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench compare: numbers find their own, wherever their row stands, and files that cannot be compared are refused."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def doc(*rows, bench='inc', **more):
    return {'bench': bench, 'machine': {'cpu': 'c', 'cpus': 2, 'load': 1.5, 'commit': 'x'}, 'results': list(rows), **more}


def row(path, size, ns, ratio):
    return {'path': path, 'bytes': size, 'best': {'ns': ns, 'ratio': ratio}, 'good': True}


class Compare(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix='incline-')
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def run_it(self, old, new):
        names = []
        for i, d in enumerate((old, new)):
            names.append(os.path.join(self.directory, f'{i}.json'))
            with open(names[i], 'w') as f:
                f.write(d if isinstance(d, str) else json.dumps(d))
        out = os.path.join(self.directory, 'out.json')
        done = subprocess.run([os.path.join(TOP, 'tests/bench/compare.py'), *names, '--json', out], capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        with open(out) as f:
            return json.load(f), done.stdout

    def test_rows(self):
        a, b, c = row('graph', 1024, 100, 0.5), row('graph', 4096, 300, 0.6), row('limit', 1024, 50, 1.0)
        result, text = self.run_it(doc(a, b), doc(c, row('graph', 4096, 150, 0.75), row('graph', 1024, 200, 0)))
        self.assertEqual({r['what']: r['ratio'] for r in result['rows']},
                         {'results / graph, bytes 1024 / best / ns': 2, 'results / graph, bytes 1024 / best / ratio': 0,
                          'results / graph, bytes 4096 / best / ns': 0.5, 'results / graph, bytes 4096 / best / ratio': 1.25})
        self.assertEqual((result['only_old'], len(result['only_new'])), ([], 2))
        self.assertIn('0.500', text)
        self.assertIn('# only in new: results / limit, bytes 1024 / best / ns', text)

    def test_one_name_twice_and_nothing(self):
        rows = [row('graph', 1024, 100, 0.5), row('graph', 1024, 0, 0.5)]
        result, text = self.run_it(doc(*rows), doc(*rows))
        self.assertEqual([r['ratio'] for r in result['rows']], [1, 1, None, 1])
        self.assertIn('graph, bytes 1024 (2)', text)

    def test_refused(self):
        one = doc(row('graph', 1024, 100, 0.5))
        for old, new, said in ((one, doc(bench='mrc'), 'not the same bench: inc, mrc'), (one, doc(), 'no number is in both'),
                               (one, '[1]', '1.json: not the result of a bench'), ('{', one, '0.json: ')):
            with self.subTest(said):
                self.assertIn('error: tools/bench compare: ' + ('' if 'json' not in said else self.directory + '/') + said,
                              self.run_it(old, new))


if __name__ == '__main__':
    unittest.main()
