#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tests/integration/kills.py where answers are late: nobody who has not answered has nothing, or is a fault."""
import os
import sys
import types
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(TOP, 'tests/integration'))
sys.path.insert(0, os.path.join(TOP, 'tools'))
import kills  # noqa: E402


class Late:
    """A control socket that answers each second time only."""
    path = 'nowhere'

    def __init__(self, **answers):
        self.answers, self.asked = answers, 0

    def ask(self, method, **_params):
        self.asked += 1
        return self.answers[method.replace('.', '_')] if self.asked % 2 == 0 else None

    def close(self):
        pass


class World(kills.World):
    """Nothing runs, and nothing is killed."""
    def __init__(self):
        self.clos = types.SimpleNamespace(switches=['s0'], spines=['s0'], leaves=['l0', 'l1'])
        self.away, self.killed, self.ended = set(), [], {}
        self.procs = {'manager0': types.SimpleNamespace(pid=7, poll=lambda: None)}
        job = {'job': 'job0', 'epoch': 5, 'phase': 'active', 'switches': ['s0']}
        self.manager = [Late(manager_who={'name': 'host:7'}, job_list={'jobs': [job]})]
        self.group = {'name': 'job0', 'group': 1, 'generation': 2}
        self.switch = {'s0': Late(group_list={'groups': [self.group]}, lease_list={'leases': [{'name': 'manager-0', 'groups': 1}]},
                                  status={'arena_used_bytes': 9})}

    def failures(self, rank):
        return 0

    def kill(self, name):
        self.killed.append(name)


class Kills(unittest.TestCase):
    def setUp(self):
        self.world = World()

    def kill(self, kind):
        return kills.Kill(self.world, kills.KINDS.index(kind), 1)

    def test_who_answers_late_is_waited_for(self):
        k = self.kill('manager')
        k.strike()
        self.assertEqual(self.world.killed, ['manager0'])
        self.assertEqual(k.kept, {0: (5, ['s0'], {('s0', 1, 2)})})
        k.keep()
        k = self.kill('link')
        k.strike()
        self.assertEqual(k.hit[0]['groups'], {('s0', 1, 2)})

    def test_what_nobody_tells_is_not_gone(self):
        k = self.kill('link')
        groups = {('s0', 1, 2)}
        self.assertEqual([k.held(groups) for _ in range(2)], [groups, groups])
        self.world.switch['s0'].answers['group_list'] = {'groups': []}
        self.assertEqual([k.held(groups) for _ in range(2)], [groups, set()])

    def test_an_inventory_is_whole(self):
        self.assertIsNone(self.world.inventory('s0'))
        self.assertEqual(self.world.answer('s0', lambda: self.world.switch['s0'].ask('status')), {'arena_used_bytes': 9})
        self.world.switch['s0'] = types.SimpleNamespace(ask=lambda method: self.full(method))
        self.assertEqual(self.world.inventory('s0'), [[{'name': 'job0'}], [], 9])

    def full(self, method):
        return {'status': {'arena_used_bytes': 9}, 'lease.list': {'leases': []}, 'group.list': {'groups': [self.world.group]}}[method]


if __name__ == '__main__':
    unittest.main()
