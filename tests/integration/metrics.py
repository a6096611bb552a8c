#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a switch and incline-netd serve as /metrics, and whether the alert rules and the dashboard of deploy/ speak of that."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from fabric_case import run_tests  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
APPS = sys.argv.pop(1)
SWITCH, NETD = (os.path.join(APPS, name) for name in ('incline-switch', 'incline-netd'))
LABEL = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(r'([a-z][a-z0-9_]*)(?:\{(%s(?:,%s)*)\})? ([0-9]+(?:\.[0-9]+)?)$' % (LABEL, LABEL))
NAME = re.compile(r'\bincline_[a-z0-9_]+')
RNIC = 'incline_rnic_'
SUFFIX = {'counter': '_total', 'gauge': '', 'stateset': ''}


def parse(page):
    """Samples' names and families' types; as strict as the standard in order, names and units."""
    lines = page.split('\n')
    assert lines[-2:] == ['# EOF', ''], lines[-2:]
    types, names, seen, family = {}, set(), set(), None
    for line in lines[:-2]:
        word = line.split(' ', 3)
        if word[:2] == ['#', 'TYPE']:
            family = word[2]
            assert family not in types, f'{family} is there twice'
            types[family] = word[3]
        elif line.startswith('# '):
            assert word[1] in ('UNIT', 'HELP') and word[2] == family, line
            assert word[1] == 'HELP' or family.endswith('_' + word[3]), line
        else:
            sample = SAMPLE.match(line)
            assert sample, line
            assert sample[1] == family + SUFFIX[types[family]], line
            assert sample.group(1, 2) not in seen, f'twice: {line}'
            seen.add(sample.group(1, 2))
    for family, kind in types.items():
        assert not family.endswith('_total'), family
        names.add(family + SUFFIX[kind])
    return names, {labels for _, labels in seen}


def spoken_of(text):
    """Names of metrics in an expression; a state's label is called as its metric."""
    return set(NAME.findall(text))


def rules():
    with open(os.path.join(TOP, 'deploy/prometheus/incline.rules.yml')) as f:
        return re.findall(r'^ +expr: (.*)$', f.read(), re.M)


def dashboard():
    with open(os.path.join(TOP, 'deploy/grafana/incline.json')) as f:
        return [t['expr'] for p in json.load(f)['panels'] for t in p['targets']]


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix='incline-') as d:
            config, at = os.path.join(d, 'c.json'), os.path.join(d, 'm')
            ports = [{'name': f'h{i}', 'type': 'null', 'mac': f'02:00:00:00:00:0{i + 1}'} for i in range(2)]
            with open(config, 'w') as f:
                json.dump({'addresses': ['10.0.0.254'], 'control': os.path.join(d, 's'), 'metrics': f'unix:{at}',
                           'ports': ports}, f)
            with subprocess.Popen([SWITCH, '-c', config], stdout=subprocess.PIPE, text=True) as switch:
                try:
                    assert 'ready' in switch.stdout.readline()
                    cls.page = subprocess.run(['curl', '-sf', '--unix-socket', at, 'http://localhost/metrics'],
                                              check=True, stdout=subprocess.PIPE, text=True).stdout
                finally:
                    switch.terminate()
        cls.names, cls.labels = parse(cls.page)

    def test_page(self):
        self.assertIn('port="h0",incline_port_link="up"', self.labels)
        self.assertIn('reason="ip_no_route"', self.labels)
        self.assertIn('incline_uptime_seconds', self.names)
        self.assertNotIn('unknown', self.page.split())

    def test_deployed(self):
        """What rules and dashboard say of a switch."""
        for exprs in rules(), dashboard():
            said = [spoken_of(expr) for expr in exprs]
            self.assertTrue(all(said))
            of_switch = [names for names in said if not any(n.startswith(RNIC) for n in names)]
            self.assertGreater(len(of_switch), 5)
            for names in of_switch:
                self.assertLessEqual(names, self.names)


class Rnic(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix='incline-')
        self.addCleanup(self.tmp.cleanup)
        self.config = os.path.join(self.tmp.name, 'r.json')
        with open(self.config, 'w') as f:
            json.dump({'mac': '02:00:00:00:00:0a', 'ip': ['10.77.0.10'], 'netdev': {'name': 'incline-m0'},
                       'port': {'name': 'h', 'type': 'memif', 'socket': os.path.join(self.tmp.name, 'none')}}, f)

    def netd(self, where):
        return subprocess.Popen([NETD, '--metrics', where, self.config], stderr=subprocess.PIPE, text=True)

    def test_page(self):
        """Of a port whose switch does not run: nothing is kept, and that is what the page says."""
        at = os.path.join(self.tmp.name, 'm')
        with self.netd(f'unix:{at}') as netd:
            try:
                while 'metrics at' not in netd.stderr.readline():
                    self.assertIsNone(netd.poll())
                page = subprocess.run(['curl', '-sf', '--unix-socket', at, 'http://localhost/metrics'],
                                      check=True, stdout=subprocess.PIPE, text=True).stdout
            finally:
                netd.terminate()
        self.assertEqual(netd.returncode, 0)
        self.assertFalse(os.path.exists(at))
        names, labels = parse(page)
        self.assertIn('rnic="netd0"', labels)
        self.assertIn('incline_rnic_kept{rnic="netd0"} 0\n', page)
        for exprs in rules(), dashboard():
            said = {n for expr in exprs for n in spoken_of(expr) if n.startswith(RNIC)}
            self.assertTrue(said)
            self.assertLessEqual(said, names)
        self.assertLessEqual({'incline_rnic_port_rx_bytes_total', 'incline_rnic_drops_total', 'incline_rnic_tap_rx_total'}, names)

    def test_refused(self):
        for where in '0.0.0.0:0', 'unix:', 'nowhere':
            with self.netd(where) as netd:
                self.assertIn(f'error: metrics {where}: must', netd.communicate()[1].replace('path must', 'must'))
            self.assertEqual(netd.returncode, 1, where)


if __name__ == '__main__':
    run_tests()
