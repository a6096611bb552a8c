# SPDX-License-Identifier: BSD-3-Clause
"""Switches that say what a test wants, for the tests of tools/lab web."""
import os
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
from incline_fabric import Folder, Topology, ports_of  # noqa: E402
from incline_web_wiring import of_topology  # noqa: E402

TREE = {'name': 'tree', 'switches': [{'name': 'spine', 'ip': '10.77.255.1'}, {'name': 'leaf0', 'ip': '10.77.255.2', 'parent': 'spine'},
                                     {'name': 'leaf1', 'ip': '10.77.255.3', 'parent': 'spine'}],
        'hosts': [{'name': f'h{i}', 'ip': f'10.77.0.{10 + i}', 'switch': f'leaf{i // 2}'} for i in range(4)]}
FOLDER = Folder('/nowhere')


def wiring(doc=None):
    return of_topology(Topology(doc or TREE), FOLDER)


class FakeSwitch:
    """Answers as a switch does, and counts what it is asked."""

    def __init__(self, name, ports, workers=1):
        self.name, self.calls, self.restarts = name, 0, 0
        self.uptime = 100
        self.ports = {p: dict.fromkeys(('rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes', 'tx_drops', 'rx_missed', 'rx_errors',
                                        'rx_nombuf'), 0) for p in ports}
        self.queues = dict.fromkeys(ports, 0)
        self.workers = [{'worker': i, 'busy_cycles': 0, 'idle_cycles': 0} for i in range(workers)]
        self.drops, self.groups, self.rings, self.refuses = {}, {}, {}, ()

    def group(self, name, ends, slot=None, **more):
        """ends: (port, role, ranks, ip)"""
        self.groups[name] = {
            'row': {'group': len(self.groups) if slot is None else slot, 'name': name, 'state': 'active', 'generation': 1, 'mode': 'II',
                    'kind': 'mixed', 'ranks': 4, 'operations': 0, **more},
            'ends': ends, 'waiting': None}

    def waits(self, name, psn, *missing):
        ranks = [r for i in missing for r in self.groups[name]['ends'][i][2]]
        self.groups[name]['waiting'] = {'psn': psn, 'missing': list(missing), 'missing_ranks': ranks}

    def show_group(self, params):
        group = next((g for g in self.groups.values() if g['row']['group'] == params['group']), None)
        if not group:
            return None
        rows = [{'port': p, 'role': role, 'ranks': ranks, 'remote_ip': ip} for p, role, ranks, ip in group['ends']]
        return {**group['row'], 'endpoints': rows, **({'waiting': group['waiting']} if group['waiting'] else {})}

    def answer(self, method, params):
        self.calls += 1
        if method in self.refuses:
            return None
        if method == 'status':
            return {'name': self.name, 'uptime_s': self.uptime, 'drops': sum(self.drops.values()), 'arena_bytes': 1 << 24,
                    'arena_used_bytes': 4096}
        if method == 'port.list':
            return {'ports': [{'name': p, 'link': 'up', **counters} for p, counters in self.ports.items()]}
        if method == 'worker.list':
            return {'workers': [dict(w) for w in self.workers]}
        if method == 'queue.list':
            zero = dict.fromkeys(('queued', 'marked', 'trimmed', 'full', 'stale'), 0)
            return {'queues': [{'port': p, 'queue': q, 'bytes': n if q == 'data' else 0, 'packets': 0, 'limit_bytes': 1 << 18,
                                'peak_bytes': n, **zero} for p, n in self.queues.items() for q in ('control', 'data')]}
        if method == 'drops.get':
            assert params == {'nonzero': True}
            return {'drops': [{'reason': r, 'count': n, 'help': f'help of {r}'} for r, n in self.drops.items() if n], 'outcomes': []}
        if method == 'group.list':
            return {'groups': [dict(g['row']) for g in self.groups.values()]}
        if method == 'ring.list':
            return {'rings': [dict(r['row']) for r in self.rings.values()]}
        if method == 'group.show':
            return self.show_group(params)
        assert method == 'ring.show', method
        return next(r['show'] for r in self.rings.values() if r['row']['ring'] == params['ring'])

    def call(self, questions):
        return [self.answer(method, params) for method, params in questions]


def switches(doc=None):
    topo = Topology(doc or TREE)
    return {s['name']: FakeSwitch(s['name'], ports_of(topo, s['name'])) for s in topo.switches}


def tree_group(fakes, name='train'):
    """A group over the tree of two leaves, ranks as the hosts."""
    fakes['spine'].group(name, [('leaf0', 'switch', [0, 1], '10.77.255.2'), ('leaf1', 'switch', [2, 3], '10.77.255.3')])
    for i in range(2):
        fakes[f'leaf{i}'].group(name, [(f'h{2 * i}', 'host', [2 * i], f'10.77.0.{10 + 2 * i}'),
                                       (f'h{2 * i + 1}', 'host', [2 * i + 1], f'10.77.0.{11 + 2 * i}'),
                                       ('up', 'parent', [2, 3] if i == 0 else [0, 1], '10.77.255.1')])
