#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What tests/interop decides, without guests: weather that was not there fails, and a failure says why. The switch is
a stand-in with weather and counters, which may lie."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from types import SimpleNamespace

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path[:0] = [os.path.join(TOP, d) for d in ('tools', 'tests/interop', 'tests/integration')]
import checks  # noqa: E402
import operations  # noqa: E402
from incline_fabric import LabError  # noqa: E402
from incline_lab import Lab  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader('interop_run', os.path.join(TOP, 'tests/interop/run'))
RUN = importlib.util.module_from_spec(importlib.util.spec_from_loader(LOADER.name, LOADER))
LOADER.exec_module(RUN)

COUNTERS = ('impair_loss', 'doubled', 'overtaken', 'corrupted')


class Sky(Lab):
    """A fabric of one switch, as inclinectl shows it."""

    def __init__(self):
        super().__init__('/nowhere')
        self.ports, self.counts, self.lie = [{'name': 'h0'}, {'name': 'h1'}], dict.fromkeys(COUNTERS, 5), ''

    def ctl(self, switch, *words):
        if words == ('drops',):
            return {'drops': [{'reason': 'ip_ttl', 'count': 9}, {'reason': 'impair_loss', 'count': self.counts['impair_loss']}]}
        if words == ('stats',):
            return {'values': [{'name': n, 'value': str(v)} for n, v in self.counts.items() if n != 'impair_loss']}
        if words[:2] == ('port', 'impair') and self.lie != 'does nothing':
            port = next(p for p in self.ports if p['name'] == words[2])
            port.pop('impair', None)
            for name, _, value in (word.partition('=') for word in words[3:]):
                impair = port.setdefault('impair', {})
                if name.startswith('lose.'):
                    impair.setdefault('lose', []).append({'opcode': int(name[5:]), 'loss': json.loads(value)})
                else:
                    impair[name] = json.loads(value)
        return {'ports': self.ports, 'config': {'ports': self.ports}}


