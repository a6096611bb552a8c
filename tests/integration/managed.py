#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose trees a manager finds, on a Clos of real processes: whatever is killed, they go on or say why, and nothing
is left on the switches. Run by meson test, or by hand: tests/integration/managed.py [CLASS[.TEST]...]."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
from incline_clos import Clos, ClosLab, Jobs, PATIENCE  # noqa: E402
from fabric_case import run_tests  # noqa: E402
from incline_lab import build_dir  # noqa: E402


def show_selection(lab, group, hosts):
    return [lab.popen(h['name'], [os.path.join(build_dir(), 'apps/incline-perf'), '--show-selection', '--group',
                                  lab.path(group), '--rank', str(r)], group, stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE, text=True) for r, h in enumerate(hosts)]


class Fabric(unittest.TestCase):
    """A Clos and its manager for the tests of a class."""
    @classmethod
    def setUpClass(cls):
        directory = tempfile.mkdtemp(prefix='incline-')
        cls.addClassCleanup(shutil.rmtree, directory, True)
        cls.lab, cls.clos = ClosLab(directory), Clos()
        cls.state = cls.lab.make_clos(cls.clos)
        cls.addClassCleanup(lambda: [p.wait() for p in cls.lab.processes])
        cls.addClassCleanup(cls.lab.kill, cls.state)

    def setUp(self):
        self.jobs = Jobs(self.lab, self.clos, self.state, 150)
        self.addCleanup(self.jobs.kill)

    def kill(self, name):
        rows = self.state['switches'] + self.state['keepers']
        row = next(r for r in rows if r['name'] == name)
        self.lab.signal(row, signal.SIGKILL)
        next(p for p in self.lab.processes if p.pid == row['pid']).wait(PATIENCE)  # its sockets are gone with it

    def begin(self, name):
        self.jobs.start(name)
        self.jobs.wait('training', lambda: 'epoch   2' in self.jobs.said(name))

    def ends_exact(self, name):
        self.jobs.wait('the end', lambda: all(p.poll() == 0 for p in self.jobs.procs[name]))
        self.assertIn('\nverified', self.jobs.said(name))
        self.assertTrue(self.jobs.nothing_left())


