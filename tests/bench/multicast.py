#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per 4 KB chunk of a multicast Broadcast, at a rank that receives: tools/bench multicast [--json FILE].

callgrind counts bench-multicast, which is whole runs; differences leave what is asked for. Two numbers of chunks: set-up,
barrier and handshake go. Two numbers of receivers: the root goes. Copies are left out. "handler" is what the paper
gives to its receive workers (table I): judging a chunk, the bitmap, its place, telling; of "staged", where CommLib's thread does that, also polling and
posting the next receive; "locks" are those of libibverbs on the way there; "device" is what a NIC does in hardware: parsing, checks, checksum, finding
the queue pair, completions; of WRITEs also key, access and region.

Then bench-multicast-workers: 1 to 4 receive workers of lib/rnic that are given all of their trees' chunks, as in section VI-C."""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(TOP, 'build/tests/bench/bench-multicast')
WORKERS_PROGRAM = PROGRAM + '-workers'
CHUNK, SHORT, ROUNDS = 4096, 64, 30  # bytes; figure 16 has 64 for its packet rates
PAPER_GBPS = {'ud': 44.7, 'uc': 102.2}  # table I: 5.2 and 11.9 GiB/s
CHUNKS, RECEIVERS = (64, 240), (1, 5)  # no more than receives that are posted
PAPER = {'ud': 113, 'uc': 66, 'staged': 113}
# By file of the source, the first that fits; what is not here is the simulator's.
PARTS = (('handler', r'lib/ccl/|lib/mcast/|lib/rnic/mcast_window|lib/verbs/(cq|qp)\.c|lib/rnic/(cq|wq|ring|wqe)\.[ch]|lib/place/ring\.h|verbs\.h'),
         ('device', r'lib/rnic/|lib/wire/|lib/place/'))
DEVICE = re.compile(r'cq_(push|publish|gather)')  # the device's, where the handler's polling is
COPY, LOCK = re.compile(r'mem(cpy|move|set|pcpy)'), re.compile(r'pthread_mutex|lll_|mutex')


def part_of(file, function):
    if COPY.search(function):
        return 'copies'
    if LOCK.search(function):
        return 'locks'
    if DEVICE.match(function):
        return 'device'
    return next((name for name, files in PARTS if re.search(files, file)), 'other')


def read_costs(path):
    """Instructions by part: own costs of every function, inlined code by its own file."""
    costs, names = collections.Counter(), {}
    file = function = ''
    skip = False
    with open(path, encoding='utf-8', errors='replace') as f:
        for line in f:
            m = re.match(r'(fl|fi|fe|fn|cfn|cfi|cfl|ob|cob)=(?:\((\d+)\))?\s*(.*)', line)
            if m:
                kind, number, name = m.groups()
                key = ('fn' if kind.endswith('fn') else 'ob' if kind.endswith('ob') else 'fl', number)
                if name:
                    names[key] = name
                name = names.get(key, name)
                if kind in ('fl', 'fi', 'fe'):
                    file = name
                elif kind == 'fn':
                    function = name
            elif line.startswith('calls='):
                skip = True
            elif re.match(r'[+\-*\d]', line):
                if not skip:
                    costs[part_of(file, function)] += int(line.split()[1])
                skip = False
    return costs


def callgrind(argv):
    with tempfile.TemporaryDirectory() as where:
        out = os.path.join(where, 'out')
        done = subprocess.run(['valgrind', '--tool=callgrind', f'--callgrind-out-file={out}', *argv], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f'tools/bench multicast: {done.stderr}')
        return read_costs(out)


def count(transport, receivers, chunks):
    return callgrind([PROGRAM, transport, str(receivers + 1), str(chunks)])


def per_chunk(transport):
    total = collections.Counter()
    for r, sign in zip(RECEIVERS, (-1, 1)):
        for n, sign_n in zip(CHUNKS, (-1, 1)):
            for part, cost in count(transport, r, n).items():
                total[part] += sign * sign_n * cost
    scale = (RECEIVERS[1] - RECEIVERS[0]) * (CHUNKS[1] - CHUNKS[0])
    return {part: round(total[part] / scale, 1) for part in ('handler', 'locks', 'device')}


def run_workers(transport, workers, chunk):
    argv = [WORKERS_PROGRAM, transport, str(workers), str(chunk), str(ROUNDS)]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'tools/bench multicast: {done.stderr}')
    return json.loads(done.stdout)


def worker_row(transport, workers):
    """By the clock; by the workers' own CPU time, which is what they would bring with a core each; and counted."""
    whole, short = (run_workers(transport, workers, chunk) for chunk in (CHUNK, SHORT))
    few, many = (callgrind([WORKERS_PROGRAM, transport, str(workers), str(CHUNK), str(r)]) for r in (1, 3))
    bits = 8 * CHUNK * whole['chunks']
    return {'transport': transport, 'workers': workers, 'gbps': round(bits / whole['round_ns'], 1),
            'gbps_by_cpu': round(workers * bits / whole['cpu_ns'], 1), 'short_mpps': round(1000 * workers * short['chunks'] / short['cpu_ns'], 1),
            **{part: round((many[part] - few[part]) / (2 * whole['chunks']), 1) for part in ('handler', 'device')}}


def print_workers():
    cpus, rows = len(os.sched_getaffinity(0)), []
    print(f'\n# by receive workers, each with a tree and a thread, all chunks there; {cpus} CPUs, load {os.getloadavg()[0]:.1f}\n'
          f'transport  workers    Gb/s  by CPU  handler  device  {SHORT} bytes, M/s by CPU  paper, one thread, Gb/s')
    for transport, paper in PAPER_GBPS.items():
        for workers in 1, 2, 3, 4:
            r = worker_row(transport, workers)
            rows.append(r)
            print(f"{transport:9} {workers:8} {r['gbps']:7} {r['gbps_by_cpu']:7} {r['handler']:8} {r['device']:7} {r['short_mpps']:21}"
                  + (f'{paper:25}' if workers == 1 else ''), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--json', metavar='FILE')
    args = parser.parse_args()
    if not shutil.which('valgrind'):
        sys.exit("tools/bench multicast: needs callgrind, Debian's package valgrind")
    results = []
    print('# instructions per received chunk of 4096 bytes\ntransport  handler   locks  device   paper')
    for transport in PAPER:
        row = per_chunk(transport)
        print(f"{transport:9} {row['handler']:8.1f} {row['locks']:7.1f} {row['device']:7.1f} {PAPER[transport]:7}",
              flush=True)
        results.append({'transport': transport, **row, 'paper': PAPER[transport]})
    rows = print_workers()
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump({'bench': 'multicast', 'results': results, 'workers': rows}, f, indent=1)


if __name__ == '__main__':
    main()
