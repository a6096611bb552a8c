#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench allreduce: AllReduce of four ranks on one machine, end to end, in the network and by Open MPI.

Incline: four hosts of tools/lab on one incline-switch over memif, incline-perf, Mode-II. Open MPI, each rank in a network
namespace of its own on one bridge: TCP in packets of 4 200 bytes (no offloads: each packet is one, as it is for the switch),
TCP with TSO (64 KB pass the bridge as one), and shared memory. They take turns in one run; a figure is the median over the
rounds of the median of each, a time that of the slowest rank. Every element of every result is checked.

  tools/bench allreduce [--quick] [--rounds N] [--max BYTES] [--json FILE]

Needs root, iproute2, ethtool and openmpi-bin, libopenmpi-dev; what is not there is left out, which the output says."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
import incline_netns  # noqa: E402
from incline_fabric import LabError, Topology  # noqa: E402
from incline_lab import Lab, build_dir  # noqa: E402
from incline_processes import end_on_signals  # noqa: E402

RANKS, MTU, LIMIT = 4, 4200, 300
# Sizes from, to, factor; operations timed, and with --quick. Barriers are sizes of 0.
BANDS = ((0, 0, 4, 500, 50), (4 << 10, 64 << 10, 4, 200, 20), (256 << 10, 1 << 20, 4, 60, 10), (4 << 20, 64 << 20, 4, 10, 2))
OFFLOADS = ('tso', 'gso', 'gro')
PEERS = {'mpi_packets': 'TCP, packets', 'mpi_tso': 'TCP, TSO', 'mpi_shm': 'shared memory'}


def bands(largest, quick):
    for low, high, factor, times, few in BANDS:
        if low <= largest:
            yield low, min(high, largest), factor, few if quick else times


