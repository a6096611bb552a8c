#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per 4 KB chunk of a multicast Broadcast, at a rank that receives: tools/bench multicast [--json FILE].

callgrind counts bench-multicast, which is whole runs; differences leave what is asked for. Two numbers of chunks: set-up,
barrier and handshake go. Two numbers of receivers: the root goes. Copies are left out. "handler" is what the paper
gives to its receive workers (table I): judging a chunk, the bitmap, its place, telling; of "staged", where CommLib's thread does that, also polling and
posting the next receive; "locks" are those of libibverbs on the way there; "device" is what a NIC does in hardware: parsing, checks, checksum, finding
the queue pair, completions."""
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


def count(transport, receivers, chunks):
    with tempfile.TemporaryDirectory() as where:
        out = os.path.join(where, 'out')
        done = subprocess.run(['valgrind', '--tool=callgrind', f'--callgrind-out-file={out}', PROGRAM, transport,
                               str(receivers + 1), str(chunks)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f'tools/bench multicast: {done.stderr}')
        return read_costs(out)


def per_chunk(transport):
    total = collections.Counter()
    for r, sign in zip(RECEIVERS, (-1, 1)):
        for n, sign_n in zip(CHUNKS, (-1, 1)):
            for part, cost in count(transport, r, n).items():
                total[part] += sign * sign_n * cost
    scale = (RECEIVERS[1] - RECEIVERS[0]) * (CHUNKS[1] - CHUNKS[0])
    return {part: round(total[part] / scale, 1) for part in ('handler', 'locks', 'device')}


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
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump({'bench': 'multicast', 'results': results}, f, indent=1)


if __name__ == '__main__':
    main()
