# SPDX-License-Identifier: BSD-3-Clause
"""A two-level Clos on this machine: every leaf has a link to every spine, and nobody writes a tree down; a manager
(incline-manager) finds one for each job. tools/demo --manager and tests/integration/managed.py use it."""
import json
import os
import signal
import subprocess
import time

from incline_fabric import LabError
from incline_lab import TOP, Lab, build_dir, preloadable, write_json


def mac(kind, node, port):
    return f'02:00:{kind:02x}:{node:02x}:00:{port:02x}'


class Clos:
    """Names, addresses and cables. Ports are named for what is behind them."""
    def __init__(self, leaves=2, spines=3, hosts=3):
        self.leaves = [f'leaf{i}' for i in range(leaves)]
        self.spines = [f'spine{i}' for i in range(spines)]
        self.hosts = [{'name': f'h{i}{k}', 'leaf': f'leaf{i}', 'ip': f'10.77.{i}.{10 + k}', 'mac': mac(3, i, k)}
                      for i in range(leaves) for k in range(hosts)]
        self.switches = self.leaves + self.spines
        self.ip = {s: f'10.77.255.{i + 1}' for i, s in enumerate(self.switches)}

    def hosts_of(self, leaf):
        return [h for h in self.hosts if h['leaf'] == leaf]

    def ports(self, switch):
        if switch in self.spines:
            return list(self.leaves)
        return self.spines + [h['name'] for h in self.hosts_of(switch)]

    def port_mac(self, switch, port):
        return mac(1, self.switches.index(switch), self.ports(switch).index(port))

    def tables(self, switch):
        """Neighbours are what is cabled; hosts elsewhere are behind a leaf, or any spine."""
        neigh = [(self.ip[p], p, self.port_mac(p, switch)) for p in self.ports(switch) if p in self.ip]
        neigh += [(h['ip'], h['name'], h['mac']) for h in self.hosts_of(switch)]
        far = [(h['ip'], self.ip[h['leaf'] if switch in self.spines else self.spines[0]])
               for h in self.hosts if h['leaf'] != switch]
        return {'neigh': [{'key': {'ip': ip}, 'action': 'rewrite', 'data': {'port': port, 'mac': m}}
                          for ip, port, m in neigh],
                'route4': [{'key': {'dst': f'{ip}/32'}, 'action': 'via', 'data': {'nexthop': via}} for ip, via in far]}