class Weather(unittest.TestCase):
    def setUp(self):
        self.lab = Sky()

    def happen(self, **counts):
        for name, n in counts.items():
            self.lab.counts[name] += n
        return 'done'

    def test_weather_is_seen_before_it_is_used(self):
        for weather in RUN.BAD, *operations.SKIES.values():
            self.lab.impair('s0', weather)
            self.assertEqual([p.get('impair') for p in self.lab.ports],
                             [{**weather, 'seed': 2026 + i} if weather else None for i in range(2)])
        self.lab.lie = 'does nothing'
        with self.assertRaisesRegex(LabError, "s0: the weather is .*, not .*'loss': 0.5"):
            self.lab.impair('s0', {'loss': 0.5})
        self.lab.lie, self.lab.ports = '', []
        with self.assertRaisesRegex(LabError, 'the weather is {}'):
            self.lab.impair('s0', None)

    def test_what_inclinectl_says_is_told(self):
        with tempfile.TemporaryDirectory(prefix='il-') as folder:
            os.makedirs(os.path.join(folder, 'apps'))
            program = os.path.join(folder, 'apps/inclinectl')
            for script, said in (('echo "error: port impair: worker 0 has not answered" >&2; exit 1',
                                  's0: inclinectl drops: exit status 1: error: port impair: worker 0 has not answered'),
                                 ('echo odd', 's0: inclinectl drops: Expecting value: .*')):
                with open(program, 'w') as f:
                    f.write(f'#!/bin/sh\n{script}\n')
                os.chmod(program, 0o755)
                with unittest.mock.patch.dict(os.environ, INCLINE_BUILD=folder), self.assertRaisesRegex(LabError, said):
                    Lab(folder).ctl('s0', 'drops')

    def test_weather_that_does_nothing_fails(self):
        for weather, counts, wrong in (
                (None, {}, None),
                (None, {'impair_loss': 2}, 'impair_loss went from 5 to 7, which is not in this weather'),
                ({'loss': 0.5}, {'impair_loss': 1}, None),
                ({'loss': 0.5}, {}, 'no loss in this weather: impair_loss stays at 5'),
                ({'tx_loss': 0.5, 'dup': 0.1}, {'impair_loss': 1}, 'no dup in this weather: doubled stays at 5'),
                ({'dup': 0.1, 'reorder': 0.1, 'corrupt': 0.1}, {'doubled': 1},
                 'no reorder in this weather: overtaken stays at 5; no corrupt in this weather: corrupted stays at 5'),
                ({'dup': 0.1}, {'doubled': 1, 'corrupted': 1}, 'corrupted went from 5 to 6, which is not in this weather'),
                ({'lose': [{'opcode': 17, 'loss': 0.5}], 'seed': 1}, {}, 'no lose in this weather: impair_loss stays at 5'),
                ({'lose': [{'opcode': 17, 'loss': 0}], 'loss': 0}, {}, None)):
            self.lab.counts = dict.fromkeys(COUNTERS, 5)
            if wrong is None:
                self.assertEqual(checks.during(self.lab, ['s0'], weather, lambda: self.happen(**counts)), 'done')
                continue
            with self.assertRaises(LabError) as e:
                checks.during(self.lab, ['s0'], weather, lambda: self.happen(**counts))
            self.assertEqual(str(e.exception), wrong)

    def test_several_switches_are_summed(self):
        self.assertEqual(checks.counts(self.lab, ['s0', 's1']), dict.fromkeys(COUNTERS, 10))

    def test_cells_look_at_the_counters(self):
        """The suites' own loops: a cell whose program succeeds in weather that was none fails, with the reason."""
        failures, out = [], io.StringIO()
        rows = [('wet', 'bad weather', lambda lab, topo: self.happen(**dict.fromkeys(COUNTERS, 1))),
                ('dry', 'bad weather', lambda lab, topo: None)]
        with contextlib.redirect_stdout(out):
            operations.under('bad weather', rows, self.lab, None, failures)
        self.assertEqual(len(failures), 1)
        self.assertIn('OK    wet', out.getvalue())
        self.assertIn('FAIL  dry: no loss in this weather: impair_loss stays at 6; no dup', out.getvalue())
        self.assertIn('bad weather: impair_loss 1, doubled 1, overtaken 1, corrupted 1', out.getvalue())
        suite = RUN.Suite(SimpleNamespace(modes=['II'], full=False, verbose=False))
        topo, old = SimpleNamespace(switches=[{'name': 's0'}]), RUN.sweep
        RUN.sweep = lambda *_: 'exact'
        self.addCleanup(setattr, RUN, 'sweep', old)
        with contextlib.redirect_stdout(out):
            RUN.under(suite, self.lab, topo, 'any', 'bad')
        self.assertEqual(len(suite.failures), 1)
        self.assertRegex(suite.failures[0], '^any, bad weather, mode II, IPv4, MTU 4096: no loss in this weather')


class Failures(unittest.TestCase):
    def test_they_say_why(self):
        suite, out = RUN.Suite(None), io.StringIO()

        def run(*argv):
            subprocess.run(argv, check=True, capture_output=True)
        with contextlib.redirect_stdout(out):
            suite.check('first', run, 'sh', '-c', 'echo this; echo that >&2; exit 3')
            suite.check('second', run, '/nowhere/program')
            suite.check('third', lambda: None)
        said = out.getvalue()
        self.assertRegex(said, 'FAIL  first: .*exit status 3.*\nthis\nthat\n')
        self.assertRegex(said, "FAIL  second: .*No such file or directory: '/nowhere/program'")
        self.assertIn('OK    third', said)
        self.assertRegex('\n'.join(suite.failures), '^first: .*exit status 3.*\nsecond: .*nowhere')

    def test_what_had_to_be_killed_has_said_something(self):
        process = subprocess.Popen(['sh', '-c', 'echo waits for rank 2 >&2; echo; exec sleep 600'], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        self.assertEqual(checks.end(process, 0.1), (124, '', 'no end after 0 s\nwaits for rank 2'))

    def test_a_switch_that_complained_is_heard(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in ('s0.log', 'incline-switch s0 ready: 2 ports\n'), ('s1.log', 'error: worker 1 does not turn\n'):
                with open(os.path.join(folder, name), 'w') as f:
                    f.write(text)
            self.assertEqual(checks.logs(folder), ['s1.log: error: worker 1 does not turn'])


if __name__ == '__main__':
    unittest.main()
