#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the page of a fabric shows (tools/incline_web_*.py), of switches that say what a test wants: no socket, no clock."""
import json
import sys
import unittest
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True
from web_fakes import FOLDER, TREE, switches, tree_group, wiring  # noqa: E402
from incline_fabric import LabError, Topology  # noqa: E402
from incline_planes import Planes  # noqa: E402
from incline_web_draw import Layout, number, number_bytes  # noqa: E402
from incline_web_model import MOST_CALLS, Source, read_manager, read_switch, view  # noqa: E402
from incline_web_page import page, part  # noqa: E402
from incline_web_wiring import of_manager, of_topology  # noqa: E402

EVIL = '"><script>alert(1)</script><b onclick=\'x\'>&amp;'


class Wirings(unittest.TestCase):
    def test_tree(self):
        w = wiring()
        self.assertEqual([(n['name'], n['tier']) for n in w.nodes],
                         [('spine', 0), ('leaf0', 1), ('leaf1', 1), ('h0', 2), ('h1', 2), ('h2', 2), ('h3', 2)])
        self.assertEqual(w.links[0], {'a': 'spine', 'a_port': 'leaf0', 'b': 'leaf0', 'b_port': 'up'})
        self.assertEqual(len(w.links), 6)
        self.assertEqual(w.at_port['leaf1', 'up'], (1, 'spine'))
        self.assertEqual(w.at_port['leaf1', 'h3'][1], 'h3')
        self.assertEqual(w.sockets['leaf0'], '/nowhere/leaf0.ctl')

    def test_several_ports_of_a_host(self):
        w = wiring({'name': 'two', 'switches': [{'name': 's0', 'ip': '10.0.0.1'}],
                    'hosts': [{'name': 'h0', 'ip': '10.0.0.10', 'switch': 's0', 'ports': 2}]})
        self.assertEqual([(k['a_port'], k['b'], k['b_port']) for k in w.links], [('h0', 'h0', 'h0'), ('h0-1', 'h0', 'h0-1')])
        self.assertEqual(w.at_ip['10.0.1.10'], 'h0')

    def test_planes(self):
        w = of_topology(Planes({'name': 'p', 'planes': {'count': 2, 't0': 2, 't1': 3, 'hosts': 4}}), FOLDER)
        self.assertEqual(len(w.links), 2 * (2 * 3 + 4))
        for k in w.links:
            self.assertEqual(w.node[k['a']]['tier'] + 1, w.node[k['b']]['tier'], k)
        self.assertEqual(w.at_port['p2-t1-2', 't0-1'][1], 'p2-t0-1')
        self.assertEqual(w.at_port['p1-t0-0', 'h1'][1], 'h1')

    def manager(self, **more):
        return {'listen': 'unix:/run/m.sock', 'switches': [{'name': n, 'control': c, 'ip': f'10.0.0.{i}'} for i, (n, c) in
                enumerate([('leaf', '/run/l'), ('spine', 'unix:/run/s'), ('far', 'tcp:10.8.0.1:7471')])],
                'hosts': [{'name': 'h', 'ip': '10.0.1.1'}],
                'links': [{'a': 'leaf', 'a_port': 'p0', 'b': 'h'}, {'a': 'leaf', 'a_port': 'p1', 'b': 'spine', 'b_port': 'p0'},
                          {'a': 'far', 'a_port': 'p0', 'b': 'spine', 'b_port': 'p1'}], **more}

    def test_manager(self):
        w = of_manager(self.manager())
        self.assertEqual({n['name']: n['tier'] for n in w.nodes}, {'far': 0, 'spine': 1, 'leaf': 2, 'h': 3})
        self.assertIn({'a': 'spine', 'a_port': 'p0', 'b': 'leaf', 'b_port': 'p1'}, w.links)
        self.assertEqual((w.sockets, w.manager), ({'leaf': '/run/l', 'spine': '/run/s', 'far': None}, '/run/m.sock'))

    def test_refused(self):
        with self.assertRaisesRegex(LabError, "no configuration of incline-manager: 'hosts' is missing"):
            of_manager({'switches': []})
        many = [{'name': f's{i}', 'control': '/s', 'ip': '10.0.0.1'} for i in range(129)]
        with self.assertRaisesRegex(LabError, '129 switches: a page shows at most 128'):
            of_manager(self.manager(switches=many, links=[]))
        with self.assertRaisesRegex(LabError, 'switches: has none'):
            of_manager(self.manager(switches=[], links=[]))
        for link, end in ({'a': 'leaf', 'a_port': 'p0', 'b': 'x'}, 'b'), ({'a': 'x', 'a_port': 'p0', 'b': 'h'}, 'a'):
            with self.assertRaisesRegex(LabError, rf'links\[1\]\.{end}: x is neither a switch nor a host'):
                of_manager(self.manager(links=[{'a': 'leaf', 'a_port': 'p1', 'b': 'h'}, link]))