class ClosLab(Lab):
    def link(self, upper, lower):
        return self.path(f'{upper}-{lower}.sock')

    def switch_config(self, clos, name):
        ports = []
        for port in clos.ports(name):
            up = port in clos.spines
            ports.append({'name': port, 'type': 'memif', 'role': 'client' if up else 'server', 'proxy_arp': True,
                          'mtu': 4200, 'mac': clos.port_mac(name, port),
                          'socket': self.link(*((port, name) if up else (name, port)))})
        return {'name': name, 'addresses': [clos.ip[name]], 'ports': ports, 'idle': 'sleep', 'arena_kb': 16384,
                'lldp': True, 'control': self.control_socket(name), 'tables': clos.tables(name)}

    def rnic_config(self, host):
        return {'mac': host['mac'], 'ip': [host['ip']], 'mtu': 4200, 'idle': 'sleep', 'lldp': True, 'host': host['name'],
                'port': {'name': host['name'], 'type': 'memif', 'role': 'client', 'mtu': 4200,
                         'socket': self.link(host['leaf'], host['name'])}}

    def manager_config(self, clos):
        cables = [(s, leaf, leaf, s) for s in clos.spines for leaf in clos.leaves]
        links = [{'a': a, 'a_port': ap, 'b': b, 'b_port': bp, 'mbps': 10000} for a, ap, b, bp in cables]
        links += [{'a': h['leaf'], 'a_port': h['name'], 'b': h['name'], 'mbps': 10000} for h in clos.hosts]
        return {'listen': self.path('manager.sock'), 'store': self.path('manager.db'), 'hop_ns': 20000,
                'switches': [{'name': s, 'control': self.control_socket(s), 'ip': clos.ip[s]} for s in clos.switches],
                'hosts': [{'name': h['name'], 'ip': h['ip']} for h in clos.hosts], 'links': links}

    def group(self, name, hosts, **more):
        """A group file without switches; its path."""
        write_json(self.path(f'{name}.group'),
                   {'name': name, 'bootstrap': 'unix:' + self.path(f'{name}.boot'), 'timeout_ms': 10000, 'mtu': 4096,
                    'manager': self.path('manager.sock'), 'ranks': [{'ip': h['ip']} for h in hosts], **more})
        return f'{name}.group'

    def make_clos(self, clos):
        os.makedirs(self.dir, mode=0o700, exist_ok=True)
        state = {'name': 'clos', 'build': build_dir(), 'switches': [], 'hosts': [], 'keepers': [],
                 'shim': preloadable(os.path.join(build_dir(), 'lib/verbs/libincline_verbs.so'), self.dir)}
        for h in clos.hosts:
            write_json(self.path(f"{h['name']}.json"), self.rnic_config(h))
            state['hosts'].append({'name': h['name'], 'ip': h['ip'], 'switch': h['leaf'], 'rank': 0, 'nic': 'incline',
                                   'ports': [h['name']]})
        write_json(self.path('lab.json'), state)
        try:
            for name in clos.spines + clos.leaves:  # spines are the servers of their links
                row = {'name': name, 'ip': clos.ip[name]}
                state['switches'].append(row)
                self.start_clos_switch(clos, row, state)
            self.start_manager(clos, state)
        except BaseException:
            self.kill(state)
            raise
        return state

    def start_clos_switch(self, clos, row, state):
        write_json(self.path(f"{row['name']}.json"), self.switch_config(clos, row['name']))
        self.start_process(row, [os.path.join(build_dir(), 'apps/incline-switch'), '-c',
                                 self.path(f"{row['name']}.json")], state)

    def start_manager(self, clos, state, config=None):
        row = {'name': 'manager'}
        state['keepers'] = [row]
        write_json(self.path('manager.json'), config or self.manager_config(clos))
        self.start_process(row, [os.path.join(build_dir(), 'apps/incline-manager'), '-c', self.path('manager.json')],
                           state)

    def ctl(self, socket, *words):
        """What inclinectl says, as JSON."""
        out = subprocess.run([os.path.join(build_dir(), 'apps/inclinectl'), '-s', self.path(socket), '-j', *words],
                             capture_output=True, text=True, timeout=20)
        if out.returncode:
            raise LabError(out.stderr.strip())
        return json.loads(out.stdout)


PATIENCE = 120  # seconds, for anything on a crowded machine


