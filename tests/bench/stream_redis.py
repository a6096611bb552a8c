# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench stream --redis: figure 11 of ZeroNIC (OSDI '24), part of stream.py: redis-benchmark, SET of values of 1 KB to 1 MB, 4
clients with 10 requests under way each, as there.

Ours: both programs on libincline_stream.so, two hosts of tools/lab on one incline-switch, MTU 4200. Beside it the kernel's TCP
between the same hosts (a tap device whose frames incline-netd carries to the same switch), and between two network namespaces
over a veth, which has no switch and moves 64 KB at a time without packets. They take turns; medians. CPU seconds per GB are
redis-server's own (ours: with TCP and the port in them; of the kernel's work in nobody's name there is none in it). The paper
has 3.71 times the kernel's rate on average, and 89 % of RoCE's: its Redis uses libibverbs, Debian's does not, so there is no
column of RC."""
import csv
import json
import os
import shutil
import statistics
import subprocess
import tempfile

import rnic

SIZES, CLIENTS, PIPELINE, PORT, LIMIT = (1024, 4096, 16384, 65536, 262144, 1048576), 4, 10, 6400, 300
PAPER = 3.71
WAYS = ('incline', 'kernel', 'veth')


class Veth(rnic.Veth):
    """As stream.Pair."""
    address = '10.78.0.2'

    def start(self, host, *argv):
        return subprocess.Popen(self.within(int(host == 'h1'), [str(a) for a in argv]), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)


def cpu_s(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as f:
        return sum(int(v) for v in f.read().rsplit(')', 1)[1].split()[11:13]) / os.sysconf('SC_CLK_TCK')


def ask(pair, address, server, size, total):
    """Requests per second, CPU seconds per GB of the server."""
    n = max(20 * CLIENTS * PIPELINE // 10, min(total // size, 100000))
    before = cpu_s(server.pid)
    client = pair.start('h0', 'redis-benchmark', '-h', address, '-p', PORT, '-t', 'set', '-d', size, '-n', n, '-c', CLIENTS, '-P', PIPELINE,
                        '--csv')
    try:
        out = client.communicate(timeout=LIMIT)[0]
    finally:
        client.kill()
    rows = [row for row in csv.reader(out.splitlines()) if row[:1] == ['SET']]
    if client.returncode or not rows:
        raise SystemExit(f'tools/bench stream: redis-benchmark: {out[-300:]}')
    return float(rows[0][1]), (cpu_s(server.pid) - before) / (n * size / 1e9)


def run(pair, address, total):
    """[(requests per second, CPU s/GB)] by size."""
    folder = tempfile.mkdtemp(prefix='incline-')
    server = pair.start('h1', 'redis-server', '--bind', address, '--port', PORT, '--save', '', '--protected-mode', 'no', '--dir', folder)
    try:
        while 'Ready to accept connections' not in (server.stdout.readline() or 'Ready to accept connections'):
            pass
        return [ask(pair, address, server, size, total) for size in SIZES]
    finally:
        server.kill()
        server.communicate()
        shutil.rmtree(folder, ignore_errors=True)


def measure(make_pair, rounds, total, why_not):
    """{way: [[(rate, cpu)] by size] by round}"""
    runs = {}
    for _ in range(rounds):
        for way in WAYS[:1] if why_not else WAYS:
            if way == 'veth':
                with Veth(9000) as veth:
                    runs.setdefault(way, []).append(run(veth, veth.address, total))
                continue
            pair = make_pair(way == 'kernel')
            try:
                runs.setdefault(way, []).append(run(pair, '10.77.0.11', total))
            finally:
                pair.close()
    return runs


def table(runs):
    rows = []
    for i, size in enumerate(SIZES):
        row = {'bytes': size}
        for way, rounds in runs.items():
            rates = [r[i][0] for r in rounds]
            row[way] = {'requests_per_s': statistics.median(rates), 'least': min(rates), 'most': max(rates),
                        'cpu_s_per_gb': statistics.median(r[i][1] for r in rounds)}
        for way in runs:
            if way != 'incline':
                row[f'ratio_{way}'] = row['incline']['requests_per_s'] / row[way]['requests_per_s']
        rows.append(row)
    return rows


def show(rows, ways):
    print('   bytes  ' + '  '.join(f'{way + " SET/s (least, most), CPU s/GB":>42}' for way in ways)
          + '  ' + '  '.join(f'ours/{way}' for way in ways[1:]))
    for row in rows:
        cells = []
        for way in ways:
            c = row[way]
            cells.append(f'{c["requests_per_s"]:10.0f} ({c["least"]:9.0f} {c["most"]:9.0f}) {c["cpu_s_per_gb"]:8.2f}'.rjust(42))
        print(f'{row["bytes"]:8}  ' + '  '.join(cells) + '  ' + '  '.join(f'{row["ratio_" + w]:11.2f}' for w in ways[1:]))


def main(args, why_not, make_pair):
    if not shutil.which('redis-server') or not shutil.which('redis-benchmark'):
        return 'tools/bench stream: redis-server or redis-benchmark is not installed (tools/setup)'
    rounds, total = args.rounds or (1 if args.quick else 3), 50_000_000 if args.quick else 400_000_000
    load = os.getloadavg()[0]
    print(f'# figure 11: redis-benchmark, SET, {CLIENTS} clients, {PIPELINE} requests under way each; {rounds} round(s), medians; load '
          f'average before: {load:.1f}')
    if why_not:
        print(f'# kernel: left out, {why_not}')
    runs = measure(make_pair, rounds, total, why_not)
    rows, ways = table(runs), list(runs)
    show(rows, ways)
    averages = {way: statistics.mean(row[f'ratio_{way}'] for row in rows) for way in ways[1:]}
    for way, value in averages.items():
        print(f'ours / {way}, average over sizes: {value:.2f} (paper, beside the kernel on a NIC: {PAPER})')
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump({'bench': 'stream-redis', 'rounds': rounds, 'load': load, 'paper': PAPER, 'averages': averages, 'rows': rows}, f, indent=1)
            f.write('\n')
    return 0
