#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's Prometheus reads a switch and incline-netd, and evaluates the alert rules of deploy/; promtool tests each rule.
Run by meson test, or by hand: tests/integration/prometheus.py."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
from fabric_case import TOP, app, run_tests  # noqa: E402

RULES = os.path.join(TOP, 'deploy/prometheus/incline.rules.yml')
PATIENCE = 60  # seconds: of a loaded machine
CONFIG = """global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}
rule_files: ['{rules}']
scrape_configs:
  - job_name: incline
    static_configs: [{{targets: ['{switch}', '{netd}']}}]
"""


def alerts(path):
    with open(path) as f:
        return set(re.findall(r'alert(?:name)?: (\w+)', f.read()))


class Rules(unittest.TestCase):
    def promtool(self, *args):
        done = subprocess.run(['promtool', *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_each(self):
        tests = os.path.join(TOP, 'tests/integration/prometheus_rules.yml')
        self.promtool('check', 'rules', RULES)
        self.promtool('test', 'rules', tests)
        self.assertEqual(alerts(RULES), alerts(tests), 'rules that nothing tests')


class Scraped(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='incline-')
        self.addCleanup(shutil.rmtree, self.dir, True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def file(self, name, text):
        with open(self.path(name), 'w') as f:
            f.write(text)
        return self.path(name)

    def start(self, argv, says):
        """Starts a program, and waits until it has said where it listens."""
        log = self.path(os.path.basename(argv[0]) + '.log')
        with open(log, 'w') as out:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        deadline = time.monotonic() + PATIENCE
        while True:
            with open(log) as f:
                text = f.read()
            found = re.search(says, text)
            if found:
                return found[1]
            self.assertIsNone(process.poll(), text)
            self.assertLess(time.monotonic(), deadline, text)
            time.sleep(0.05)

    def api(self, what, **params):
        with urllib.request.urlopen(f'http://{self.prometheus}/api/v1/{what}?{urllib.parse.urlencode(params)}', timeout=PATIENCE) as f:
            answer = json.load(f)
        self.assertEqual(answer['status'], 'success')
        return answer['data']

    def wait(self, what, good, get):
        deadline = time.monotonic() + PATIENCE
        while True:
            found = get()
            if good(found):
                return found
            self.assertLess(time.monotonic(), deadline, f'{what}: {found}')
            time.sleep(0.2)

    def value(self, query):
        return [float(r['value'][1]) for r in self.api('query', query=query)['result']]

    def test_scrape(self):
        switch = self.start([app('incline-switch'), '-c', self.file('s.json', json.dumps({
            'addresses': ['10.0.0.254'], 'control': self.path('control'), 'metrics': '127.0.0.1:0', 'ports': [
                {'name': 'h0', 'type': 'null', 'mac': '02:00:00:00:00:01'},
                {'name': 'h1', 'type': 'memif', 'role': 'server', 'socket': self.path('h1')}]}))], r'metrics at tcp:(\S+)')
        netd = self.start([app('incline-netd'), '--metrics', '127.0.0.1:0', self.file('r.json', json.dumps({
            'mac': '02:00:00:00:00:0a', 'ip': ['10.77.0.10'], 'netdev': {'name': 'incline-p0'},
            'port': {'name': 'h', 'type': 'memif', 'socket': self.path('none')}}))], r'metrics at tcp:(\S+)')
        self.prometheus = self.start(['prometheus', '--storage.tsdb.path', self.path('data'), '--web.listen-address', '127.0.0.1:0',
                                      '--config.file', self.file('p.yml', CONFIG.format(rules=RULES, switch=switch, netd=netd))],
                                     r'(?s)(?=.*Server is ready).*msg="Listening on" address=(\S+)')  # in any order
        targets = self.wait('targets', lambda t: len(t) == 2 and all(x['health'] != 'unknown' for x in t),
                            lambda: self.api('targets')['activeTargets'])
        self.assertEqual([t['lastError'] for t in targets], ['', ''])
        for query, found in ('up', [1, 1]), ('incline_port_link{port="h1",incline_port_link="up"}', [0]), ('incline_rnic_kept', [0]):
            self.wait(query, found.__eq__, lambda query=query: self.value(query))  # written a moment after the scrape
        rules = self.wait('rules', lambda rules: all(r['health'] != 'unknown' for r in rules),
                          lambda: [r for g in self.api('rules')['groups'] for r in g['rules']])
        self.assertEqual({r['name']: r['health'] for r in rules if r['health'] != 'ok'}, {})
        self.wait('alerts', [('InclinePortDown', 'h1')].__eq__,
                  lambda: [(a['labels']['alertname'], a['labels'].get('port')) for a in self.api('alerts')['alerts']])


if __name__ == '__main__':
    run_tests()