class Managed(Fabric):
    def loses(self, name, rank):
        """One of the ranks: the other hears why and joins again, and meanwhile nothing is left."""
        self.begin(name)
        self.jobs.procs[name][rank].send_signal(signal.SIGKILL)
        self.jobs.procs[name][rank].wait()
        deadline = time.monotonic() + PATIENCE
        while 'joining again' not in self.jobs.said(name, 1 - rank):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertTrue(self.jobs.nothing_left())
        self.jobs.kill()

    def test_rank_0_is_killed(self):
        self.loses('job0', 0)

    def test_another_rank_is_killed(self):
        self.loses('job0', 1)

    def test_the_manager_is_killed(self):
        self.begin('job0')
        self.kill('manager')
        self.lab.start_manager(self.clos, self.state)
        self.ends_exact('job0')
        self.begin('job1')
        self.ends_exact('job1')

    def test_selection_is_the_managers_sentence(self):
        hosts = [self.clos.hosts_of(leaf)[0] for leaf in self.clos.leaves]
        group = self.lab.group('shown', hosts)
        self.jobs.procs['shown'] = procs = show_selection(self.lab, group, hosts)
        out, err = zip(*(p.communicate(timeout=PATIENCE) for p in procs))
        self.assertEqual([p.returncode for p in procs], [0, 0], err)
        mode, line = out[0].splitlines()[0].split('; manager: ')
        self.assertRegex(mode, r'^mode (II|III), mixed: ')
        self.assertRegex(line, r'^shown, epoch \d+, connecting: in the network: height 2, 3 switches, root first: '
                               r'spine\d leaf0 leaf1; mode I+, M \d+, W \d+, \d+ bytes in all, 10\.0 Gbit/s$')
        self.assertIn(line.split(', connecting')[0], self.jobs.explain('shown'))
        self.assertTrue(self.jobs.nothing_left())

    def await_answer(self, done, *words):
        deadline = time.monotonic() + PATIENCE
        while not done(answer := self.lab.ctl(*words)):
            self.assertLess(time.monotonic(), deadline, answer)
            time.sleep(0.05)
        return answer

    def test_cables_in_the_wrong_place(self):
        """Leaf 0 is cabled to two spines as the file does not have it: the third is left for a job. It hears who is
        at its ports, hosts too while a program has their RNIC."""
        def hears(cables):
            self.await_answer(lambda l: {(n['port'], n['system'], n['peer_port']) for n in l['neighbours']} == cables,
                              'leaf0.ctl', 'lldp')
        cables = {(s, s, 'leaf0') for s in self.clos.spines}
        hears(cables)
        self.assertEqual(self.lab.ctl('manager.sock', 'topology')['conflicts'], [])
        config = self.lab.manager_config(self.clos)
        exchanged = {'spine0': 'spine1', 'spine1': 'spine0'}
        for link in config['links']:
            if link['b'] == 'leaf0':
                link['b_port'] = exchanged.get(link['b_port'], link['b_port'])
        self.kill('manager')
        self.lab.start_manager(self.clos, self.state, config)
        t = self.await_answer(lambda t: len(t['conflicts']) == 4, 'manager.sock', 'topology')
        self.assertIn('leaf0:spine0 hears spine0:leaf0 by LLDP, where the file has spine1:leaf0: not used', t['conflicts'])
        self.begin('job0')
        self.assertIn('root first: spine2 ', self.jobs.explain('job0'))
        hears(cables | {('h00', 'h00', 'h00')})
        self.ends_exact('job0')
        hears(cables)
        self.kill('manager')
        self.lab.start_manager(self.clos, self.state)
        self.await_answer(lambda t: not t['conflicts'] and all(link['state'] == 'up' for link in t['links']),
                          'manager.sock', 'topology')

    def test_no_topology_file(self):
        """The file names the switches: links between them, and the hosts when a program has their RNIC, are heard."""
        config = self.lab.manager_config(self.clos)
        cables = {tuple(sorted(((s, leaf), (leaf, s)))) for s in self.clos.spines for leaf in self.clos.leaves}
        del config['hosts'], config['links']
        self.kill('manager')
        self.lab.start_manager(self.clos, self.state, {**config, 'discover': True, 'discover_mbps': 10000})
        t = self.await_answer(lambda t: len(t['links']) >= len(cables) and
                              all(link['state'] == 'up' for link in t['links']), 'manager.sock', 'topology')
        ends = [tuple(sorted(((link['a'], link['a_port']), (link['b'], link['b_port'])))) for link in t['links']]
        self.assertEqual(cables, set(ends) & cables)
        self.assertEqual({link['by'] for link in t['links']}, {'lldp'})
        self.assertEqual(t['conflicts'], [])
        self.begin('job0')
        self.assertRegex(self.jobs.explain('job0'), r'in the network: height 2, 3 switches, root first: spine\d leaf0 leaf1')
        self.ends_exact('job0')
        self.kill('manager')
        self.lab.start_manager(self.clos, self.state)
        self.await_answer(lambda t: all(link['by'] == 'file' and link['state'] == 'up' for link in t['links']),
                          'manager.sock', 'topology')



class Spine(Fabric):
    def test_is_killed(self):
        for row in self.jobs.run(lambda line: None, hang_s=0.2):
            self.assertTrue(row['exact'], row)
            self.assertEqual(row['replaced'], row['hit'], row)
            self.assertEqual(row['noticed'], row['hit'], row)
        self.assertTrue(self.jobs.nothing_left())


