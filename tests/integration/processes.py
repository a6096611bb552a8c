#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Real processes: incline-switch, verbs programs on the software RNIC, CommLib's benchmark, wired by
tools/lab over memif. Run by meson test, or by hand: tests/integration/processes.py [TEST...]."""
import json
import os
import shutil
import signal
import socket
import sys
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True
from fabric_case import Fabric, LabError, app, build_dir, topology, run_tests  # noqa: E402
from incline_lab import preloadable  # noqa: E402
from training import training  # noqa: E402


class Star(Fabric):
    def test_allreduce_and_group_life(self):
        for _ in range(2):  # groups come and go
            self.all_ok(self.perf(range(4), '-b', '4K', '-e', '1M', '-f', '4', '-n', '5'))
        self.assertEqual(self.rpc('s0', 'group.list')['result']['groups'], [])

    def test_default_group_holds_hosts_that_wait(self):
        """The software RNIC bears RNR NAKs: nothing in CommLib may take it for a device that does not."""
        self.perf(range(4), '-b', '64K', '-e', '64K', '-n', '1000000')
        deadline = time.monotonic() + 30
        while not (groups := self.rpc('s0', 'group.list')['result']['groups']):
            self.assertLess(time.monotonic(), deadline, 'no group is made')
            time.sleep(0.05)
        shown = self.rpc('s0', 'group.show', {'group': groups[0]['name']})['result']
        self.assertEqual(set(shown['flags']), {'late_flush', 'stall_rnr', 'strict_port', 'half'})

    def test_json_report(self):
        out = os.path.join(self.dir, 'perf.out')
        procs = [self.start(f'h{r}', [app('incline-perf'), '--group', self.lab.path('group.json'), '--rank',
                                      str(r), '-b', '1K', '-e', '64K', '-f', '8', '-n', '3', '-d', 'int32']
                            + (['--json', out] if r == 0 else [])) for r in range(4)]
        self.all_ok(procs)
        with open(out) as f:
            rows = json.load(f)['allreduce']
        self.assertEqual([r['bytes'] for r in rows], [1024, 8192, 65536])
        for r in rows:
            self.assertEqual(r['wrong'], 0)
            self.assertGreater(r['time_us'], 0)
            self.assertGreater(r['p50_us'], 0)
            self.assertEqual((r['p99_us'], r['in_place']['p999_us']), (None, None))  # of three operations
            self.assertAlmostEqual(r['algbw_gbps'], r['bytes'] * 8e-3 / r['time_us'], delta=r['algbw_gbps'] * .02)

    def test_all_collectives_in_either_kind_of_groups(self):
        for kind, groups in ('mixed', 1), ('single', 9):
            group = self.variant(kind=kind)
            report = self.report(group, '--collective', 'all', '-d', 'float,half,int8', '-o', 'sum,max', '-r', 'all',
                                 '-b', '1', '-e', '64K', '-f', '37', '-n', '2', '-w', '1')
            os.remove(group)
            self.assertEqual((report['kind'], report['fallback'], report['wrong']), (kind, False, 0))
            self.assertIn('one mixed group' if groups == 1 else f'{groups} single groups', report['selection'])
            seen = {(r['collective'], r['dtype'], r['op'], r['root']) for r in report['results']}
            self.assertEqual(len(seen), 6 + 24 + 12 + 1 + 6 + 3)
            self.assertIn(('reduce', 'int8', 'max', 3), seen)
            self.assertTrue(all(r['wrong'] == 0 and r['in_place']['wrong'] == 0 for r in report['results']))
        self.assertEqual(self.rpc('s0', 'group.list')['result']['groups'], [])

    def test_unmodified_devices_in_a_mixed_group(self):
        """One of them is enough: queue pairs begin anew, with the switch's own socket and worker."""
        group = self.variant(kind='mixed', mode='II')
        out = os.path.join(self.dir, 'perf.out')
        plain = preloadable(os.path.join(build_dir(), 'tests/integration/libplain_nic.so'), self.dir)
        procs = []
        for r in range(4):
            with unittest.mock.patch.dict(os.environ, {'INCLINE_PRELOAD_FIRST': plain} if r == 2 else {}):
                procs.append(self.start(f'h{r}', [app('incline-perf'), '--group', group, '--rank', str(r), '--collective', 'all',
                                                  '-d', 'int8', '-o', 'sum', '-r', 'all', '-b', '1K', '-e', '32K', '-f', '32', '-n', '2',
                                                  '-w', '1'] + (['--json', out] if r == 0 else [])))
        self.all_ok(procs)
        with open(out) as f:
            report = json.load(f)
        self.assertEqual((report['kind'], report['fallback'], report['wrong']), ('mixed', False, 0))
        self.assertIn("rank 2's device (incline0) cannot leave out PSNs", report['selection'])
        self.assertRegex(report['selection'], r'queue pairs begun anew [1-9]\d+ times')

    def test_ring_of_hosts_when_the_switch_has_no_room(self):
        group = self.variant(M=256)
        report = self.report(group, '--collective', 'all', '-d', 'int32', '-b', '1K', '-e', '32K', '-f', '32', '-n', '2')
        self.assertEqual((report['kind'], report['fallback'], report['wrong']), ('ring', True, 0))
        self.assertIn('s0: group.create: aggregation memory', report['selection'])
        self.assertEqual(len(report['results']), 11)
        group = self.variant(M=256, fallback=False)
        procs = [self.start(f'h{r}', [app('incline-perf'), '--group', group, '--rank', str(r), '--show-selection'])
                 for r in range(4)]
        for rc, out, err in self.finish(procs, 30):
            self.assertEqual((rc, out), (1, ''))
            self.assertIn('aggregation memory', err)
        os.remove(group)

    def test_mode_1(self):
        def arena():
            return self.rpc('s0', 'status')['result']['arena_used_bytes']

        before = arena()
        group = self.variant(mode='I', kind='mixed')
        report = self.report(group, '--collective', 'all', '-b', '1K', '-e', '256K', '-f', '16', '-n', '2')
        self.assertEqual((report['kind'], report['fallback'], report['wrong']), ('mixed', False, 0))
        os.remove(group)
        deadline = time.monotonic() + 10
        while arena() != before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(arena(), before)

    def test_netreduce(self):
        group = self.variant(mode='netreduce')
        report = self.report(group, '-d', 'float', '-b', '1K', '-e', '256K', '-f', '16', '-n', '2')
        self.assertEqual((report['kind'], report['fallback'], report['wrong']), ('ring', False, 0))
        self.assertIn('NetReduce', report['selection'])
        os.remove(group)
        self.assertEqual(self.rpc('s0', 'ring.list')['result']['rings'], [])

    def test_netreduce_without_room(self):
        group = self.variant(mode='netreduce', M=256)
        report = self.report(group, '--collective', 'all', '-d', 'int32', '-b', '1K', '-e', '32K', '-f', '32', '-n', '2')
        self.assertEqual((report['kind'], report['fallback'], report['wrong']), ('ring', True, 0))
        self.assertIn('s0: ring.create: aggregation memory', report['selection'])
        self.assertEqual(self.rpc('s0', 'ring.list')['result']['rings'], [])
        os.remove(group)

    def test_ring_on_request(self):
        group = self.variant(mode='ring')
        report = self.report(group, '--collective', 'all', '-b', '1K', '-e', '64K', '-f', '64', '-n', '2')
        self.assertEqual((report['kind'], report['fallback'], report['wrong']), ('ring', False, 0))
        self.assertIn('without the switches', report['selection'])
        self.assertIn('# Collectives of the hosts, mode ring: 4 ranks', report['text'])
        os.remove(group)

    def test_training_in_shards(self):
        """Convolutions, weights in shards, sums in fixed point: exact in one mode; all of them with tools/test --long (training.py)."""
        group = self.variant(kind='mixed')
        t = training(self, group, '--model', 'cnn', '--shard', '--fixed', '--epochs', '2')
        os.remove(group)
        self.assertEqual((t['model'], t['sharded'], t['verified'], t['max_weight_diff']), ('cnn', True, True, 0))
        for said, *options in ('--again is not for --shard', '--shard', '--again', '1'), ('"gpt" is not valid', '--model', 'gpt'):
            p = self.start('h0', [app('incline-train'), '--group', self.lab.path('group.json'), '--rank', '0', *options])
            rc, _, err = self.finish([p], 30)[0]
            self.assertEqual(rc, 2)
            self.assertIn(said, err)

    def test_switch_killed_in_mid_operation(self):
        procs = self.perf(range(4), '-b', '16M', '-e', '16M', '-n', '100000', '--timeout', '3000')
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            stats = self.rpc('s0', 'group.list')['result']['groups']
            if stats and stats[0]['state'] == 'active':
                break
            time.sleep(0.05)
        time.sleep(1)
        self.breaks_fabric()
        pid = self.lab.state()['switches'][0]['pid']
        os.kill(pid, signal.SIGKILL)
        self.lab.processes[0].wait()
        killed = time.monotonic()
        for rc, _, err in self.finish(procs, 30):
            self.assertNotEqual(rc, 0)
            self.assertIn('10.77.255.1', err)
        self.assertLess(time.monotonic() - killed, 20)

    def test_generations_of_slots_begin_anew(self):
        """A switch that was started again gives the slots that it gave to groups with other queue pair numbers."""
        def generations():
            for i in range(10):
                self.rpc('s0', 'group.create', {'name': f'g{i}', 'mode': 'II', 'kind': 'mixed', 'mtu': 1024, 'M': 4, 'W': 4,
                                                'ranks': 1, 'endpoints': [{'ip': '10.77.0.10', 'qpn': 17, 'port': 'h0', 'ranks': [0]}]})
            return {g['name']: (g['group'], g['generation']) for g in self.rpc('s0', 'group.list')['result']['groups']}

        self.breaks_fabric()
        self.lab.restart_switch(self.topology(), 's0')  # without what other tests have had there
        before = generations()
        self.lab.restart_switch(self.topology(), 's0')
        after = generations()
        self.assertEqual(len(before), 10)
        self.assertEqual({n: slot for n, (slot, _) in before.items()}, {n: slot for n, (slot, _) in after.items()})
        self.assertNotEqual(before, after)  # all ten by chance: once in 10^18

    def test_a_rank_that_never_comes_is_named(self):
        procs = self.perf(range(3), '-b', '4K', '-e', '4K', '--timeout', '2000')
        for rc, _, err in self.finish(procs, 30):
            self.assertNotEqual(rc, 0)
        self.assertIn('3', err)

    def test_control_socket_abuse_while_packets_flow(self):
        procs = self.perf(range(4), '-b', '1M', '-e', '1M', '-n', '60')
        path = self.lab.control_socket('s0')

        def raw(data, expect=True):
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(10)
                s.connect(path)
                try:
                    s.sendall(data)
                    s.shutdown(socket.SHUT_WR)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                got = b''
                try:
                    while chunk := s.recv(65536):
                        got += chunk
                except ConnectionResetError:
                    pass
                if expect:
                    self.assertIn(b'error', got, data[:100])
                return got

        before = self.rpc('s0', 'table.read', {'table': 'neigh'})['result']
        raw(b'{"jsonrpc": "2.0", "id": 1, "method":\n')
        raw(b'x' * (10 << 20) + b'\n')
        raw(b'[' * 100000 + b'\n')
        raw(b'{"jsonrpc":"2.0","id":1,"method":"no.such"}\n')
        raw(b'{"jsonrpc":"2.0","id":1,"method":"table.read","params":{"table":"neigh","bogus":1}}\n')
        raw(b'{"jsonrpc":"2.0","id":1,"method":"table.read","params":{"table":7}}\n')
        raw(b'\xff\xfe\n')
        good = {'op': 'insert', 'table': 'neigh', 'key': {'ip': '10.1.2.3'}, 'action': 'rewrite',
                'data': {'port': 'h0', 'mac': '02:00:00:00:00:77'}}
        bad = dict(good, data={'port': 'nowhere', 'mac': '02:00:00:00:00:77'})
        reply = self.rpc('s0', 'table.write', {'updates': [good, bad]})
        self.assertEqual(reply['error']['data']['index'], 1)
        self.assertEqual(self.rpc('s0', 'table.read', {'table': 'neigh'})['result'], before)
        stalled = []
        for _ in range(10):  # clients that say half a line, or never read
            s = socket.socket(socket.AF_UNIX)
            s.connect(path)
            s.sendall(b'{"jsonrpc":')
            stalled.append(s)
        self.assertIn('result', self.rpc('s0', 'port.list'))
        self.all_ok(procs)
        for s in stalled:
            s.close()

    def test_lab_status(self):
        nodes = {n['name']: n for n in self.lab.status()['nodes']}
        self.assertEqual(nodes['s0'], {'name': 's0', 'kind': 'switch', 'ip': '10.77.255.1', 'state': 'up'})
        self.assertEqual(nodes['h3']['state'], 'idle')
        with self.assertRaises(LabError):
            self.lab.up(topology('star4'))


