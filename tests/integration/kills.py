#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whatever is killed, nothing is left, with real processes: tests/integration/kills.py [KILLS [SEED]]

Two jobs on a Clos of four switches with cables of the kernel between them (as root), two managers on an etcd of three; the
policy is temporal, and one of the jobs has memory of switches by turns. One after the other something dies by SIGKILL, at
any moment of the jobs' lives: a rank, rank 0, a switch with its agent, the manager that leads, a member of etcd; or a link
goes down. It comes back some time later. Or a rank, or the manager that leads, is stopped for 4 to 8 s, and goes on; or a
switch's agent is cut off from managers and ranks for as long, and nothing that is said to it is lost. Ranks are begun again
when they end, as a service manager does it with managers. Then all ranks are killed, and lists of groups and leases and the
memory of every switch have to become as they were before: nobody here takes anything away. Jobs that it does not concern
keep their epochs, and on every switch the very same groups; one whose rank is stopped may do so or be set up anew.

Times are printed beside their bounds in docs/manager.md, which hold on virtual time (manager-kills); how a machine shares
its processors decides nothing here."""
import ctypes
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, 'tools'))
from etcd import Rank as Peer, free_ports  # noqa: E402
from incline_clos import Clos, ClosLab  # noqa: E402
from incline_fabric import LabError  # noqa: E402
from incline_lab import build_dir, write_json  # noqa: E402
from incline_netns import NetnsError, ip, why_not  # noqa: E402
from incline_processes import end_on_signals  # noqa: E402

KINDS = 'rank 0', 'link', 'manager', 'rank', 'switch', 'etcd member', 'manager stopped', 'rank stopped', \
    'agent cut off'
COLUMNS = 'seen', 'told', 'collected'
NO_BOUND = None, None, None
MEMBERS, MANAGERS, JOBS = 3, 2, 2
STEP_S, PATIENCE_S, PAUSE_S = 0.02, 120, 0.2
CLONE_NEWNET = 0x40000000
QUIET_S = 6  # who is not heard of within five heartbeats of a manager's start is lost


class Left(Exception):
    """What should have gone, or should not."""


def bounds():
    """{who dies: (ms of seen, told, collected)}, of which the page is the home."""
    with open(os.path.join(TOP, 'docs/manager.md')) as f:
        page = f.read()
    cell = r' +\d+ of +(\d+)'
    found = {k: re.search(rf'^    {k} +\d+ +\d+{cell * 3}$', page, re.M) for k in KINDS}
    out = {k: tuple(map(int, m.groups())) for k, m in found.items() if m}
    out['agent cut off'] = int(re.search(rf'^    agent cut off +\d+ +\d+{cell} ', page, re.M)[1]), None, None
    out['manager'] = (int(1000 * float(re.search(r'within ([\d.]+) s of the leader', page)[1])), None, None)
    return out


class Asked:
    """A control socket whose owner may die: None is no answer."""
    patience = 10  # seconds; of all: none while one is stopped

    def __init__(self, path):
        self.path, self.peer = path, None

    def ask(self, method, **params):
        try:
            if not self.peer:
                self.peer = Peer(self.path)
            self.peer.sock.settimeout(Asked.patience)
            return self.peer.ask(method, **params)
        except (OSError, ValueError, KeyError):
            self.close()
            return None

    def close(self):
        peer, self.peer = self.peer, None
        try:
            if peer:
                peer.close()
        except OSError:
            peer.sock.close()  # what was not sent cannot be


class Line(threading.Thread):
    """The network between a switch's control socket and whoever asks there: nobody listens when nobody does at the other
    end. While it is cut, what is said waits."""
    def __init__(self, path, switch):
        super().__init__(daemon=True)
        self.path, self.switch, self.cut, self.over = path, switch, False, False
        self.ears, self.other = None, {}

    def dial(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        try:
            s.connect(self.switch)
            return s
        except OSError:
            s.close()
            return None

    def listen(self):
        there = self.dial()
        if there:
            there.close()
            self.ears = socket.socket(socket.AF_UNIX)
            self.ears.bind(self.path)
            self.ears.listen(128)

    def deafen(self):
        ears, self.ears = self.ears, None
        if ears:
            os.unlink(self.path)
            ears.close()

    def accept(self):
        end, there = self.ears.accept()[0], self.dial()
        if there:
            self.other.update({end: there, there: end})
        else:
            end.close()
            self.deafen()

    def carry(self, end):
        try:
            text = end.recv(1 << 16)
            self.other[end].sendall(text)
        except OSError:
            text = b''
        if not text:
            for s in end, self.other[end]:
                del self.other[s]
                s.close()
            there = self.dial()
            if there:
                there.close()
            else:
                self.deafen()

    def run(self):
        while not self.over:
            if not self.ears:
                self.listen()
            ends = [*self.other, *([self.ears] if self.ears else [])]
            for end in select.select(ends if not self.cut else [], [], [], 0.02)[0]:
                if end is self.ears:
                    self.accept()
                elif end in self.other:
                    self.carry(end)
        self.deafen()


class CabledLab(ClosLab):
    """Between switches are cables of the kernel, for a memif's client does not connect again; managers are not the lab's."""
    def switch_config(self, clos, name):
        config = super().switch_config(clos, name)
        for port in config['ports']:
            if port['name'] in clos.switches:
                port.update(type='af_packet', iface=f"{name}.{port['name']}")
                del port['role'], port['socket']
        return config

    def start_manager(self, clos, state, config=None):
        pass


def lay_cables(clos):
    """In a network namespace of our own: with it they go. Their numbers are far apart, or ports of two switches meet
    (lib/port/README.md, af_packet)."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET):
        raise NetnsError('no network namespace is to be had')
    ends = [(f'{s}.{leaf}', f'{leaf}.{s}') for s in clos.spines for leaf in clos.leaves]
    ip(['link set lo up'])
    for i, (a, b) in enumerate(ends):
        ip([f'link add {a} index {(2 * i + 1) << 12} mtu 4200 type veth peer name {b} index {(2 * i + 2) << 12} mtu 4200',
            *(f'link set {end} addrgenmode none up' for end in (a, b))])