class Resumes(Fabric):
    """A job that goes on by the ring of its hosts when a spine dies under it, and one beside it on another spine."""
    def perf(self, name, checks, **fields):
        """All collectives' results are looked at. What the manager says of the job when it is active."""
        hosts = [self.clos.hosts_of(leaf)[self.jobs.names.index(name)] for leaf in self.clos.leaves]
        group = self.lab.group(name, hosts, timeout_ms=60000, **fields)
        self.jobs.procs[name] = []
        for rank, h in enumerate(hosts):
            with open(self.lab.path(f'{name}-{rank}.log'), 'w') as out:
                self.jobs.procs[name].append(self.lab.popen(
                    h['name'], [os.path.join(build_dir(), 'apps/incline-perf'), '--group', self.lab.path(group), '--rank',
                                str(rank), '-b', '64K', '-e', '64K', '-n', '1', '-c', str(checks)], group, stdout=out, stderr=out))
        self.jobs.wait(name, lambda: self.jobs.row(name).get('phase') == 'active')
        return self.jobs.row(name)

    def operations(self, spine):
        return max((g['operations'] for g in self.lab.ctl(f'{spine}.ctl', 'group', 'list')['groups']), default=0)

    def test_by_the_ring_of_its_hosts(self):
        before = {name: self.perf(name, checks, **more)  # the first one has the spine that hosts' packets go by
                  for name, checks, more in (('job1', 1000000, {}), ('job0', 300, {'resume': True}))}
        spine = before['job0']['switches'][0]
        self.assertEqual([before['job1']['switches'][0], spine], self.clos.spines[:2])
        self.jobs.wait('collectives', lambda: self.operations(spine) > 2)
        self.kill(spine)
        words = 'group job0 goes on by a ring of the hosts, without the switches, from collective '
        deadline = time.monotonic() + PATIENCE
        while words not in self.jobs.said('job0'):
            self.assertLess(time.monotonic(), deadline, self.jobs.said('job0'))
            time.sleep(0.002)
        rank = self.jobs.procs['job0'][1]
        rank.send_signal(signal.SIGSTOP)  # or all might be done before anybody has asked
        line, beside = self.jobs.explain('job0'), self.jobs.row('job1')
        rank.send_signal(signal.SIGCONT)
        self.assertEqual([beside[what] for what in ('epoch', 'phase')], [before['job1']['epoch'], 'active'])
        for p in self.jobs.procs.pop('job1'):
            p.kill()
            p.wait()
        self.assertRegex(line, rf"^job0, epoch {before['job0']['epoch']}, going on by the hosts' ring for \d+ s: \w+")
        self.jobs.wait('the end', lambda: all(p.poll() == 0 for p in self.jobs.procs['job0']))  # not if a result is wrong
        self.assertEqual([self.jobs.said('job0', r).count(words) for r in (0, 1)], [1, 0])
        self.assertEqual(self.jobs.explain('job0').rpartition(', ')[2], 'over: all ranks left')
        self.assertTrue(self.jobs.nothing_left())


class NoSpine(Fabric):
    def test_says_so(self):
        for spine in self.clos.spines:
            self.kill(spine)
        hosts = [self.clos.hosts_of(leaf)[0] for leaf in self.clos.leaves]
        group = self.lab.group('alone', hosts, fallback=False,
                               manager=f"{self.lab.path('nobody.sock')},{self.lab.path('manager.sock')}")
        deadline = time.monotonic() + PATIENCE
        while any(n['state'] == 'up' for n in self.lab.ctl('manager.sock', 'topology')['nodes']
                  if n['name'].startswith('spine')):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.jobs.procs['alone'] = procs = show_selection(self.lab, group, hosts)
        for p in procs:
            err = p.communicate(timeout=PATIENCE)[1]
            self.assertEqual(p.returncode, 1)
            self.assertIn('no common switch', err)
        self.assertIn('no common switch', self.jobs.explain('alone'))


if __name__ == '__main__':
    run_tests()