class Tree(Fabric):
    topo = 'tree-2x2'

    def test_allreduce(self):
        self.all_ok(self.perf(range(4), '-b', '4K', '-e', '1M', '-f', '16', '-n', '5'))

    def test_write_verb(self):
        """Data by RDMA WRITE; who asks for what there is not is told."""
        for mode in 'II', 'III':
            group = self.variant(mode=mode, kind='mixed', verb='write')
            report = self.report(group, '--collective', 'all', '-b', '4K', '-e', '64K', '-f', '16', '-n', '1', '-d', 'int32',
                                 '--timeout', '20000')
            os.remove(group)
            self.assertEqual((report['kind'], report['wrong'], report['fallback']), ('mixed', 0, False))
        group = self.variant(mode='I', verb='write')
        rc, _, err = self.finish([self.start('h0', [app('incline-perf'), '--group', group, '--rank', '0'])], 30)[0]
        os.remove(group)
        self.assertEqual(rc, 2)
        self.assertIn('verb: write is for modes II and III, not I', err)

    @unittest.skipUnless(shutil.which('ibv_rc_pingpong'), 'ibverbs-utils is not installed')
    def test_pingpong_across_three_switches(self):
        self.pingpong('ibv_rc_pingpong', 'h0', 'h3')


class Eight(Fabric):
    """Nine busy processes on two cores, over IPv6; the switch has two workers."""
    topo = 'star8-ipv6'

    def workers(self):
        return self.rpc('s0', 'worker.list')['result']['workers']

    def test_allreduce(self):
        self.all_ok(self.perf(range(8), '-b', '4K', '-e', '1M', '-f', '16', '-n', '5'))
        self.assertEqual(len(self.workers()), 2)
        self.assertTrue(all(w['rx_packets'] for w in self.workers()))
        self.assertGreater(sum(w['handed_over'] for w in self.workers()), 0)

    def test_groups_move_between_workers(self):
        """To and fro while the ranks go on; each result is right, nothing is lost on the way."""
        before = sum(w['handoff_full'] for w in self.workers())
        procs = self.perf(range(8), '-b', '64K', '-e', '64K', '-n', '300', '-d', 'int32', '--timeout', '20000')
        moved = 0
        while any(p.poll() is None for p in procs):
            for g in self.rpc('s0', 'group.list')['result']['groups']:
                reply = self.rpc('s0', 'group.move', {'group': g['name'], 'worker': 1 - g['worker']})
                moved += 'result' in reply
            time.sleep(0.005)
        self.all_ok(procs, 60)
        self.assertGreater(moved, 10)
        self.assertEqual(sum(w['handoff_full'] for w in self.workers()), before)

    def test_netreduce(self):
        group = self.variant(mode='netreduce')
        report = self.report(group, '-d', 'bfloat16,int32', '-b', '16K', '-e', '64K', '-f', '4', '-n', '2', '--timeout',
                             '30000', ranks=8)
        os.remove(group)
        self.assertEqual((report['kind'], report['wrong']), ('ring', 0))


