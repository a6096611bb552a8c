#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench stream: one TCP flow at drop rates of 0 to 10 %, figure 13 of ZeroNIC (OSDI '24): iperf3 on
libincline_stream.so, which it is preloaded with, and the same iperf3 on the kernel's TCP.

Both are two hosts of tools/lab on one incline-switch, which drops what it receives, data and acknowledgements, with the given
probability; MTU 4200. The kernel's TCP has the host's interface, a tap device whose frames incline-netd carries to the same
port: that is not the kernel's path to a NIC. They take turns; a figure is the median over the rounds. CPU seconds per GB are
iperf3's own of both ends, with its threads (ours: all of TCP and the port), and incline-netd's; of the kernel's work that is
done in no process' name there is none in them. The switch is in neither.

  tools/bench stream [--quick] [--rounds N] [--json FILE]

Needs root (network namespaces) for the kernel's half, and Debian's iperf3; without root ours is measured alone."""
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

DROPS, LIMIT, PORT = (0, 0.001, 0.003, 0.01, 0.03, 0.1), 120, 5300
PAPER = '"ZeroNIC maintains near-full throughput even at 1% drops" (section 5; figure 13 is of 100 Gb/s NICs)'
TOPOLOGY = {'name': 'pair', 'switches': [{'name': 's0', 'ip': '10.77.255.1', 'ip6': 'fd77::ff:1'}],
            'hosts': [{'name': f'h{i}', 'ip': f'10.77.0.1{i}', 'ip6': f'fd77::1{i}', 'switch': 's0'} for i in range(2)]}


class Pair:
    """Two hosts, for one of the two stacks."""

    def __init__(self, drop, kernel):
        self.kernel = kernel
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
                    'INCLINE_STREAM': self.lab.path(f'{host}.json')}
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
            client = self.start('h0', 'iperf3', '-J', '-c', '10.77.0.11', '-p', PORT, '-t', seconds)
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


def measure(drop, kernel, rounds, seconds):
    pair = Pair(drop, kernel)
    try:
        runs = [pair.run(seconds) for _ in range(rounds)]
    finally:
        pair.close()
    return [statistics.median(r[k] for r in runs) for k in range(2)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--json', metavar='FILE')
    args = parser.parse_args()
    end_on_signals()
    if not shutil.which('iperf3'):
        sys.exit('tools/bench stream: iperf3 is not installed (tools/setup)')
    rounds, seconds = (1, 2) if args.quick else (args.rounds, 5)
    why_not = incline_netns.why_not()
    print(f'# one TCP flow, iperf3, {rounds} round(s) of {seconds} s; MTU 4200; load average before: {os.getloadavg()[0]:.1f}')
    print(f'# paper: {PAPER}')
    if why_not:
        print(f'# kernel: left out, {why_not}')
    print('drop %    Gb/s  of its own at 0  CPU s/GB   kernel Gb/s  of its own at 0  CPU s/GB   ratio')
    rows, first = [], {}
    for drop in DROPS:
        row = {'drop': drop}
        for name, kernel in ('incline', False), ('kernel', True):
            if kernel and why_not:
                continue
            rate, cpu = measure(drop, kernel, rounds, seconds)
            first.setdefault(name, rate)
            row[name] = {'gbps': rate, 'share': rate / first[name], 'cpu_s_per_gb': cpu}
        rows.append(row)
        i, k = row['incline'], row.get('kernel')
        print(f'{100 * drop:6.1f}  {i["gbps"]:6.3f}  {i["share"]:15.2f}  {i["cpu_s_per_gb"]:8.2f}' +
              (f'   {k["gbps"]:11.3f}  {k["share"]:15.2f}  {k["cpu_s_per_gb"]:8.2f}  {i["gbps"] / k["gbps"]:6.2f}' if k else ''), flush=True)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump({'rounds': rounds, 'seconds': seconds, 'rows': rows}, f, indent=1)


if __name__ == '__main__':
    main()