class Seen(unittest.TestCase):
    def setUp(self):
        self.wiring, self.fakes = wiring(), switches()
        self.sources = {name: Source() for name in self.fakes}
        self.now = 0.0

    def read(self, seconds=1.0):
        """All switches once more, so many seconds later."""
        self.now += seconds
        for name, fake in self.fakes.items():
            fake.uptime += int(seconds)
            self.sources[name].take(read_switch(fake.call, self.now))
        return self.view()

    def view(self, manager=None):
        shown = view(self.wiring, self.sources, manager, {'h0': 'busy', 'h1': 'idle'}, self.now, 'noon')
        return json.loads(json.dumps(shown))  # /fabric.json

    def link(self, shown, a, b):
        return next(k for k in shown['links'] if (k['a'], k['b']) == (a, b))

    def switch(self, shown, name):
        return next(n for n in shown['nodes'] if n['name'] == name)

    def wait_for_h3(self, psn):
        self.fakes['leaf0'].waits('train', psn, 2)  # the result is to come from above
        self.fakes['spine'].waits('train', psn, 1)
        self.fakes['leaf1'].waits('train', psn, 1)


class Views(Seen):
    def test_rates(self):
        spine = self.fakes['spine']
        shown = self.read()
        self.assertIsNone(self.link(shown, 'spine', 'leaf0')['down_bits_s'])
        spine.ports['leaf0'].update(tx_bytes=1000, rx_bytes=3000, rx_missed=8)
        spine.queues['leaf0'] = 2048
        spine.workers[0].update(busy_cycles=30, idle_cycles=70)
        shown = self.read(2.0)
        k = self.link(shown, 'spine', 'leaf0')
        self.assertEqual((k['down_bits_s'], k['up_bits_s'], k['lost_s'], k['a_queue_bytes'], k['state']), (4000, 12000, 4, 2048, 'up'))
        self.assertEqual(self.switch(shown, 'spine')['busy_percent'], 30)

    def test_links_that_are_down(self):
        """Of a host that no program uses that is as it should be."""
        for fake in self.fakes.values():
            for port in 'h0', 'h1', 'leaf1':
                if port in fake.ports:
                    fake.ports[port]['link'] = 'down'
        shown = self.read()
        self.assertEqual([self.link(shown, *k)['state'] for k in (('leaf0', 'h0'), ('leaf0', 'h1'), ('spine', 'leaf1'), ('spine', 'leaf0'))],
                         ['down', 'unplugged', 'down', 'up'])
        self.assertEqual([p['port'] for p in shown['ports'] if p['unplugged']], ['h1'])
        self.assertIn('<tr class=""><td>leaf0</td><td>h1</td><td>unplugged</td>', part(shown))

    def test_a_counter_that_passes_its_end_goes_on(self):
        port = self.fakes['leaf1'].ports['h3']
        port['tx_bytes'] = str((1 << 64) - 100)  # above 2^53 a string of digits
        self.read()
        port['tx_bytes'] = 900
        self.assertEqual(self.link(self.read(), 'leaf1', 'h3')['down_bits_s'], 8000)
        port['tx_bytes'] = 0  # cleared
        self.assertIsNone(self.link(self.read(), 'leaf1', 'h3')['down_bits_s'])

    def test_no_rates_over_a_restart_or_a_long_pause(self):
        fake = self.fakes['spine']
        self.read()
        fake.ports['leaf0']['tx_bytes'] = 5000
        fake.uptime = 0
        self.assertIsNone(self.link(self.read(), 'spine', 'leaf0')['down_bits_s'])
        self.assertEqual(self.link(self.read(), 'spine', 'leaf0')['down_bits_s'], 0)
        self.assertIsNone(self.link(self.read(3600), 'spine', 'leaf0')['down_bits_s'])

    def test_drops(self):
        self.fakes['leaf0'].drops['old'] = 7
        self.read()
        self.fakes['leaf0'].drops['new'] = 3
        shown = self.read()
        self.assertEqual([(d['reason'], d['count'], d['per_s']) for d in shown['drops']], [('new', 3, 3), ('old', 7, 0)])
        self.assertEqual((self.switch(shown, 'leaf0')['drops_s'], shown['drops_s']), (3, 3))
        self.fakes['leaf0'].drops = {'old': 2}  # cleared, and two since
        self.assertEqual([(d['reason'], d['per_s']) for d in self.read()['drops']], [('old', 2)])

    def test_tree_of_a_group(self):
        tree_group(self.fakes)
        self.read()
        for fake in self.fakes.values():
            fake.groups['train']['row']['operations'] = 50
        group = self.read()['groups'][0]
        self.assertEqual((group['name'], group['state'], group['done'], group['done_s'], group['waits']), ('train', 'active', 50, 50, []))
        self.assertEqual(group['tree'], {'spine': ['leaf0', 'leaf1'], 'leaf0': ['h0', 'h1'], 'leaf1': ['h2', 'h3']})
        self.assertEqual(group['rank_at'], {'h0': 0, 'h1': 1, 'h2': 2, 'h3': 3})
        self.assertEqual(group['links'], list(range(6)))

    def test_who_waits_for_whom(self):
        tree_group(self.fakes)
        self.wait_for_h3(5)
        group = self.read()['groups'][0]
        self.assertEqual(group['waits'], [{'path': ['leaf0', 'spine', 'leaf1', 'h3'], 'rank': 3}])
        self.assertFalse(group['stuck'])
        group = self.read()['groups'][0]  # the same packet
        self.assertTrue(group['stuck'])
        self.assertEqual(len(group['waited_links']), 3)
        self.wait_for_h3(6)  # another one
        self.assertFalse(self.read()['groups'][0]['stuck'])

    def test_switches_that_wait_for_each_other(self):
        tree_group(self.fakes)
        self.fakes['leaf0'].waits('train', 1, 2)
        self.fakes['spine'].waits('train', 1, 0)
        self.assertEqual({tuple(w['path']) for w in self.read()['groups'][0]['waits']}, {('leaf0', 'spine'), ('spine', 'leaf0')})

    def test_ring(self):
        leaf = self.fakes['leaf1']
        row = {'ring': 3, 'name': 'nr', 'state': 'active', 'ranks': 2, 'completed': 10}
        leaf.rings['nr'] = {'row': row, 'show': {**row, 'waiting': {'message': 1, 'packet': 2, 'missing_ranks': [1]}, 'parent': {'ip': '10.77.255.1'},
                            'inputs': [{'kind': 'host', 'src': f'10.77.0.{12 + i}', 'ranks': [i]} for i in range(2)]}}
        self.read()
        row['completed'] = 10  # none since
        group = self.read()['groups'][0]
        self.assertEqual((group['kind'], group['mode'], group['tree']), ('ring', 'NetReduce', {'leaf1': ['h2', 'h3']}))
        self.assertEqual((group['waits'], group['stuck']), ([{'path': ['leaf1', 'h3'], 'rank': 1}], True))

    def test_a_number_that_is_another_groups_by_now(self):
        tree_group(self.fakes)
        fake = self.fakes['leaf0']
        read = fake.answer
        fake.answer = lambda m, p: {**(read(m, p) or {}), **({'name': 'other'} if m == 'group.show' else {})}
        self.assertEqual(self.read()['groups'][0]['tree'], {'spine': ['leaf0', 'leaf1'], 'leaf0': [], 'leaf1': ['h2', 'h3']})

    def test_silent_switch(self):
        self.read()
        self.sources['leaf0'].fail('does not answer', 5)
        self.sources['leaf0'].fail('does not answer', 6)
        self.now = 8
        shown = self.view()
        n = self.switch(shown, 'leaf0')
        self.assertEqual((n['state'], n['error'], n['silent_s']), ('silent', 'does not answer', 3))
        self.assertEqual((self.link(shown, 'spine', 'leaf0')['state'], self.link(shown, 'leaf0', 'h0')['state']), ('up', 'unknown'))
        said = page(shown)
        self.assertIn('no answer for 3 s', said)
        self.assertIn('<b class="bad">2 of 3</b> switches answer', said)

    def test_what_makes_no_sense_is_refused(self):
        for part_, answer in {'port.list': {'ports': 7}, 'status': {'uptime_s': 'yes'}, 'group.list': {'groups': 5}, 'drops.get': {'drops': [{}]}}.items():
            fake = self.fakes['leaf0']
            real = fake.answer
            fake.answer = lambda m, p, part_=part_, answer=answer, real=real: answer if m == part_ else real(m, p)
            with self.assertRaises((KeyError, TypeError, ValueError), msg=part_):
                Source().take(read_switch(fake.call, 1))
            fake.answer = real

    def test_a_read_has_a_bound(self):
        fake = self.fakes['spine']
        for i in range(300):
            fake.group(f'g{i}', [('leaf0', 'switch', [0], '10.77.255.2')])
        read_switch(fake.call, 1)
        self.assertEqual(fake.calls, MOST_CALLS)

    def test_refused_parts(self):
        """As over TCP: what is not told is not shown."""
        self.fakes['leaf0'].refuses = 'worker.list', 'queue.list'
        self.assertIsNone(self.switch(self.read(), 'leaf0')['busy_percent'])