class Lossy(Fabric):
    topo = 'tree-2x2'
    impair = {'loss': 0.01, 'dup': 0.01, 'reorder': 0.01, 'seed': 7}

    def test_allreduce(self):
        self.in_weather(lambda: self.all_ok(self.perf(range(4), '-b', '64K', '-e', '256K', '-f', '4', '-n', '3', '-d', 'int32',
                                                      '--timeout', '20000'), 120))

    def test_parallel_netreduce(self):
        """Two nodes of two ranks, each below a leaf: a ring for the first ones, one for the second ones."""
        group = self.variant(mode='netreduce', rings=2)
        report = self.in_weather(lambda: self.report(group, '-b', '1K', '-e', '256K', '-f', '16', '-n', '3', '-d', 'int32',
                                                     '--timeout', '20000'))
        self.assertEqual((report['kind'], report['fallback'], report['wrong']), ('ring', False, 0))
        self.assertIn('2 rings across 2 nodes', report['selection'])
        group = self.variant(mode='netreduce', rings=2, M=256)
        report = self.report(group, '-b', '1K', '-e', '1M', '-f', '32', '-n', '2', '-d', 'int32', '--timeout', '20000')
        self.assertEqual((report['kind'], report['fallback'], report['wrong']), ('ring', True, 0))
        self.assertIn('rings across the nodes and inside each, of the hosts, without the switches', report['selection'])
        os.remove(group)
        for switch in 'spine', 'leaf0', 'leaf1':
            self.assertEqual(self.rpc(switch, 'ring.list')['result']['rings'], [])


if __name__ == '__main__':
    run_tests(verbosity=2)