class World:
    """All processes, and what they say of themselves."""
    def __init__(self, directory):
        self.lab = CabledLab(directory)
        self.clos = Clos(leaves=2, spines=2, hosts=JOBS)
        self.state = None
        self.argv, self.env, self.procs, self.ended, self.away = {}, {}, {}, {}, set()
        self.cables = {f'{s}.{leaf}' for s in self.clos.spines for leaf in self.clos.leaves}
        self.switch = {s: Asked(self.lab.control_socket(s)) for s in self.clos.switches}
        self.line = {s: Line(self.lab.path(f'{s}.line'), self.lab.control_socket(s)) for s in self.clos.switches}
        self.manager = [Asked(self.lab.path(f'manager{i}.sock')) for i in range(MANAGERS)]

    def up(self):
        lay_cables(self.clos)
        self.state = self.lab.make_clos(self.clos)
        for line_to in self.line.values():
            line_to.start()
        ports = free_ports(2 * MEMBERS)
        client, peer = ([f'http://127.0.0.1:{p}' for p in ports[i::2]] for i in range(2))
        for i in range(MEMBERS):
            self.start(f'etcd{i}', ['etcd', '--name', f'm{i}', '--data-dir', self.lab.path(f'etcd{i}'), '--listen-client-urls',
                       client[i], '--advertise-client-urls', client[i], '--listen-peer-urls', peer[i],
                       '--initial-advertise-peer-urls', peer[i], '--initial-cluster',
                       ','.join(f'm{j}={p}' for j, p in enumerate(peer))])
        for i in range(MANAGERS):
            config = self.lab.manager_config(self.clos)
            config.update(listen=self.manager[i].path, store='etcd:' + ','.join(client) + '/kills', drain_ms=1000,
                          policy='temporal')
            for row in config['switches']:
                row['control'] = self.line[row['name']].path
            write_json(self.lab.path(f'manager{i}.json'), config)
            self.start(f'manager{i}', [os.path.join(build_dir(), 'apps/incline-manager'), '-c',
                                       self.lab.path(f'manager{i}.json')])
        for s in self.clos.switches:
            self.install_static(s)
        self.wait('all switches are known', self.all_up)

    def down(self):
        for p in self.procs.values():
            p.kill()
            p.wait()
        for line_to in self.line.values():
            line_to.over = True
        if self.state:
            self.lab.kill(self.state)

    def last_words(self):
        words = []
        for name in sorted(self.procs):
            with open(self.lab.path(f'{name}.log'), errors='replace') as f:
                words += [f'{name}: {text}' for text in f.read().splitlines()[-3:]]
        return '\n'.join(words)

    # ---- processes ----

    def start(self, name, argv, env=None):
        self.argv[name], self.env[name] = argv, env
        with open(self.lab.path(f'{name}.log'), 'a') as out:
            self.procs[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)

    def kill(self, name):
        """With all that it holds; it comes back when it is told to."""
        self.away.add(name)
        if name in self.clos.switches:
            self.lab.end(self.row(name))
            self.switch[name].close()
        elif name in self.cables:
            ip([f'link set {name} down'])
        else:
            self.procs[name].kill()
            self.procs[name].wait()

    def back(self, name):
        self.away.discard(name)
        if name in self.clos.switches:
            self.lab.run_switch(self.row(name), self.state)
            self.install_static(name)
        elif name in self.cables:
            ip([f'link set {name} up'])
        else:
            self.start(name, self.argv[name], self.env[name])

    def stop(self, name):
        """A process; or all that is said to a switch's agent."""
        if name in self.line:
            self.line[name].cut = True
        else:
            Asked.patience = 0.5
            self.procs[name].send_signal(signal.SIGSTOP)

    def go_on(self, name):
        if name in self.line:
            self.line[name].cut = False
        else:
            self.procs[name].send_signal(signal.SIGCONT)
            Asked.patience = 10

    def tend(self):
        """Who has ended by himself begins again."""
        now = time.monotonic()
        for name, p in list(self.procs.items()):
            if p.poll() is None or name in self.away:
                self.ended.pop(name, None)
            elif now >= self.ended.setdefault(name, now) + PAUSE_S:
                self.back(name)

    def row(self, switch):
        return next(r for r in self.state['switches'] if r['name'] == switch)

    def wait(self, what, done):
        deadline = time.monotonic() + PATIENCE_S
        while not (out := done()):
            if time.monotonic() > deadline:
                raise Left(f'{what}: not within {PATIENCE_S} s')
            self.tend()
            time.sleep(STEP_S)
        return out

    def answer(self, who, ask):
        """Waited for: None is none."""
        return self.wait(f'{who} answers', lambda: [out for out in [ask()] if out is not None])[0]

    # ---- jobs ----

    def rank(self, j, r):
        """A rank of a job on a leaf of its own, which never comes to an end. The first job has memory by turns."""
        hosts = [self.clos.hosts_of(leaf)[j] for leaf in self.clos.leaves]
        memory = {'duty': 500, 'fallback': True} if j == 0 else {'fallback': False}
        group = self.lab.group(f'job{j}', hosts, manager=','.join(m.path for m in self.manager), **memory)
        self.start(f'job{j}.{r}', [os.path.join(build_dir(), 'apps/incline-perf'), '--group', self.lab.path(group), '--rank',
                   str(r), '-b', '64K', '-e', '64K', '-n', '100000000'], self.lab.host_env(hosts[r]['name'], group))

    def ranks(self, j):
        return [f'job{j}.{r}' for r in range(len(self.clos.leaves))]

    # ---- what is ----

    def leader(self):
        """Its name's process, and the answerer."""
        for asked in self.manager:
            who = asked.ask('manager.who')
            if who:
                return next((n for n, p in self.procs.items() if who['name'].endswith(f':{p.pid}')), None), asked
        return None, None

    def ask(self, method, key):
        for asked in self.manager:
            out = asked.ask(method)
            if out is not None:
                return out[key]
        return None

    def nodes(self):
        return self.ask('topology.get', 'nodes')

    def all_up(self):
        return all(x['state'] == 'up' for what in ('nodes', 'links') for x in self.ask('topology.get', what) or [{'state': '?'}])

    def runs(self, j=None):
        """Of a job, or of all, the newest first; None: nobody leads."""
        rows = self.ask('job.list', 'jobs')
        return rows if rows is None or j is None else [r for r in rows if r['job'] == f'job{j}']

    def groups(self, switch):
        """None: it does not answer."""
        if switch in self.away:
            return []
        out = self.switch[switch].ask('group.list')
        return out and out['groups']

    def groups_of(self, j, switches):
        """{(switch, group, generation)} of a job."""
        return {(s, g['group'], g['generation']) for s in switches for g in self.answer(s, lambda at=s: self.groups(at))
                if g['name'].startswith(f'job{j}')}

    def lends(self, switch):
        """Memory to a manager's job, for a collective at a time."""
        rows = self.answer(switch, lambda: self.switch[switch].ask('lease.list'))
        return any(row['name'].startswith('manager-') and row['groups'] for row in rows['leases'])

    def install_static(self, switch):
        """Operators' own groups: nothing that dies here has anything to do with them."""
        ends = [{'ip': f'10.0.0.{i + 1}', 'qpn': i + 1, 'port': port, 'mac': f'02:00:00:00:00:0{i + 1}', 'host': True, 'ranks': [i]}
                for i, port in enumerate(self.clos.ports(switch)[:2])]
        for name, more in ('static', {}), ('shared', {'lease': 'pool'}):
            made = self.switch[switch].ask('group.create', name=name, mode='III', kind='mixed', mtu=1024, M=1, W=1, ranks=2,
                                           endpoints=ends, **more)
            if not made:
                raise Left(f'{switch}: group {name} is refused')

    def inventory(self, switch):
        """But for the places of what there is: a switch that starts anew gives others. None: it does not answer."""
        status, leases = self.switch[switch].ask('status'), self.switch[switch].ask('lease.list')
        groups = self.groups(switch)
        if None in (status, leases, groups):
            return None
        return [[{k: v for k, v in row.items() if k not in ('group', 'generation', 'offset')} for row in rows]
                for rows in (groups, leases['leases'])] + [status['arena_used_bytes']]

    def failures(self, rank):
        """How often it has told the reason of one."""
        with open(self.lab.path(f'{rank}.log'), errors='replace') as f:
            return len(re.findall('^incline-perf: ', f.read(), re.M))