class Jobs:
    """Trainings of two ranks each, on different leaves, all at once; one spine dies under one of them."""
    def __init__(self, lab, clos, state, epochs):
        self.lab, self.clos, self.state, self.epochs = lab, clos, state, epochs
        self.names = [f'job{j}' for j in range(len(clos.hosts_of(clos.leaves[0])))]
        self.procs = {}

    def start(self, name):
        j = self.names.index(name)
        hosts = [self.clos.hosts_of(leaf)[j] for leaf in self.clos.leaves]
        group = self.lab.group(name, hosts, flags={'reproducible': True}, fallback=False)
        self.procs[name] = []
        for rank, h in enumerate(hosts):
            argv = [os.path.join(build_dir(), 'apps/incline-train'), '--group', self.lab.path(group), '--rank', str(rank),
                    '--epochs', str(self.epochs), '--again', '20', '--json', self.lab.path(f'{name}.out'),
                    '--data', os.path.join(TOP, 'tests/data/digits.csv.gz')]
            with open(self.lab.path(f'{name}-{rank}.log'), 'w') as out:
                self.procs[name].append(self.lab.popen(h['name'], argv, group, stdout=out, stderr=out))

    def said(self, name, rank=0):
        with open(self.lab.path(f'{name}-{rank}.log')) as f:
            return f.read()

    def wait(self, what, done):
        deadline = time.monotonic() + PATIENCE
        while not done():
            dead = [n for n, ps in self.procs.items() if any(p.poll() not in (None, 0) for p in ps)]
            if dead or time.monotonic() > deadline:
                raise LabError(f'{what}: ' + (f'{dead[0]} ended' if dead else 'not in time') + '\n' +
                               ''.join(self.said(n, r) for n in dead[:1] for r in (0, 1)))
            time.sleep(0.05)

    def row(self, name):
        rows = [r for r in self.lab.ctl('manager.sock', 'job', 'list')['jobs'] if r['job'] == name]
        return rows[0] if rows else {}

    def moved(self, name, epoch):
        """The job is active in another run, or has come to its end there."""
        ended = all(p.poll() == 0 for p in self.procs[name])
        row = self.row(name)
        return row.get('epoch', epoch) != epoch and (row['phase'] == 'active' or row['phase'] == 'over' and ended)

    def explain(self, name):
        return self.lab.ctl('manager.sock', 'job', 'explain', name)['line']

    def run(self, say=print, hang_s=0):
        """hang_s: so long the spine takes nothing more before it dies, and what is sent to it lies in its rings."""
        for name in self.names:  # one after the other: each finds the spine that has least to do
            self.start(name)
            self.wait(name, lambda: self.row(name).get('phase') == 'active')
        before = {n: self.row(n) for n in self.names}
        for name in self.names:
            say(self.explain(name))
        self.wait('training', lambda: all('epoch   2' in self.said(n) for n in self.names))
        victim = min(self.names, key=lambda n: before[n]['switches'][0])  # leaves' first uplink is the zero-copy one
        spine = before[victim]['switches'][0]
        say(f'killing {spine}, the root of {victim}')
        row = next(s for s in self.state['switches'] if s['name'] == spine)
        if hang_s:
            self.lab.signal(row, signal.SIGSTOP)
            time.sleep(hang_s)
        self.lab.signal(row, signal.SIGKILL)
        # A run on the way there may be over before it is active: it counts only as the last.
        self.wait('another tree', lambda: self.moved(victim, before[victim]['epoch']))
        for name in self.names:
            say(self.explain(name))
        after = {n: self.row(n) for n in self.names}
        self.wait('the end', lambda: all(p.poll() == 0 for ps in self.procs.values() for p in ps))
        return [self.result(n, before[n], after[n], n == victim) for n in self.names]

    def result(self, name, before, after, hit):
        with open(self.lab.path(f'{name}.out')) as f:
            t = json.load(f)['training']
        moved = before['epoch'] != after['epoch']
        return {'name': name, 'hit': hit, 'replaced': moved and before['switches'] != after['switches'],
                'noticed': t['rejoined'] > 0 or moved, 'exact': t['max_weight_diff'] == 0 and t['ranks_agree'],
                'accuracy': t['accuracy'], 'before': before['switches'], 'after': after['switches']}

    def nothing_left(self):
        """Tables and memory of every switch that lives, as before the first job."""
        deadline = time.monotonic() + PATIENCE
        for s in self.clos.switches:
            row = next(r for r in self.state['switches'] if r['name'] == s)
            while self.lab.alive(row):
                hello = self.lab.ctl(f'{s}.ctl', 'node')
                if hello['arena_used_bytes'] == 0 and hello['groups'] == 0:
                    break
                if time.monotonic() > deadline:
                    raise LabError(f"{s} has {hello['groups']} groups and {hello['arena_used_bytes']} bytes left")
                time.sleep(0.1)
        while any(n.get('promised_bytes', 0) for n in self.lab.ctl('manager.sock', 'topology')['nodes'] if n['state'] == 'up'):
            if time.monotonic() > deadline:  # the manager hears of it a little later
                return False
            time.sleep(0.1)
        return True

    def kill(self):
        for ps in self.procs.values():
            for p in ps:
                if p.poll() is None:
                    p.kill()
                p.wait()
