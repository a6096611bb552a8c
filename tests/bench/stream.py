#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench stream: one TCP flow at drop rates of 0 to 10 %, figure 13 of ZeroNIC (OSDI '24): iperf3 on
libincline_stream.so, which it is preloaded with, and the same iperf3 on the kernel's TCP.

Both are two hosts of tools/lab on one incline-switch, which drops what it receives, data and acknowledgements, with the given
probability; MTU 4200. The paper's TCP is BBR (table 1), and so are both here, unless --cc says otherwise. The kernel's TCP has
the host's interface, a tap device whose frames incline-netd carries to the same port: that is not the kernel's path to a NIC.
They take turns; a figure is the median over the rounds, behind it the least and the most. CPU seconds per GB are iperf3's own
of both ends, with its threads (ours: all of TCP and the port), and incline-netd's; of the kernel's work that is done in no
process' name there is none in them. The switch is in neither.

  tools/bench stream [--quick] [--rounds N] [--cc bbr|cubic|newreno|delay] [--json FILE]
  tools/bench stream --cost [--quick] [--rounds N] [--json FILE]
                                                tables 2 and 3, figures 1, 2 and 12: CPU seconds per GB of application, control and
                                                data path, beside RC, copying and the kernel over a veth (stream_cost.py)
  tools/bench stream --redis [--quick] [--rounds N] [--json FILE]
                                                figure 11: redis-benchmark, SET of 1 KB to 1 MB, beside the kernel (stream_redis.py)
  tools/bench stream --virtual [--json FILE]    the same figure and figure 9 on virtual time, without switch, kernel, or
                                                processes that wait for each other: the same numbers on every machine

tools/plot draws figure 13 of both files. Needs root (network namespaces) for the kernel's half, and Debian's iperf3; without root
ours is measured alone."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
import incline_netns  # noqa: E402
from incline_fabric import Topology  # noqa: E402
from incline_lab import Lab, build_dir  # noqa: E402
from incline_processes import end_on_signals  # noqa: E402
import stream_cost  # noqa: E402
import stream_redis  # noqa: E402

DROPS, LIMIT, PORT = (0, 0.0001, 0.001, 0.01, 0.02, 0.05, 0.1), 120, 5300
KERNEL_CC = {'newreno': 'reno', 'delay': None}  # what the kernel calls it; None: it has none like it
PAPER = '"ZeroNIC maintains near-full throughput even at 1% drops" (section 5; figure 13 is of 100 Gb/s NICs)'
TOPOLOGY = {'name': 'pair', 'switches': [{'name': 's0', 'ip': '10.77.255.1', 'ip6': 'fd77::ff:1'}],
            'hosts': [{'name': f'h{i}', 'ip': f'10.77.0.1{i}', 'ip6': f'fd77::1{i}', 'switch': 's0'} for i in range(2)]}


class Pair:
    """Two hosts, for one of the two stacks."""

    def __init__(self, drop, kernel, cc):
        self.kernel, self.cc = kernel, cc
        self.dir = tempfile.mkdtemp(prefix='incline-')
        self.lab = Lab(os.path.join(self.dir, 'lab'))
        self.lab.up(Topology(json.loads(json.dumps(TOPOLOGY))), {'loss': drop} if drop else None, netns=kernel)

    def close(self):
        self.lab.down()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self, host, *argv):
        env = {k: v for k, v in os.environ.items() if k not in ('LD_PRELOAD', 'INCLINE_RNIC', 'INCLINE_STREAM')}
        words = [str(a) for a in argv]
        if self.kernel:
            words = self.lab.within(host, words)
        else:
            env |= {'LD_PRELOAD': os.path.join(build_dir(), 'lib/sockets/libincline_stream.so'),
                    'INCLINE_STREAM': self.lab.path(f'{host}.json'), 'INCLINE_STREAM_CC': self.cc}
        return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def others(self):
        """CPU seconds of what carries frames for the kernel."""
        ticks = 0
        for row in self.lab.state().get('keepers', []):
            with open(f'/proc/{row["pid"]}/stat', encoding='ascii') as f:
                ticks += sum(int(v) for v in f.read().rsplit(')', 1)[1].split()[11:13])
        return ticks / os.sysconf('SC_CLK_TCK')

    def run(self, seconds):
        """Gb/s as received, CPU seconds per GB."""
        server = self.start('h1', 'iperf3', '-s', '-1', '-B', '10.77.0.11', '-p', PORT, '--forceflush')
        try:
            while 'Server listening' not in (server.stdout.readline() or 'Server listening'):
                pass
            before = self.others()
            client = self.start('h0', 'iperf3', '-J', '-c', '10.77.0.11', '-p', PORT, '-t', seconds,
                                *(['-C', self.cc] if self.kernel else []))
            out, _ = client.communicate(timeout=LIMIT)
            end = json.loads(out).get('end', {})
            if client.returncode or 'sum_received' not in end:
                sys.exit(f'iperf3: {out[-300:]}')
            got, cpu = end['sum_received'], end['cpu_utilization_percent']
            used = (cpu['host_total'] + cpu['remote_total']) / 100 * end['sum_sent']['seconds'] + self.others() - before
            server.communicate(timeout=LIMIT)
            return got['bits_per_second'] / 1e9, used / max(got['bytes'] / 1e9, 1e-9)
        finally:
            server.kill()
            server.communicate()


