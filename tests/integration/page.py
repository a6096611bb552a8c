#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/lab web over a lab of real processes: what a browser gets to see. Page reads what the server says; Browser, which needs
Chromium (tools/setup --frameworks), what its script has made of it; Pictures, likewise, those of the docs. Run by meson test, or by hand: tests/integration/page.py [CLASS[.TEST]...]."""
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.dont_write_bytecode = True
from fabric_case import TOP, Fabric, run_tests  # noqa: E402
import incline_browser  # noqa: E402

PATIENCE = 60


class Watched(Fabric):
    """A tree that loses packets, a page of it, and a collective that goes on."""
    topo = 'tree-2x2'
    impair = {'loss': 0.002, 'seed': 3}

    def setUp(self):
        super().setUp()
        env = dict(os.environ, INCLINE_LAB=self.dir)
        self.web = subprocess.Popen([os.path.join(TOP, 'tools/lab'), 'web', '--port', '0'], env=env, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.web.wait)
        self.addCleanup(self.web.stdout.close)
        self.addCleanup(self.web.terminate)
        self.url = self.web.stdout.readline().split()[0]
        self.ranks = self.perf(range(4), '-b', '64K', '-e', '64K', '-n', '1000000', '--timeout', '60000')

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def until(self, what, done):
        """The first view of which this is true; what the page needs, it has to show in time."""
        deadline = time.monotonic() + PATIENCE
        while not done(view := json.loads(self.get('fabric.json'))):
            if time.monotonic() > deadline:
                self.fail(f'{what} is not shown; but: {json.dumps(view)}')
            time.sleep(0.2)
        return view

    def until_page(self, path, *words):
        """Each fetch is another look, in which a switch may be late."""
        deadline = time.monotonic() + PATIENCE
        while missing := [w for page in [self.get(path)] for w in words if w not in page]:
            self.assertLess(time.monotonic(), deadline, f'not on the page: {missing}')
            time.sleep(0.2)

    def works(self, view):
        return view['groups'] and view['groups'][0]['done_s'] and view['drops'] and all(
            k['down_bits_s'] and k['up_bits_s'] for k in view['links'])


class Page(Watched):
    def test_a_collective_its_rates_and_drops(self):
        # A switch that was late to answer is shown as silent for a moment.
        view = self.until('a collective', lambda v: self.works(v) and {n['state'] for n in v['nodes']} == {'up', 'idle'})
        group = view['groups'][0]
        self.assertEqual(group['tree'], {'spine': ['leaf0', 'leaf1'], 'leaf0': ['h0', 'h1'], 'leaf1': ['h2', 'h3']})
        self.assertEqual(group['rank_at'], {'h0': 0, 'h1': 1, 'h2': 2, 'h3': 3})
        self.assertEqual({d['reason'] for d in view['drops']} & {'impair_loss'}, {'impair_loss'})
        self.until_page('', group['name'], 'impair_loss', '3 of 3', 'spine (leaf0 (h0 h1) leaf1 (h2 h3))', '<svg')

    def test_a_rank_that_stands_still(self):
        self.until('a collective', self.works)
        self.ranks[3].send_signal(signal.SIGSTOP)
        view = self.until('who is waited for', lambda v: v['groups'] and v['groups'][0]['stuck'] and any(
            w['path'][-2:] == ['leaf1', 'h3'] and w['rank'] == 3 for w in v['groups'][0]['waits']))
        self.until_page('fabric', view['groups'][0]['name'] + ' waits')
        self.ranks[3].send_signal(signal.SIGCONT)
        self.until('that it goes on', lambda v: v['groups'] and v['groups'][0]['done_s'])

    def test_a_switch_that_stands_still(self):
        """The others are shown as ever."""
        self.until('a collective', self.works)
        pid = next(s['pid'] for s in self.lab.state()['switches'] if s['name'] == 'leaf0')
        os.kill(pid, signal.SIGSTOP)
        try:
            self.until('its silence', lambda v: [n['name'] for n in v['nodes'] if n['state'] == 'silent'] == ['leaf0'])
        finally:
            os.kill(pid, signal.SIGCONT)
        self.until('that it answers', lambda v: all(n['state'] != 'silent' for n in v['nodes']))


class Browser(Watched):
    @unittest.skipIf(incline_browser.why_not(), incline_browser.why_not())
    def test_what_the_script_shows(self):
        view = self.until('a collective', self.works)
        shown = incline_browser.dom(self.url)
        for words in '<span id="state">live</span>', view['groups'][0]['name'], 'impair_loss', '<svg', 'strand c0':
            self.assertIn(words, shown)


class Pictures(unittest.TestCase):
    @unittest.skipIf(incline_browser.why_not(), incline_browser.why_not())
    def test_those_of_the_docs(self):
        """tools/pictures makes them of a lab: pictures of some size, not of nothing."""
        with tempfile.TemporaryDirectory(prefix='incline-') as directory:
            done = subprocess.run([os.path.join(TOP, 'tools/pictures'), '--out', directory, 'top', 'web', 'jobs', 'plot',
                                   os.path.join(TOP, 'tests/unit/tools/benches/inc.json')], capture_output=True, text=True, timeout=280)
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in 'inclinectl-top', 'lab-web', 'lab-web-jobs', 'bench-inc':
                with open(os.path.join(directory, name + '.png'), 'rb') as f:
                    png = f.read()
                width, height = struct.unpack('>II', png[16:24])
                self.assertEqual(png[:8], b'\x89PNG\r\n\x1a\n')
                self.assertTrue(width >= 500 and height >= 300 and len(png) > 8000, (name, width, height, len(png)))


if __name__ == '__main__':
    run_tests(verbosity=2)
