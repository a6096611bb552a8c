#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What incline-dissect says of captures of Linux Soft-RoCE: golden.py PROGRAM tests/data [--make]. Of every packet, what Wireshark says too
(pcaps/expected.csv); of some files the whole text, which was read by hand before it was kept: --make writes those anew."""
import csv
import json
import os
import subprocess
import sys


def run(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


# Wireshark's fields, and ours.
FIELDS = {'frame.len': 'len', 'infiniband.bth.psn': 'psn', 'infiniband.bth.destqp': 'qp', 'infiniband.aeth.msn': 'msn',
          'infiniband.reth.dmalen': 'dmalen', 'infiniband.reth.r_key': 'rkey', 'infiniband.deth.srcqp': 'from_qp'}


def number(value):
    return int(value, 0) if isinstance(value, str) else value


def beside_wireshark(name, packets, rows):
    """Differences of a file's RoCE packets, in their order."""
    if len(packets) != len(rows):
        yield f'{name}: {len(packets)} RoCE packets, Wireshark sees {len(rows)}'
    for packet, row in zip(packets, rows):
        for theirs, ours in FIELDS.items():
            if row[theirs] and ours in packet and number(packet[ours]) != number(row[theirs]):
                yield f'{name}: packet {packet["n"]}: {ours} is {packet[ours]}, Wireshark says {row[theirs]}'
            if row[theirs] and ours not in packet and (ours != 'psn' or packet.get('op') != 'CNP'):
                yield f'{name}: packet {packet["n"]} has no {ours}, Wireshark says {row[theirs]}'


def main():
    program, data = sys.argv[1:3]
    golden, bad, compared = os.path.join(data, 'dissect'), [], 0
    with open(os.path.join(data, 'pcaps/expected.csv'), newline='', encoding='utf-8') as f:
        expected = list(csv.DictReader(f))
    for name in sorted(os.listdir(os.path.join(data, 'pcaps'))):
        if not name.endswith('.pcap'):
            continue
        capture, path = os.path.join(data, 'pcaps', name), os.path.join(golden, name[:-5] + '.txt')
        result = json.loads(run(program, '--json', capture))
        packets = [p for c in result['connections'] for p in c['packets']]
        # None of them has been damaged on the way; nothing is left out.
        if result['icrc']['bad'] or result['refused'] or len(packets) + len(result['others']) != result['frames']:
            bad.append(f'{name}: {result["icrc"]}, refused {result["refused"]}')
        roce = sorted(packets + [p for p in result['others'] if 'icrc' in p], key=lambda p: p['n'])
        bad += beside_wireshark(name, roce, [r for r in expected if r['file'] == name])
        text = run(program, capture)
        if text.count('\n') < result['frames']:
            bad.append(f'{name}: the text has fewer lines than frames')
        if '--make' in sys.argv and os.path.exists(path):
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
        if os.path.exists(path):
            compared += 1
            with open(path, encoding='utf-8') as f:
                if f.read() != text:
                    bad.append(f'{name}: differs from {path}:\n{text}')
    print('\n'.join(bad))
    return 1 if bad or not compared else 0


if __name__ == '__main__':
    sys.exit(main())
