#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/plot: every bench has a picture, drawn here of results that were recorded (benches/*.json, some rows of each); and tools/pictures."""
import glob
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock
import xml.etree.ElementTree as ET

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(TOP, 'tools'))
import incline_plot_draw as draw  # noqa: E402
import incline_plots as plots  # noqa: E402
import incline_terminal as terminal  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader('plot', os.path.join(TOP, 'tools/plot'))
plot = importlib.util.module_from_spec(importlib.util.spec_from_loader('plot', LOADER))
LOADER.exec_module(plot)
SVG = '{http://www.w3.org/2000/svg}'


def samples():
    return {os.path.basename(path)[:-5]: path for path in sorted(glob.glob(os.path.join(HERE, 'benches/*.json')))}


def load(path):
    with open(path, encoding='utf-8') as f:
        return json.load(f)


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix='incline-')
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def draw(self, path):
        """As the program does."""
        out = os.path.join(self.directory, 'o.svg')
        with mock.patch.object(sys, 'argv', ['plot', path, out]):
            plot.main()
        return ET.parse(out).getroot()


class Every(Case):
    def test_bench_has_a_picture(self):
        """Those that tools/bench knows; a new one needs panels and a sample."""
        with open(os.path.join(TOP, 'tools/bench'), encoding='utf-8') as f:
            names = re.search(r'^(allreduce \| .*)\) ;;$', f.read(), re.M)[1].split(' | ')
        self.assertGreater(len(names), 10)
        for name in names:
            found = [path for sample, path in samples().items() if sample.split('-')[0] == name]
            self.assertTrue(found, f'benches/{name}*.json is missing')
            for path in found:
                with self.subTest(os.path.basename(path)):
                    root = self.draw(path)
                    self.assertGreater(len([*root.iter(SVG + 'rect')]) - 1 + len([*root.iter(SVG + 'circle')]), 1)

    def test_program_s_results_are_drawn(self):
        """Every "bench" that a program writes into its file."""
        said = set()
        for path in [*glob.glob(os.path.join(TOP, 'tests/bench/*')), os.path.join(TOP, 'apps/incline-sim.c')]:
            with open(path, encoding='utf-8') as f:
                text = re.sub(r'"\s*\n\s*"', '', f.read())
            said |= set(re.findall(r"'bench': '([a-z0-9_-]+)'", text))
            said |= set(re.findall(r'json_pack\(\s*"[^"]*",\s*"bench",\s*"([a-z0-9_-]+)"', text))
        self.assertEqual(said | {'compare'}, set(plots.PANELS))

    def test_panel_shows_something(self):
        """A field that is spelt wrong, or has another name by now, is an empty chart."""
        docs = [load(path) for path in samples().values()]
        for name, panels in plots.PANELS.items():
            of_it = [d for d in docs if name == ('compare' if 'compare' in d else d.get('bench'))]
            for panel in panels:
                rows = [row for d in of_it for row in plots.rows_of(d, panel.rows)]
                fields = [panel.values] if isinstance(panel.values, str) else panel.values
                for field in fields:
                    if (name, field) in NOT_RECORDED:
                        continue
                    self.assertTrue(any(plots.get(row, field) is not None for row in rows), f'{name}: {panel.title}: {field}')
                for field in filter(None, [*panel.names, panel.over, panel.by, panel.each]):
                    self.assertTrue(any(field in row for row in rows), f'{name}: {panel.title}: {field}')


# What was not installed where the samples come from.
NOT_RECORDED = {('srv6', f'{n}.{v}.median') for n in ('testpmd', 'ovs') for v in ('mpps', 'ratio')}


class Chart(Case):
    def bars(self, doc, index=0):
        chart = plots.charts_of(doc)[index]
        self.assertIsInstance(chart, draw.Bars)
        return chart

    def test_rows_and_numbers_are_the_files(self):
        rows = [{'path': 'graph', 'mode': 'II', 'acks': acks, 'groups': 1, 'payload': 1024, 'gbps': g, 'limit_gbps': 70, 'cycles_per_packet': {'a': 1, 'b': 2}}
                for acks, g in ((False, 17), (True, 14))]
        doc = {'bench': 'inc', 'results': rows, 'replicas': []}
        self.assertEqual(self.bars(doc).rows, [('graph, II, groups 1, payload 1024', {'measured': 17, 'limit': 70}),
                                               ('graph, II, acks, groups 1, payload 1024', {'measured': 14, 'limit': 70})])
        self.assertEqual((self.bars(doc, 1).stacked, self.bars(doc, 1).rows[0][1]), (True, {'a': 1, 'b': 2}))
        self.assertEqual(len(plots.charts_of(doc)), 2, 'what has no rows is not drawn')

    def test_rows_that_one_field_tells_apart_are_one(self):
        row = {'memory': 'cache', 'form': 'wire', 'op': 'sum', 'dtype': 'fp32', 'limit_gbytes_per_s': 9}
        rows = [{**row, 'isa': isa, 'gbytes_per_s': v} for isa, v in (('scalar', 1), ('avx2', 2))] + [{**row, 'memory': 'pool', 'isa': 'avx2', 'gbytes_per_s': 3}]
        charts = plots.charts_of({'bench': 'reduce', 'results': rows})
        self.assertEqual([c.title for c in charts], ['reduction, cache', 'reduction, pool'])
        self.assertEqual(charts[0].rows, [('wire, sum, fp32', {'scalar': 1, 'scalar, limit': 9, 'avx2': 2, 'avx2, limit': 9})])

    def test_lines(self):
        rows = [{'transport': t, 'workers': w, 'gbps': w, 'gbps_by_cpu': 2 * w} for t in ('uc', 'ud') for w in (1, 2)]
        chart = plots.charts_of({'bench': 'multicast', 'results': [], 'workers': rows})[0]
        self.assertEqual(chart.curves[:2], [('uc, all at once', False, {'1': 1, '2': 2}), ('uc, by CPU time', True, {'1': 2, '2': 4})])
        self.assertEqual([c[1] for c in chart.curves], [False, True, False, True])

    def test_bars_are_as_long_as_their_numbers(self):
        for log, longs in ((False, [90, 180, 0.9 * draw.BARS]), (True, [None] * 3)):
            out, width, _ = draw.bars(draw.Bars('t', 'u', ['a'], [('x', {'a': 25}), ('y', {'a': 50}), ('z', {'a': 90})], log=log))
            found = [float(re.search(r' width="([0-9.]+)"', e)[1]) for e in out if 'class="bar"' in e]
            self.assertEqual(sorted(found), found)
            self.assertLess(found[-1], width)
            if not log:
                self.assertEqual(found, longs)

    def test_names_are_escaped(self):
        text = draw.svg([draw.Bars('a < b', '&', ['n'], [('<x>', {'n': 1})])])
        self.assertIn('a < b (&)', [t.text for t in ET.fromstring(text).iter(SVG + 'text')])

    def test_what_is_no_bench(self):
        for doc in ({'bench': 'other', 'results': [{}]}, {'bench': 'inc', 'results': []}, {}):
            self.assertEqual(plots.charts_of(doc), [])