class Pages(Seen):
    def parse(self, said):
        self.assertTrue(said.startswith('<!DOCTYPE html>'))
        return xml.fromstring(said.split('\n', 1)[1])

    def words(self, element):
        return ' '.join(''.join(element.itertext()).split())

    def test_page(self):
        tree_group(self.fakes)
        self.fakes['leaf0'].drops['ip_no_route'] = 0
        self.read()
        self.wait_for_h3(5)
        self.read()
        self.fakes['leaf0'].drops['ip_no_route'] = 4
        self.fakes['leaf1'].ports['h3'].update(tx_bytes=125000000)
        self.fakes['leaf1'].queues['h3'] = 20480
        shown = self.read()
        said = self.words(self.parse(page(shown)))
        for words in ('3 of 3 switches answer', '4 drops per second', '▼ 1 G', '20 KB', 'ip_no_route', 'help of ip_no_route',
                      'spine (leaf0 (h0 h1) leaf1 (h2 h3))', 'rank 3, h3 (leaf0 → spine → leaf1 → h3)', 'train waits', 'active, stuck',
                      'busy · rank 0'):
            self.assertIn(words, said)

    def test_text_from_elsewhere_is_text(self):
        """A group named <script>, and everything else of a switch's or the manager's, as it could never be."""
        for fake in self.fakes.values():
            fake.group(EVIL, [(p, 'host', [i], EVIL) for i, p in enumerate(fake.ports)], state=EVIL, mode=EVIL, kind=EVIL)
            fake.drops[EVIL] = 1
            fake.ports[EVIL] = dict(fake.ports['leaf0' if 'leaf0' in fake.ports else 'up'], link=EVIL)
            fake.queues[EVIL] = 5
        self.fakes['spine'].groups[EVIL]['row']['fail_reason'] = EVIL
        manager = Source()
        manager.take(read_manager(lambda _: [{'jobs': [{'job': EVIL, 'phase': EVIL, 'ranks': 2, 'switches': [EVIL], 'tenant': EVIL}]}], 1))
        self.read()
        self.sources['leaf1'].fail(EVIL, 2)
        shown = self.view(manager)
        for only in None, EVIL:
            said = page(shown, only)
            root = self.parse(said)
            main = root.find('.//main')
            tags = {e.tag.split('}')[-1] for e in main.iter()}
            self.assertLessEqual(tags, set('main div p span b a br small section h2 table thead tbody tr th td svg g rect line text title'.split()))
            self.assertFalse([k for e in main.iter() for k in e.attrib if k.startswith('on') or k == 'style'])
            self.assertFalse([e for e in main.iter('a') if not e.get('href').startswith('/')])
            self.assertIn(' '.join(EVIL.split()), self.words(main))
            self.assertIn(part(shown, only), said)
            self.assertEqual(said.count('<script'), 1)

    def test_chosen_group(self):
        for name in 'one', 'two':
            tree_group(self.fakes, name)
        shown = self.read()
        both, one = part(shown), part(shown, 'two')
        self.assertIn('strand c1', both)
        self.assertNotIn('strand c1', one)
        self.assertIn('two: its tree', one)
        self.assertNotIn('one: its tree', one)
        self.assertNotIn('strand', part(shown, 'none such'))

    def test_many(self):
        """Rows and boxes have bounds, and what is left out is told."""
        for i in range(400):
            self.fakes['spine'].drops[f'reason{i}'] = 1
        said = part(self.read())
        self.assertEqual(said.count('help of reason'), 200)
        self.assertIn('and 200 more', said)
        hosts = [{'name': f'h{i}', 'ip': f'10.{i >> 8}.{i & 255}.1', 'switch': 's'} for i in range(400)]
        w = wiring({'name': 'wide', 'switches': [{'name': 's', 'ip': '10.255.0.1'}], 'hosts': hosts})
        self.assertIn('401 nodes: a picture has at most 300', part(view(w, {'s': Source()}, None, {}, 0, '')))

    def test_nothing_is_known_yet(self):
        said = self.words(self.parse(page(self.view())))
        for words in '0 of 3 switches answer', 'No switch has a group now.', 'has not answered yet':
            self.assertIn(words, said)


