#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench stream and rnic: what they run, refuse and print, without a fabric."""
import argparse
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PROGRAM = os.path.join(TOP, 'tests/bench/stream.py')


def load(name):
    spec = importlib.util.spec_from_file_location(f'bench_{name}', os.path.join(TOP, f'tests/bench/{name}.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.path.insert(0, os.path.join(TOP, 'tests/bench'))
stream, rnic, cost, redis = (load(name) for name in ('stream', 'rnic', 'stream_cost', 'stream_redis'))


class Stream(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.build = tmp.name

    def virtual(self, *options):
        return subprocess.run([sys.executable, PROGRAM, '--virtual', *options], env={**os.environ, 'INCLINE_BUILD': self.build},
                              capture_output=True, text=True)

    def test_virtual(self):
        """With a file or without one the program prints all it has; its status is this one's."""
        folder = os.path.join(self.build, 'tests/unit/stream')
        os.makedirs(folder)
        program = os.path.join(folder, 'test_stream_drops')
        with open(program, 'w') as f:
            f.write('#!/bin/sh\necho "table $*"\nexit 3\n')
        os.chmod(program, 0o755)
        for options, said in ((), 'table \n'), (('--json', 'o.json'), 'table --json o.json\n'):
            p = self.virtual(*options)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (3, said, ''))

    def test_virtual_has_no_other_options(self):
        for options in ('--cc', 'cubic'), ('--rounds', '3'), ('--quick',):
            p = self.virtual(*options)
            self.assertEqual(p.returncode, 2)
            self.assertIn(f'{options[0]}: not with --virtual', p.stderr)

    def test_virtual_is_not_built(self):
        p = self.virtual()
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr, '^tools/bench stream: .*test_stream_drops is not built')

    def test_rounds(self):
        p = subprocess.run([sys.executable, PROGRAM, '--rounds', '0'], capture_output=True, text=True)
        self.assertEqual(p.returncode, 2)
        self.assertIn('--rounds: 0 is less than 1', p.stderr)

    def test_what_the_kernel_lacks(self):
        """A module is named where there is one."""
        self.assertEqual(stream.kernel_cc('delay'), (None, 'it has no congestion control like delay'))
        self.assertEqual(stream.kernel_cc('fast'), ('fast', 'it has no congestion control like fast (modprobe tcp_fast)'))
        self.assertEqual(stream.kernel_cc('newreno'), ('reno', None))

    def test_nothing_moved(self):
        """Its share of nothing, and how much more than nothing the other has, are no numbers."""
        self.addCleanup(setattr, stream, 'measure', stream.measure)
        stream.measure = lambda drop, kernel, *_: {
            'gbps': 0 if kernel else 1 - drop, 'least': 0, 'most': 1, 'cpu_s_per_gb': 1}
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            rows = stream.measure_all(argparse.Namespace(cc='bbr'), 'bbr', 1, 1)
        self.assertEqual([row['kernel']['share'] for row in rows], [None] * len(stream.DROPS))
        self.assertEqual(rows[-1]['incline']['share'], 0.9)
        for line in said.getvalue().splitlines()[1:]:
            self.assertEqual(line.split()[-1], '-')
        drawn = stream.as_plot(rows, 'bbr')
        self.assertEqual(drawn[0], {'at': '0 %', 'solution': 'incline bbr', 'ours': 1, 'paper': None, 'least': 0, 'most': 1})


def row(way, gbps, application=0.1, control=0.2, data=0.3):
    return {'way': way, 'gbps': gbps, 'both': {'application': application, 'control': control, 'data': data}}


class Cost(unittest.TestCase):
    def test_the_papers_row_is_seconds_per_gigabyte(self):
        """Table 2: 17.20 % of a hyperthread for 96.37 Gb/s; at 100 % it would be 560.29."""
        p = cost.paper('placed')
        self.assertAlmostEqual(p['control'], 0.172 * 8 / 96.37)
        self.assertAlmostEqual(8 / p['control'], 560.29, delta=0.05)
        self.assertIsNone(cost.paper('rc')['control'])
        self.assertIsNone(cost.paper('copied'))

    def test_the_median_row_is_one_that_was_measured(self):
        rounds = [[row('placed', g, data=g), row('rc', 1)] for g in (3, 9, 4)]
        self.assertEqual(cost.medians(rounds), [row('placed', 4, data=4), row('rc', 1)])
        self.assertEqual(cost.medians([[{'long': 2, 'gbps': 1}], [{'long': 2, 'gbps': 2}]]), [{'long': 2, 'gbps': 1}])

    def test_what_the_kernel_copies_is_what_it_takes_more(self):
        """System time beyond that of the same stream without copies; both processes' time, by the bytes that arrived."""
        class Veth:
            def stream(self, _seconds, server, client):
                assert '-n' in server and '-n' in client
                return ({'gbps': 1, 'user_s': 0.1, 'system_s': 0.3},
                        {'bytes': 2e9, 'user_s': 0.1, 'system_s': 0.1 + 0.4 * ('-t' not in server)})
        rows = cost.kernel(Veth(), True)
        self.assertEqual([r['way'] for r in rows], [name for name, _, _ in cost.KERNEL])
        for r, data in zip(rows, (0.2, 0.2, 0)):
            for part, value in ('application', 0.1), ('control', 0.2), ('data', data):
                self.assertAlmostEqual(r['both'][part], value, msg=f'{r["way"]} {part}')

    def test_text_has_what_the_file_has(self):
        self.addCleanup(setattr, cost, 'ours', cost.ours)
        flows = [{'long': 8, 'gbps': 7.25, 'jain': 0.987, 'p50_us': 11.5, 'p99_us': 22.5}]
        cost.ours = lambda quick: {'rows': [{**row('rc', 2), 'both': {'application': 1, 'control': None, 'data': 2}},
                                            {**row('placed', 4.5), 'receiver': row('', 0)['both'], 'max_gbps': 40}], 'flows': flows,
                                   'placing': [{'bytes': 64, 'list_ns': next(ns), 'receive_ns': 5, 'write_ns': 4}]}
        ns = iter((9, 8))
        path = os.path.join(tempfile.mkdtemp(), 'o.json')
        self.addCleanup(lambda: (os.unlink(path), os.rmdir(os.path.dirname(path))))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(cost.main(argparse.Namespace(rounds=2, quick=False, json=path), 'it is not there'), 0)
        with open(path, encoding='utf-8') as f:
            doc = json.load(f)
        self.assertEqual([r['way'] for r in doc['rows']], ['placed', 'rc'])
        self.assertEqual(doc['rows'][0]['paper']['max_gbps'], 560.29)
        self.assertAlmostEqual(doc['ratios']['rc / placed'], 3 / 0.6)
        lines = said.getvalue().splitlines()
        self.assertIn('# kernel: left out, it is not there', lines)
        self.assertEqual([line.split()[1:5] for line in lines if line.startswith(('placed', 'rc  '))],
                         [['4.50', '0.100', '0.200', '0.300'], ['2.00', '1.000', '-', '2.000']])
        self.assertIn(['8', '7.25', '0.9870', '11.5', '22.5'], [line.split() for line in lines])
        self.assertEqual(doc['placing'][0]['list_ns'], 8, 'the least of the rounds')
        self.assertIn(['64', '8.0', '5.0', '4.0'], [line.split() for line in lines])


class Redis(unittest.TestCase):
    def test_table(self):
        """Medians by size, and how many times the others' rate ours is."""
        runs = {'incline': [[(r * (i + 1), 1) for i in range(6)] for r in (10, 40, 20)], 'veth': [[(5, 2)] * 6] * 3}
        rows = redis.table(runs)
        self.assertEqual([r['bytes'] for r in rows], list(redis.SIZES))
        self.assertEqual(rows[0]['incline'], {'requests_per_s': 20, 'least': 10, 'most': 40, 'cpu_s_per_gb': 1})
        self.assertEqual((rows[0]['ratio_veth'], rows[5]['ratio_veth']), (4, 24))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            redis.show(rows, list(runs))
        self.assertEqual(said.getvalue().splitlines()[1].split()[-1], '4.00')

    def test_refuses_a_congestion_control(self):
        p = subprocess.run([sys.executable, PROGRAM, '--redis', '--cc', 'bbr'], capture_output=True, text=True)
        self.assertEqual((p.returncode, '--cc: not with --cost or --redis' in p.stderr), (2, True), p.stderr)


class Rnic(unittest.TestCase):
    def test_points(self):
        """Of 10 000 measurements, in whatever order, those which so many are below."""
        out = '#, usec\n' + ''.join(f'{i + 1}, {10000 - i}\n' for i in range(10000)) + ' 8       10000          1.00  2.00\n'
        self.assertEqual(rnic.points(out), {'p50_us': 5001, 'p99_us': 9901, 'p99.9_us': 9991, 'p99.99_us': 10000})
        with self.assertRaisesRegex(rnic.LabError, 'no measurements'):
            rnic.points('#, usec\n')

    def test_best_of_rounds(self):
        best = {}
        for row in {'gbps': 1, 'write.p99_us': 3}, {'gbps': 2, 'write.p99_us': 4}:
            rnic.better(best, row)
        self.assertEqual(best, {'gbps': 2, 'write.p99_us': 3})

    def test_show(self):
        """What one of them has not measured is not compared, and no number."""
        row = {prefix + key: 1 for prefix in rnic.LATENCIES for key in rnic.POINTS}
        table = {'incline': {'gbps': 4, 'messages_per_s': 9, **row}, 'tcp': {'gbps': 2, 'p50_us': 2}}
        self.assertEqual(rnic.ratios(table), {'tcp.gbps': 2, 'tcp.p50_us': 0.5})
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            rnic.show(table, rnic.ratios(table), ['a note'])
        lines = said.getvalue().splitlines()
        self.assertEqual([line.split()[1] for line in lines if line.startswith('incline ')], ['4.000', 'ib_send_lat', 'ib_write_lat', 'ib_send_lat', '/', '/'])
        self.assertIn(['tcp', '2.0', '-', '-', '-'], [line.split() for line in lines])
        self.assertEqual(lines[-1], '# a note')


if __name__ == '__main__':
    unittest.main()