class Kill:
    """One of them."""
    def __init__(self, world, number, seed):
        self.w, self.random = world, random.Random(f'{seed}.{number}')
        self.kind = KINDS[number % len(KINDS)]
        self.job = self.random.randrange(JOBS)
        self.after, self.pause = self.random.uniform(0, 4), self.random.uniform(0.2, 8)
        self.stops = self.kind in ('manager stopped', 'rank stopped', 'agent cut off')
        if self.stops:
            self.pause = 4 + self.pause / 2
        self.spine, self.leaf = self.random.choice(world.clos.spines), self.random.choice(world.clos.leaves)
        self.at = self.random.choice(world.clos.switches)
        self.victim, self.struck, self.returned, self.answered = None, 0, None, None
        self.hit, self.kept, self.either = {}, {}, []

    def aims_at_the_manager(self):
        return self.kind.startswith('manager')

    def aim(self, leader):
        if self.kind in ('rank 0', 'rank'):
            return self.w.ranks(self.job)[self.kind == 'rank']
        if self.kind == 'rank stopped':
            return self.random.choice(self.w.ranks(self.job))
        if self.kind == 'link':
            return f'{self.spine}.{self.leaf}'
        if self.kind in ('switch', 'agent cut off'):
            return self.at
        return leader if self.aims_at_the_manager() else f'etcd{self.random.randrange(MEMBERS)}'

    def concerns(self, j, run):
        if self.kind in ('rank 0', 'rank'):
            return j == self.job
        return {'link': self.spine, 'switch': self.at}.get(self.kind) in run['switches']

    def strike(self):
        self.victim = self.aim(self.w.wait('a manager leads', lambda: self.w.leader()[0]))
        for j in range(JOBS):
            run = next(iter(self.last_runs(j)), None)
            if not run or run['phase'] != 'active':
                continue
            if j == 0 and not any(self.w.lends(s) for s in run['switches']):
                raise Left(f'job0 should have memory by turns: {run}')
            if self.kind == 'rank stopped' and j == self.job:
                self.either.append(j)
                continue
            if not self.concerns(j, run):
                self.kept[j] = run['epoch'], run['switches'], self.w.groups_of(j, run['switches'])
                continue
            self.hit[j] = {'epoch': run['epoch'], 'ranks': {n: self.w.failures(n) for n in self.w.ranks(j) if n != self.victim},
                           'groups': self.w.groups_of(j, [s for s in run['switches'] if s != self.victim])}
        self.struck = time.monotonic()
        (self.w.stop if self.stops else self.w.kill)(self.victim)

    def last_runs(self, j):
        return self.w.answer('a manager', lambda: self.w.runs(j))

    def held(self, groups):
        """Which of these are there: all may be, if a switch does not answer."""
        rows = {s: self.w.groups(s) for s in {s for s, *_ in groups}}
        if None in rows.values():
            return groups
        return groups & {(s, g['group'], g['generation']) for s in rows for g in rows[s]}

    def note(self, where, what, yes):
        if yes:
            where.setdefault(what, (time.monotonic() - self.struck) * 1000)

    def look(self):
        runs = self.w.runs()
        if runs is not None and self.answered is None and (self.kind != 'agent cut off' or self.is_missed()):
            self.answered = (time.monotonic() - self.struck) * 1000
        for j, h in self.hit.items():
            mine = [r for r in runs or () if r['job'] == f'job{j}']
            self.note(h, 'seen', runs is not None and
                      all(r['phase'] in ('over', 'ring') for r in mine if r['epoch'] == h['epoch']))
            self.note(h, 'told', 'told' in h or all(self.w.failures(n) > before for n, before in h['ranks'].items()))
            self.note(h, 'collected', 'collected' in h or not self.held(h['groups']))
            self.note(h, 'again', any(r['epoch'] != h['epoch'] and self.works(j, r) for r in mine))

    def is_missed(self):
        return any(n['name'] == self.at and n['state'] == 'down' for n in self.w.nodes() or ())

    def works(self, j, run):
        """Memory by turns needs "fallback": who joins while something is away may have the ring for good."""
        return run['phase'] == 'active' or j == 0 and run['phase'] == 'ring'

    def is_over(self):
        self.look()
        if self.returned is None and time.monotonic() >= self.struck + self.pause:
            (self.w.go_on if self.stops else self.w.back)(self.victim)
            self.returned = time.monotonic()
        return (self.returned is not None and self.answered is not None and
                (self.kind in ('rank 0', 'rank', 'link', 'switch') or time.monotonic() > self.returned + QUIET_S) and
                all({*COLUMNS, 'again'} <= set(h) for h in self.hit.values()) and
                all(self.works(j, run) for j in self.either for run in self.last_runs(j)[:1]))

    def keep(self):
        for j, (epoch, switches, groups) in self.kept.items():
            run = next(iter(self.last_runs(j)), {})
            if run.get('epoch') != epoch or run['phase'] != 'active':
                raise Left(f'job{j} had nothing to do with it; its epoch was {epoch}, and now there is {run}')
            now = self.w.groups_of(j, switches)
            if not groups or now != groups:
                raise Left(f'job{j} had nothing to do with it; it had groups {groups}, and now there are {now}')

    def run(self):
        before = {s: self.w.answer(s, lambda at=s: self.w.inventory(at)) for s in self.w.clos.switches}
        for j in range(JOBS):
            for r in range(len(self.w.clos.leaves)):
                self.w.rank(j, r)
        if self.stops:  # what goes on afterwards has to be there before
            self.w.wait('all jobs are active', lambda: all(r['phase'] == 'active' for j in range(JOBS)
                                                           for r in self.last_runs(j)[:1] or [{'phase': '?'}]))
        begun = time.monotonic()
        self.w.wait('the moment', lambda: time.monotonic() >= begun + self.after)
        self.strike()
        try:
            self.w.wait(f'{self.victim} is got over', self.is_over)
        except Left as e:
            raise Left(f'{e}: answered {self.answered}, {self.hit}, {self.w.runs()}') from None
        self.keep()
        for j in range(JOBS):
            for name in self.w.ranks(j):
                self.w.kill(name)
        self.w.wait('all is up again', self.w.all_up)
        for s in self.w.clos.switches:
            try:
                self.w.wait(f'nothing is left on {s}', lambda: self.same(s, before[s]))
            except Left as e:
                raise Left(f'{e}: there was {before[s]}, and there is {self.now}') from None
        self.w.wait('nothing is promised', lambda: (nodes := self.w.nodes()) and not any(n.get('promised_bytes') for n in nodes))
        self.w.away -= {n for j in range(JOBS) for n in self.w.ranks(j)}
        for j in range(JOBS):
            for name in self.w.ranks(j):
                del self.w.procs[name]

    def same(self, switch, before):
        self.now = self.w.inventory(switch)
        return self.now == before

    def rows(self):
        """(column: ms) of each job that was hit; of a manager, when somebody answers; of an agent, when it is missed."""
        alone = self.aims_at_the_manager() or self.kind == 'agent cut off'
        return list(self.hit.values()) or ([{'seen': self.answered}] if alone else [])