class Incline:
    def __init__(self):
        self.lab = Lab(tempfile.mkdtemp(prefix='incline-'))
        with open(os.path.join(TOP, 'tools/fabrics/star4.json'), encoding='utf-8') as f:
            self.topo = Topology(json.load(f))
        self.lab.up(self.topo)

    def close(self):
        self.lab.down()
        shutil.rmtree(self.lab.dir, ignore_errors=True)

    def run(self, low, high, factor, times):
        """{bytes: us}"""
        out = self.lab.path('bench.json')
        what = ['--collective', 'allreduce', '-b', str(low), '-e', str(high), '-f', str(factor)] if high else ['--collective', 'barrier']
        argv = [os.path.join(build_dir(), 'apps/incline-perf'), *what, '-n', str(times), '-w', '3', '--json', out]
        ranks = [self.lab.popen(h['name'], argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for h in self.topo.hosts]
        deadline = time.monotonic() + LIMIT
        try:
            said = [p.communicate(timeout=max(1, deadline - time.monotonic()))[1] for p in ranks]
        finally:
            for p in ranks:
                if p.poll() is None:
                    p.kill()
                    p.wait()
        if any(p.returncode for p in ranks):
            raise LabError(f'incline-perf: {"".join(said)}')
        with open(out, encoding='utf-8') as f:
            rows = json.load(f)
        rows = rows['results']
        if any(r['wrong'] for r in rows):
            raise LabError(f'wrong results: {rows}')
        return {r['bytes'] if high else 0: r['p50_us'] for r in rows}


class Mpi:
    """Namespaces on a bridge, which lies in one of its own: mpirun runs there."""

    def __init__(self, directory):
        self.prefix = f'incline-bench-{os.getpid()}-'
        self.program = os.path.join(directory, 'allreduce_mpi')
        subprocess.run(['mpicc', '-O2', '-o', self.program, os.path.join(TOP, 'tests/bench/allreduce_mpi.c')], check=True, timeout=LIMIT)
        hub = self.prefix + 'hub'
        try:
            incline_netns.ip([f'netns add {self.prefix}{n}' for n in ('hub', *range(RANKS))])
            incline_netns.ip(['link set lo up', f'link add br0 mtu {MTU} type bridge', 'addr add 10.78.0.1/24 dev br0', 'link set br0 up'], hub)
            for i in range(RANKS):
                incline_netns.ip([f'link add v{i} mtu {MTU} type veth peer name eth0 mtu {MTU} netns {self.prefix}{i}',
                                  f'link set v{i} master br0 up'], hub)
                incline_netns.ip(['link set lo up', f'addr add 10.78.0.1{i}/24 dev eth0', 'link set eth0 up'], f'{self.prefix}{i}')
        except incline_netns.NetnsError:
            self.close()
            raise

    def close(self):
        for n in ('hub', *range(RANKS)):
            subprocess.run(['ip', 'netns', 'del', f'{self.prefix}{n}'], capture_output=True, check=False, timeout=LIMIT)

    def offload(self, on):
        words = [w for o in OFFLOADS for w in (o, 'on' if on else 'off')]
        for i in range(RANKS):
            for netns, device in (('hub', f'v{i}'), (i, 'eth0')):
                subprocess.run(['ip', 'netns', 'exec', f'{self.prefix}{netns}', 'ethtool', '-K', device, *words], check=True,
                               capture_output=True, timeout=LIMIT)

    def run(self, how, low, high, factor, times):
        """{bytes: us}"""
        argv = ['ip', 'netns', 'exec', self.prefix + 'hub', 'mpirun', '--allow-run-as-root', '--oversubscribe', '-np', str(RANKS),
                '--bind-to', 'none', '--mca', 'pml', 'ob1', '--mca', 'mpi_yield_when_idle', '1', '--mca', 'btl']
        if how == 'mpi_shm':
            argv += ['self,vader']
        else:
            self.offload(how == 'mpi_tso')
            argv += ['self,tcp', '--mca', 'btl_tcp_if_include', '10.78.0.0/24', 'sh', '-c',
                     f'exec ip netns exec {self.prefix}$OMPI_COMM_WORLD_RANK "$@"', 'sh']
        # The ranks in their namespaces reach mpirun's own server over the bridge.
        env = {**os.environ, 'PMIX_MCA_ptl_base_remote_connections': '1', 'PMIX_MCA_ptl_base_if_include': 'br0'}
        done = subprocess.run(argv + [self.program, *map(str, (low, high, factor, times))], env=env, capture_output=True, text=True,
                              timeout=LIMIT)
        rows = [line.split() for line in done.stdout.splitlines()]
        if done.returncode or not rows or any(r[3] != '0' for r in rows):
            raise LabError(f'{how}: exit status {done.returncode}: {done.stdout}{done.stderr}')
        return {int(r[0]): float(r[1]) for r in rows}


def why_no_mpi():
    if incline_netns.why_not():
        return incline_netns.why_not()
    missing = [p for p in ('mpirun', 'mpicc', 'ethtool') if not shutil.which(p)]
    return f"{', '.join(missing)} not installed (tools/setup does)" if missing else None


def take_turns(runners, args):
    """{name: {bytes: [us of each round]}}"""
    table = {name: {} for name in runners}
    for i in range(args.rounds):
        for band in bands(args.max, args.quick):
            for name, run in runners.items():
                print(f'# round {i + 1} of {args.rounds}, {band[0] >> 10} KB and up, {name}', file=sys.stderr, flush=True)
                for size, us in run(*band).items():
                    table[name].setdefault(size, []).append(us)
    return table


def results(table):
    """Rows as they are printed: Gb/s of the vector's size; of a barrier, operations per second."""
    rows = []
    for size in sorted(table['incline']):
        us = {name: statistics.median(t[size]) for name, t in table.items()}
        row = {'bytes': size, 'us': us.pop('incline'), **{f'{name}_us': v for name, v in us.items()},
               **{f'{name}_spread': max(t[size]) / min(t[size]) for name, t in table.items()}}
        if size:
            row['gbps'] = size * 8e-3 / row['us']
            row.update({f'{name}_gbps': size * 8e-3 / v for name, v in us.items()})
        row.update({f'ratio_{name}': v / row['us'] for name, v in us.items()})
        rows.append(row)
    return rows


def show(rows, peers):
    print('# Gb/s (us); times faster than: ' + ', '.join(PEERS[p] for p in peers))
    print(f"{'bytes':>9} {'incline':>18}" + ''.join(f' {PEERS[p]:>18}' for p in peers) + ' ' + ' '.join(f'{"ratio":>6}' for _ in peers))
    for r in rows:
        def cell(prefix, r=r):
            us, gbps = r[prefix + 'us'], r.get(prefix + 'gbps')
            return f' {gbps:7.2f} ({us:8.1f})' if gbps else f' {us:15.1f} us'
        print(f"{r['bytes'] or 'barrier':>9}" + cell('') + ''.join(cell(p + '_') for p in peers) + ' '
              + ' '.join(f"{r['ratio_' + p]:6.2f}" for p in peers))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='fewer operations, one round')
    parser.add_argument('--rounds', type=int, metavar='N', help='(3)')
    parser.add_argument('--max', type=int, default=64 << 20, metavar='BYTES', help='largest vector (%(default)s)')
    parser.add_argument('--json', metavar='FILE')
    args = parser.parse_args()
    end_on_signals()
    args.rounds = args.rounds or (1 if args.quick else 3)
    notes, mpi, incline = [], None, None
    directory = tempfile.mkdtemp(prefix='incline-')
    try:
        incline = Incline()
        runners = {'incline': incline.run}
        why = why_no_mpi()
        if why:
            notes.append(f'no Open MPI: {why}')
        else:
            mpi = Mpi(directory)
            runners.update({how: lambda *band, how=how: mpi.run(how, *band) for how in PEERS})
        before = time.monotonic(), os.times()
        rows = results(take_turns(runners, args))
    finally:
        for part in mpi, incline:
            if part:
                part.close()
        shutil.rmtree(directory, ignore_errors=True)
    load = os.getloadavg()[0]
    notes.append(f'{os.cpu_count()} CPUs, {time.monotonic() - before[0]:.0f} s, load {load:.1f} at the end')
    show(rows, [p for p in PEERS if p in runners])
    for text in notes:
        print('# ' + text)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump({'bench': 'allreduce', 'ranks': RANKS, 'results': rows, 'notes': notes}, f, indent=1)
            f.write('\n')
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (LabError, incline_netns.NetnsError, subprocess.SubprocessError, OSError) as e:
        sys.exit(f'bench allreduce: {e}')
