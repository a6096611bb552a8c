#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench srv6: forwarding by micro-segments (uN) with tables of 1 000 and 100 000 routes, beside dpdk-testpmd's MAC
forwarding, which looks nothing up, and Open vSwitch-DPDK, which does what uN does by OpenFlow rules. Then the switch's
other SRv6 work, by node of its graph.

All receive the same frames of 128 bytes over and over from a net_pcap device (infinite_rx), which copies each into a
buffer, and send to one that frees them; one worker each, on the same CPU. They take turns in one run: whoever is not
measured is stopped. A rate is packets per second of CPU time. The ratio is that of each round, its median and its spread are printed.

  tools/bench srv6 [--quick] [--json FILE] [--install]
  tools/bench srv6 --count [--json FILE]

dpdk-testpmd is in Debian's dpdk-dev, Open vSwitch in openvswitch-switch-dpdk; what is not installed is left out, which
the output says. --install fetches the packages (4 of 5 MB in all) into a folder of this run, and leaves the system as it is.

--count: instructions per packet instead, of the switch alone and of each node of its graph, between ring ports (bench-srv6
under callgrind): the same whatever else the machine does. The difference of a short run and a longer one."""
import argparse
import glob
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('INCLINE_BUILD', os.path.join(TOP, 'build'))
LIMIT = 120  # seconds: hangs only
FRAMES, ROUTES = 4096, (1000, 100000)
COUNTED, BURSTS, BURST = (10, 1000, 100000), (20, 100), 32
NODES = ('port_rx', 'parse', 'ip_forward', 'srv6_local', 'rewrite', 'port_tx')
OWN, MACS = 0x1000, ('02:00:00:00:f0:00', '02:00:00:00:f0:01', '02:00:00:00:00:01')
PACKAGES = ('dpdk-dev', 'openvswitch-common', 'openvswitch-switch', 'openvswitch-switch-dpdk')
BUSY = 0.05  # share of the CPUs that others have used, from which on it is said


def ip6(text):
    return socket.inet_pton(socket.AF_INET6, text)


def header(dst, nxt, payload, src='fd77::aa'):
    return struct.pack('>IHBB', 0x60000000, len(payload), nxt, 64) + ip6(src) + ip6(dst) + payload


def pair(route):
    """The two uSIDs that name a route."""
    return f'{0x2000 + route // 256:x}:{1 + route % 256:x}'


def frame(kind, route):
    """128 bytes, of which the outermost address is of the kind under test."""
    inner = header('fd99::2', 17, bytes(34))
    if kind == 'route':
        packet = header(f'fcbb:bb00:{pair(route)}::', 41, inner)
    elif kind == 'encap':
        packet = header('fd40::7', 59, bytes(74))
    elif kind == 'end':
        packet = header('fd77::e', 43, struct.pack('>BBBBI', 59, 2, 4, 1, 0) + ip6(f'fcbb:bb00:{pair(route)}::') + bytes(50))
    elif kind == 'dt46':
        packet = header('fcbb:bb00:d001::', 41, header(f'fcbb:bb00:{pair(route)}::', 59, bytes(34)))
    else:
        packet = header(f"fcbb:bb00:{OWN if kind == 'un' else 0xe001:x}:{pair(route)}::", 41, inner)
    mac = [bytes.fromhex(m.replace(':', '')) for m in MACS]
    return mac[0] + mac[2] + b'\x86\xdd' + packet


def write_pcap(path, frames):
    with open(path, 'wb') as f:
        f.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for b in frames:
            f.write(struct.pack('<IIII', 0, 0, len(b), len(b)) + b)


class Runner:
    """A program of its own that forwards; stopped unless it is measured."""
    process = None

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def close(self):
        if self.process and self.process.poll() is None:
            self.resume()
            self.process.terminate()
            try:
                self.process.wait(LIMIT / 4)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def rate(self, seconds):
        """Packets that it has sent per second of CPU time, so that others' share of the CPU says nothing."""
        self.resume()
        time.sleep(seconds / 4)
        begin, first = run_time(self.process), self.sent()
        time.sleep(seconds)
        end, last = run_time(self.process), self.sent()
        self.pause()
        return (last - first) / max(end - begin, 1e-9)