def cell(ms, bound):
    return f'{ms:.0f} of {bound}' if ms is not None and bound else '-'


def table(kills, bound):
    print(f"{'dies':16} {'runs':>5} {'jobs':>5} {'seen (ms)':>15} {'told':>15} {'collected':>15} {'active again':>15}")
    for kind in KINDS:
        done = [k for k in kills if k.kind == kind]
        rows = [r for k in done for r in k.rows()]
        worst = [max((r[c] for r in rows if c in r), default=None) for c in (*COLUMNS, 'again')]
        print(f'{kind:16} {len(done):5} {sum(len(k.hit) for k in done):5} ' +
              ' '.join(f'{cell(w, b):>15}' for w, b in zip(worst, bound.get(kind, NO_BOUND))) +
              (f' {worst[3]:15.0f}' if worst[3] else f" {'-':>15}"))


def line(kill, limits):
    times = [', '.join(f'{c} {cell(r.get(c), b)}' for c, b in zip(COLUMNS, limits) if b) +
             (f", active again {r['again']:.0f}" if 'again' in r else '') for r in kill.rows()]
    return (f"{kill.kind}: {kill.victim}, {kill.after:.1f} s after the jobs {'were active' if kill.stops else 'began'}: " +
            '; '.join([*filter(None, times), f'{len(kill.kept)} active jobs kept what they had']))


def run(world, count, seed):
    bound, kills = bounds(), []
    world.up()
    for number in range(count):
        kills.append(Kill(world, number, seed))
        try:
            kills[-1].run()
        except (Left, LabError, NetnsError) as e:
            raise Left(f'kill {number + 1}, {kills[-1].victim}: {e}') from None
        print(f'{number + 1}/{count}: ' + line(kills[-1], bound.get(kills[-1].kind, NO_BOUND)), flush=True)
    table(kills, bound)


def main(count=40, seed=1):
    if why_not():
        print(why_not())
        return 77
    # In memory: etcd writes each step through to the disk, which may be busy with something else.
    directory = tempfile.mkdtemp(prefix='incline-', dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None)
    world = World(directory)
    end_on_signals()
    print(f'{count} kills, seed {seed}', flush=True)
    try:
        run(world, count, seed)
        print(f'{count} kills, seed {seed}: nothing was left')
        return 0
    except (Left, LabError, NetnsError) as e:
        print(f'{e}\n{world.last_words()}\nseed {seed}')
        return 1
    finally:
        world.down()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main(*map(int, sys.argv[1:3])))