class Tables(Case):
    """Of tools/demo --paper, and incline-sim epic-table."""

    def texts(self, doc):
        path = os.path.join(self.directory, 'o.json')
        with open(path, 'w', encoding='utf-8') as f:
            json.dump(doc, f)
        root = self.draw(path)
        return [t.text or '' for t in root.iter(SVG + 'text')], root

    def test_several_in_one_picture(self):
        sizes = {'table': 19, 'title': 'AllReduce', 'unit': 'Mb/s', 'log': True, 'rows': [
            {'at': at, 'solution': 'I', 'ours': ours, 'paper': paper} for at, ours, paper in (('4K', 20, 2), ('1M', None, 200))]}
        barrier = {'table': 24, 'title': 'Barrier', 'unit': 'operations per second', 'rows': [
            {'at': 'barrier', 'solution': s, 'ours': 2000, 'paper': paper} for s, paper in (('I', 1331), ('mpi-tcp', None))]}
        texts, root = self.texts({'matrix': [], 'tables': [sizes, barrier]})
        for said in 'Table 19: AllReduce (Mb/s, logarithmic)', 'I, ours', 'I, paper', 'Table 24: Barrier (operations per second)', '1,331':
            self.assertIn(said, texts)
        self.assertEqual([t for t in texts if t.startswith('1') and t.strip('10') == ''], ['1', '10', '100', '1000'])
        self.assertEqual(len([*root.iter(SVG + 'circle')]), 3, 'what was not measured is no point')
        self.assertEqual([r.get('class') for r in root.iter(SVG + 'rect')].count('bar'), 3)

    def test_nothing_measured(self):
        path = os.path.join(self.directory, 'o.json')
        with open(path, 'w', encoding='utf-8') as f:
            json.dump({'tables': []}, f)
        with self.assertRaisesRegex(SystemExit, 'is not of incline-sim'):
            self.draw(path)


class Bench(Case):
    def test_plot_is_of_the_file(self):
        """With a file or without one; the program's own status is kept."""
        sample, out = samples()['mrc'], os.path.join(self.directory, 'o.svg')
        done = subprocess.run([os.path.join(TOP, 'tools/bench'), 'compare', sample, sample, '--plot', out], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('new beside old (times)', [t.text for t in ET.parse(out).getroot().iter(SVG + 'text')])
        os.unlink(out)
        both = os.path.join(self.directory, 'o.json')
        for argv, rc, made in (([sample, sample, '--json', both], 0, True), ([sample, '/nowhere'], 1, False)):
            done = subprocess.run([os.path.join(TOP, 'tools/bench'), 'compare', '--plot', out, *argv], capture_output=True, text=True)
            self.assertEqual((done.returncode, os.path.exists(out)), (rc, made), done.stderr)
            if made:
                os.unlink(out)
        self.assertEqual(load(both)['compare'], 'mrc')

    def test_name_is_refused_before_the_measurement(self):
        for more in ['o.png'], []:
            done = subprocess.run([os.path.join(TOP, 'tools/bench'), 'inc', '--plot', *more], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, '', 'error: bench: --plot takes a name that ends with .svg\n'))


class Terminal(unittest.TestCase):
    def test_last_screen(self):
        said = terminal.run(['sh', '-c', r'test -t 1 && stty size && printf "\033[H\033[2Jold\n\033[H\033[2Ja  <b>\n  c\n"'])
        self.assertTrue(said.startswith(f'{terminal.ROWS} {terminal.COLUMNS}'), said)
        lines = terminal.screen(said)
        self.assertEqual(lines, ['a  <b>', '  c'])
        text, width, height = terminal.svg(lines, '$ it')
        root = ET.fromstring(text)
        self.assertEqual([t.text for t in root.iter(SVG + 'text')], ['$ it', 'a  <b>', '  c'])
        self.assertEqual((int(root.get('width')), int(root.get('height'))), (width, height))

    def test_refuses_what_it_would_not_show_right(self):
        with self.assertRaisesRegex(terminal.TerminalError, 'ended with 3: oh'):
            terminal.run(['sh', '-c', 'echo oh; exit 3'])
        for said in '\033[1mbold', 'x\n' * (terminal.ROWS + 1), 'x' * (terminal.COLUMNS + 1):
            with self.assertRaises(terminal.TerminalError):
                terminal.screen(said)


if __name__ == '__main__':
    unittest.main()