def measure(drop, kernel, cc, rounds, seconds):
    pair = Pair(drop, kernel, cc)
    try:
        runs = [pair.run(seconds) for _ in range(rounds)]
    finally:
        pair.close()
    rates = [r[0] for r in runs]
    return {'gbps': statistics.median(rates), 'least': min(rates), 'most': max(rates),
            'cpu_s_per_gb': statistics.median(r[1] for r in runs)}


def kernel_cc(cc):
    """The kernel's name of it, and why it cannot be measured, or None."""
    name = KERNEL_CC.get(cc, cc)
    with open('/proc/sys/net/ipv4/tcp_available_congestion_control', encoding='ascii') as f:
        if name in f.read().split():
            return name, None
    return name, f'it has no congestion control like {cc}' + (f' (modprobe tcp_{name})' if name else '')


def ratio(a, b):
    """A run may have moved nothing: None."""
    return a / b if b else None


def text(cell):
    return f'{cell["gbps"]:7.3f} ({cell["least"]:6.3f} {cell["most"]:6.3f})  {shown(cell["share"], 5)}  {cell["cpu_s_per_gb"]:8.2f}'


def shown(value, width):
    return '-'.rjust(width) if value is None else f'{value:{width}.2f}'


def as_plot(rows, cc):
    """As tools/plot wants it."""
    return [{'at': f'{100 * row["drop"]:g} %', 'solution': f'{name} {cc}', 'ours': row[name]['gbps'], 'paper': None,
             'least': row[name]['least'], 'most': row[name]['most']}
            for row in rows for name in ('incline', 'kernel') if name in row]


def virtual(parser, args):
    """Its exit status."""
    program = os.path.join(build_dir(), 'tests/unit/stream/test_stream_drops')
    for option in 'quick', 'rounds', 'cc':
        if getattr(args, option):
            parser.error(f'--{option}: not with --virtual, which is always the same')
    if not os.path.exists(program):
        return f'tools/bench stream: {program} is not built: no build with sanitizers has it'
    return subprocess.run([program, *(['--json', args.json] if args.json else [])]).returncode


def measure_all(args, theirs, rounds, seconds):
    """A row per drop rate, printed as they come. theirs: None, without the kernel."""
    rows, first = [], {}
    print('drop %  Gb/s (least, most), of its own at 0, CPU s/GB     the same of the kernel                  ratio')
    for drop in DROPS:
        row = {'drop': drop}
        for name, cc in ('incline', args.cc), ('kernel', theirs):
            if cc:
                cell = row[name] = measure(drop, name == 'kernel', cc, rounds, seconds)
                cell['share'] = ratio(cell['gbps'], first.setdefault(name, cell['gbps']))
        rows.append(row)
        i, k = row['incline'], row.get('kernel')
        print(f'{100 * drop:6.2f}  {text(i)}' + (f'   {text(k)}  {shown(ratio(i["gbps"], k["gbps"]), 6)}' if k else ''), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--rounds', type=int, help='3 if not said')
    parser.add_argument('--cc', choices=('bbr', 'cubic', 'newreno', 'delay'), help='bbr if not said')
    others = parser.add_mutually_exclusive_group()
    for name in '--virtual', '--cost', '--redis':
        others.add_argument(name, action='store_true')
    parser.add_argument('--json', metavar='FILE')
    args = parser.parse_args()
    if args.rounds is not None and args.rounds < 1:
        parser.error(f'--rounds: {args.rounds} is less than 1')
    end_on_signals()
    if args.virtual:
        sys.exit(virtual(parser, args))
    if args.cost or args.redis:
        if args.cc:
            parser.error('--cc: not with --cost or --redis')
        why_not = incline_netns.why_not()
        if args.cost:
            sys.exit(stream_cost.main(args, why_not))
        sys.exit(stream_redis.main(args, why_not, lambda kernel: Pair(0, kernel, 'cubic')))
    if not shutil.which('iperf3'):
        sys.exit('tools/bench stream: iperf3 is not installed (tools/setup)')
    args.cc = args.cc or 'bbr'
    rounds, seconds = (1, 2) if args.quick else (3 if args.rounds is None else args.rounds, 5)
    theirs, missing = kernel_cc(args.cc)
    why_not = incline_netns.why_not() or missing
    print(f'# one TCP flow, iperf3, {args.cc}, {rounds} round(s) of {seconds} s; MTU 4200; '
          f'load average before: {os.getloadavg()[0]:.1f}')
    print(f'# paper: {PAPER}')
    if why_not:
        print(f'# kernel: left out, {why_not}')
    rows = measure_all(args, None if why_not else theirs, rounds, seconds)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump({'figure': 13, 'title': 'one flow under drops', 'unit': 'Gb/s', 'cc': args.cc, 'rounds': rounds,
                       'seconds': seconds, 'rows': as_plot(rows, args.cc), 'cells': rows}, f, indent=1)


if __name__ == '__main__':
    main()