class Drawing(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual([number(v) for v in (None, 0, 0.25, 3.0, 42.3, 999.4, 1000, 12345, 1.5e9, 2e12)],
                         ['–', '0', '0.25', '3', '42.3', '999', '1 k', '12.3 k', '1.5 G', '2000 G'])
        self.assertEqual((number(0, 'b/s'), number(2.5e6, 'b/s')), ('0 b/s', '2.5 Mb/s'))
        self.assertEqual([number_bytes(v) for v in (0, 1023, 1024, 20480, 3 << 20)], ['0 B', '1023 B', '1 KB', '20 KB', '3 MB'])

    def test_boxes_do_not_touch(self):
        for topo in (Topology(TREE), Planes({'name': 'p', 'planes': {'count': 2, 't0': 2, 't1': 2, 'hosts': 4}})):
            w = of_topology(topo, FOLDER)
            at = Layout(w.nodes, w.links).at
            for n in w.nodes:
                for m in w.nodes:
                    if n['name'] < m['name'] and n['tier'] == m['tier']:
                        self.assertGreater(abs(at[n['name']][0] - at[m['name']][0]), 92, (n['name'], m['name']))
        at = Layout(wiring().nodes, wiring().links).at
        self.assertEqual(at['leaf0'][0], (at['h0'][0] + at['h1'][0]) / 2)


if __name__ == '__main__':
    unittest.main()