class Incline(Runner):
    def __init__(self, directory, cpus, kind, routes):
        self.name = 'incline'
        self.socket = os.path.join(directory, f'{kind}{routes}.ctl')
        source, one = (os.path.join(directory, f) for f in (f'{kind}{routes}.pcap', 'one.pcap'))
        via = {'action': 'via', 'data': {'nexthop': 'fd77::a'}}
        rows = [{'key': {'dst': f'fcbb:bb00:{pair(i)}::/64'}, **via} for i in range(routes)]
        rows.append({'key': {'dst': 'fd40::/16'}, 'action': 'encap', 'data': {'src': 'fd77::1', 'sid1': f'fcbb:bb00:{pair(0)}:1::'}})
        config = {'name': 'bench', 'addresses': ['fd77::1'], 'control': self.socket, 'idle': 'spin', 'memory_mb': 768,
                  'arena_kb': 64, 'lcores': f'0@{cpus[0]},1@{cpus[1]}',
                  'ports': [{'name': n, 'type': 'vdev', 'mtu': 1500, 'mac': MACS[i], 'args': f'net_pcap{i},rx_pcap={p}'}
                            for i, (n, p) in enumerate((('in', source + ',infinite_rx=1'), ('out', one)))],
                  'tables': {'neigh': [{'key': {'ip': 'fd77::a'}, 'action': 'rewrite', 'data': {'port': 'out', 'mac': MACS[2]}}],
                             'local_sid': [{'key': {'sid': f'fcbb:bb00:{OWN:x}::/48'}, 'action': 'un'},
                                           {'key': {'sid': 'fcbb:bb00:e001::/48'}, 'action': 'ua', 'data': {'nexthop': 'fd77::a'}},
                                           {'key': {'sid': 'fd77::e/128'}, 'action': 'end'},
                                           {'key': {'sid': 'fcbb:bb00:d001::/48'}, 'action': 'dt46'}],
                             'route6': rows}}
        path = os.path.join(directory, f'{kind}{routes}.json')
        with open(path, 'w', encoding='utf-8') as f:
            json.dump(config, f)
        with open(path + '.log', 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen([os.path.join(BUILD, 'apps/incline-switch'), '-c', path], stdout=log, stderr=log)
        deadline = time.monotonic() + LIMIT
        while ' ready' not in open(path + '.log', encoding='utf-8').read():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise OSError(open(path + '.log', encoding='utf-8').read())
            time.sleep(0.05)

    def ask(self, *words):
        return json.loads(subprocess.run([os.path.join(BUILD, 'apps/inclinectl'), '-s', self.socket, '--json', *words],
                                         check=True, capture_output=True, timeout=LIMIT).stdout)

    def sent(self):
        return next(p['tx_packets'] for p in self.ask('ports')['ports'] if p['name'] == 'out')

    def nodes(self):
        return {n['node']: n for n in self.ask('stats', 'nodes')['nodes']}


class Testpmd(Runner):
    name = 'testpmd'

    def __init__(self, program, directory, cpus, routes):
        pcaps = [os.path.join(directory, f) for f in (f'un{routes}.pcap,infinite_rx=1', 'one.pcap')]
        argv = ['stdbuf', '-oL', program, '--lcores', f'0@{cpus[0]},1@{cpus[1]}', '--no-huge', '-m', '512', '--no-pci', '--file-prefix',
                f'bench{os.getpid()}', *[f'--vdev=net_pcap{i},rx_pcap={p}' for i, p in enumerate(pcaps)], '--', '-i',
                '--forward-mode=mac', '--nb-cores=1', '--total-num-mbufs=32768', '--no-flush-rx']
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.command('start')
        self.sent()

    def command(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()

    def sent(self):
        self.command('show port stats 1')
        while True:
            line = self.process.stdout.readline()
            match = re.search(r'TX-packets: (\d+)', line)
            if match:
                return int(match[1])
            if not line:
                raise OSError('dpdk-testpmd has ended')


class Ovs(Runner):
    name = 'ovs-dpdk'

    def __init__(self, root, directory, cpus, routes):
        self.root, self.dir = root, os.path.join(directory, f'ovs{routes}')
        os.makedirs(self.dir)
        self.env = {**os.environ, **{f'OVS_{k}DIR': self.dir for k in ('RUN', 'LOG', 'DB', 'SYSCONF')}}
        db = os.path.join(self.dir, 'conf.db')
        self.run('bin/ovsdb-tool', 'create', db, os.path.join(root, 'usr/share/openvswitch/vswitch.ovsschema'))
        self.database = self.start('sbin/ovsdb-server', db, f'--remote=punix:{self.dir}/db.sock')
        try:
            self.begin(directory, cpus, routes)
        except BaseException:
            self.close()
            raise

    def begin(self, directory, cpus, routes):
        self.until(os.path.join(self.dir, 'db.sock'))
        self.set('init')
        # Without --legacy-mem it adds --in-memory, which wants huge pages.
        self.set('set', 'Open_vSwitch', '.', 'other_config:dpdk-init=true',
                 f'other_config:dpdk-extra=--no-huge --legacy-mem -m 1024 --no-pci --file-prefix ovs{os.getpid()}-{routes}',
                 f'other_config:pmd-cpu-mask={1 << cpus[1]:x}', f'other_config:dpdk-lcore-mask={1 << cpus[0]:x}')
        self.process = self.start('lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk', f'unix:{self.dir}/db.sock')
        self.set('add-br', 'br0', '--', 'set', 'bridge', 'br0', 'datapath_type=netdev', wait=True)
        for i, (name, pcap) in enumerate((('in', f'un{routes}.pcap,infinite_rx=1'), ('out', 'one.pcap'))):
            path = os.path.join(directory, pcap)
            self.set('add-port', 'br0', name, '--', 'set', 'Interface', name, 'type=dpdk', f'ofport_request={i + 1}',
                     f'options:dpdk-devargs=net_pcap{i},rx_pcap={path}', wait=True)
        self.run('bin/ovs-ofctl', 'add-flows', f'unix:{self.dir}/br0.mgmt', '-', input=self.flows(routes))

    @staticmethod
    def flows(routes):
        """The shift, then a route, as uN does them."""
        rows = [f'table=0,ipv6,ipv6_dst=fcbb:bb00:{OWN:x}::/48,actions=move:NXM_NX_IPV6_DST[0..79]->NXM_NX_IPV6_DST[16..95],'
                'load:0->NXM_NX_IPV6_DST[0..15],dec_ttl,resubmit(,1)']
        rows += [f'table=1,ipv6,ipv6_dst=fcbb:bb00:{pair(i)}::/64,actions=mod_dl_src:{MACS[1]},mod_dl_dst:{MACS[2]},output:2'
                 for i in range(routes)]
        return '\n'.join(['table=0,priority=0,actions=drop'] + rows) + '\n'

    def start(self, program, *args):
        with open(os.path.join(self.dir, os.path.basename(program) + '.log'), 'w', encoding='utf-8') as log:
            return subprocess.Popen([os.path.join(self.root, 'usr', program), *args, f'--unixctl={self.dir}/{os.path.basename(program)}.ctl'],
                                    env=self.env, stdout=log, stderr=log)

    def run(self, program, *args, **more):
        return subprocess.run([os.path.join(self.root, 'usr', program), *args], check=True, env=self.env, capture_output=True,
                              text=True, timeout=LIMIT, **more).stdout

    def set(self, *words, wait=False):
        self.run('bin/ovs-vsctl', f'--db=unix:{self.dir}/db.sock', '-t', str(LIMIT), *([] if wait else ['--no-wait']), *words)

    @staticmethod
    def until(path):
        deadline = time.monotonic() + LIMIT
        while not os.path.exists(path):
            if time.monotonic() > deadline:
                raise OSError(f'{path} does not appear')
            time.sleep(0.02)

    def sent(self):
        text = self.run('bin/ovs-ofctl', 'dump-ports', f'unix:{self.dir}/br0.mgmt', 'out')
        return int(re.search(r'tx pkts=(\d+)', text)[1])

    def close(self):
        super().close()
        self.database.terminate()
        self.database.wait(LIMIT)


def install(directory):
    """The packages' files in a folder of this run."""
    subprocess.run(['apt-get', 'download', *PACKAGES], cwd=directory, check=True, capture_output=True, timeout=LIMIT)
    for deb in glob.glob(os.path.join(directory, '*.deb')):
        subprocess.run(['dpkg', '-x', deb, os.path.join(directory, 'root')], check=True, timeout=LIMIT)
    return os.path.join(directory, 'root')


def ticks():
    """(all, idle) of this machine's CPUs, and what this process' children that still run, and have ended, have used."""
    with open('/proc/stat', encoding='utf-8') as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return sum(v), v[3] + v[4]


def used(process):
    with open(f'/proc/{process.pid}/stat', encoding='utf-8') as f:
        v = f.read().rsplit(')', 1)[1].split()
    return int(v[11]) + int(v[12])


def run_time(process):
    """Seconds for which the threads of a process have run."""
    total = 0
    for path in glob.glob(f'/proc/{process.pid}/task/*/schedstat'):
        with open(path, encoding='utf-8') as f:
            total += int(f.read().split()[0])
    return total / 1e9


def others(runners, before):
    """The share of the CPUs that none of our programs used since."""
    (total, idle), mine = ticks(), sum(used(r.process) for r in runners)
    return max(0.0, (total - before[0][0] - (idle - before[0][1]) - (mine - before[1])) / max(1, total - before[0][0]))


def measure(runners, rounds, seconds):
    """Rates of each, round by round, in turns."""
    before = ticks(), sum(used(r.process) for r in runners)
    rates = [[r.rate(seconds) for r in runners] for _ in range(rounds)]
    return [list(column) for column in zip(*rates)], others(runners, before)


def spread(values):
    return {'median': statistics.median(values), 'min': min(values), 'max': max(values)}


def beside(directory, cpus, programs, routes, rounds, seconds):
    frames = [frame('un', random.Random(i).randrange(routes)) for i in range(FRAMES)]
    write_pcap(os.path.join(directory, f'un{routes}.pcap'), frames)
    runners, row = [], {'routes': routes}
    try:
        runners.append(Incline(directory, cpus, 'un', routes))
        runners[-1].pause()
        if programs['testpmd']:
            runners.append(Testpmd(programs['testpmd'], directory, cpus, routes))
            runners[-1].pause()
        if programs['ovs']:
            runners.append(Ovs(programs['ovs'], directory, cpus, routes))
            runners[-1].pause()
        rates, row['others'] = measure(runners, rounds, seconds)
        for runner, values in zip(runners, rates):
            ratio = [a / b for a, b in zip(rates[0], values)]
            row[runner.name] = {'mpps': {k: v / 1e6 for k, v in spread(values).items()}, 'ratio': spread(ratio)}
            print(f"{routes:7} {runner.name:9} {row[runner.name]['mpps']['median']:7.2f}", end='')
            if runner is not runners[0]:
                print('   {median:5.2f}  {min:.2f}..{max:.2f}'.format(**row[runner.name]['ratio']), end='')
            print(flush=True)
    finally:
        for runner in runners:
            runner.close()
    return row


def by_node(directory, cpus, kind, seconds):
    """The switch alone: nanoseconds per packet, and cycles of each node per packet of it."""
    write_pcap(os.path.join(directory, f'{kind}{ROUTES[0]}.pcap'),
               [frame(kind, random.Random(i).randrange(ROUTES[0])) for i in range(FRAMES)])
    switch = Incline(directory, cpus, kind, ROUTES[0])
    try:
        first = switch.nodes()
        rate, last = switch.rate(seconds), None
        switch.resume()
        last = switch.nodes()
    finally:
        switch.close()
    cycles = {}
    for name, n in last.items():
        packets = n['packets'] - first.get(name, {}).get('packets', 0)
        if packets > FRAMES and name != 'port_rx':
            cycles[name] = (n['cycles'] - first.get(name, {}).get('cycles', 0)) / packets
    print(f'{kind:7} {rate / 1e6:7.2f} {1e9 / rate if rate else 0:8.1f}  ' + ' '.join(f'{k} {v:.0f}' for k, v in cycles.items()),
          flush=True)
    return {'kind': kind, 'mpps': rate / 1e6, 'ns_per_packet': 1e9 / rate if rate else None, 'cycles_per_packet': cycles}


def instructions(directory, kind, routes, bursts):
    """By function, with all that it calls, within turns of the worker."""
    out = os.path.join(directory, 'callgrind')
    program = os.path.join(BUILD, 'tests/bench/bench-srv6')
    for argv in (['valgrind', '--tool=callgrind', f'--callgrind-out-file={out}', '--toggle-collect=sw_turn', program, kind, str(routes), str(bursts)],
                 ['callgrind_annotate', '--inclusive=yes', '--threshold=100', '--show-percs=no', out]):
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f'tools/bench srv6: {done.stderr}')
    found = re.finditer(r'^ *([\d,]+) +\S*:(\w+)(?: |$)', done.stdout, re.M)
    return {m[2]: int(m[1].replace(',', '')) for m in reversed(list(found))}


def counted(directory, kind, routes):
    few, many = (instructions(directory, kind, routes, n) for n in BURSTS)
    packets = (BURSTS[1] - BURSTS[0]) * BURST
    row = {name: (many.get(f, 0) - few.get(f, 0)) / packets
           for name, f in [('all', 'worker_turn'), *((n, n + '_process') for n in NODES), ('lookups', 'prefix6_lookup')]}
    print(f'{kind:7} {routes:7} ' + ' '.join(f'{v:10.0f}' for v in row.values()), flush=True)
    return {'kind': kind, 'routes': routes, 'instructions': row}


def count(directory):
    if not shutil.which('valgrind'):
        sys.exit("tools/bench srv6 --count: needs callgrind, Debian's package valgrind")
    print(f"# instructions per packet\n{'kind':7} {'routes':>7} " + ' '.join(f'{n:>10}' for n in ('all', *NODES, 'lookups')))
    return [counted(directory, kind, routes) for kind in ('route', 'un') for routes in COUNTED]


def find(root):
    """Programs, installed or below root; None: not there."""
    testpmd = os.path.join(root, 'usr/bin/dpdk-testpmd') if root != '/' else shutil.which('dpdk-testpmd')
    ovs = os.path.exists(os.path.join(root, 'usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk'))
    return {'testpmd': testpmd, 'ovs': root if ovs else None}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--json', metavar='FILE')
    parser.add_argument('--install', action='store_true')
    parser.add_argument('--count', action='store_true')
    args = parser.parse_args()
    if args.count:
        with tempfile.TemporaryDirectory(prefix='incline-') as directory:
            results = {'bench': 'srv6', 'counted': count(directory)}
        if args.json:
            with open(args.json, 'w', encoding='utf-8') as f:
                json.dump(results, f, indent=1)
        return 0
    rounds, seconds = (3, 0.5) if args.quick else (9, 1.0)
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        print('error: bench: two CPUs are needed, one of them for the worker', file=sys.stderr)
        return 1
    directory = tempfile.mkdtemp(prefix='incline-')
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        programs = find(install(directory) if args.install else '/')
        for name, there in programs.items():
            if not there:
                print(f'# {name} is not installed: left out (--install fetches it)')
        write_pcap(os.path.join(directory, 'one.pcap'), [frame('un', 0)])
        print(f'# uN, frames of 128 bytes, one worker on CPU {cpus[-1]}; ratio: ours to theirs, median and spread of {rounds} rounds')
        print(f"{'routes':>7} {'program':9} {'Mpps':>7}   {'ratio':>5}")
        rows = [beside(directory, (cpus[0], cpus[-1]), programs, n, rounds, seconds) for n in ROUTES]
        busy = max(r['others'] for r in rows)
        if busy > BUSY:
            print(f'# the machine was busy: other programs used {100 * busy:.0f} % of its CPUs; believe ratios, not Mpps')
        print(f"# the switch alone, {ROUTES[0]} routes; TSC cycles of each node per packet\n{'kind':7} {'Mpps':>7} {'ns':>8}")
        kinds = [by_node(directory, (cpus[0], cpus[-1]), k, seconds) for k in ('route', 'un', 'ua', 'end', 'encap', 'dt46')]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump({'bench': 'srv6', 'frame': 128, 'rounds': rounds, 'results': rows, 'kinds': kinds}, f, indent=1)
    return 0


if __name__ == '__main__':
    sys.exit(main())
