# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench stream --cost: tables 2 and 3 and figures 1, 2 and 12 of ZeroNIC (OSDI '24) with columns of ours; part of stream.py.

bench-stream measures lib/stream and RC of our RNIC in one thread, frames handed over in memory; bench-tcp the kernel's TCP between
two network namespaces, over a veth of the same MTU with what it offloads. They take turns; a row is that of the round whose
Gb/s is the median.

Kernel: user time is the application, system time the rest, of both processes together, because a veth has the receiver's
protocol work done in the sender's name. Figure 1's emulated zero-copy is sendfile, and MSG_TRUNC where bytes are received; what
the same stream costs more with its copies is "data", as figure 2 has it. Of work in nobody's name there is none in it."""
import json
import os
import subprocess

import rnic
from incline_lab import build_dir

MTU = 9000
PARTS = ('application', 'control', 'data')
# Gb/s, per cent of a hyperthread at the receiver ("sys": control, "usr/soft": application), estimated most Gb/s.
PAPER = {
    'kernel': ('table 2, MLX TCP TX ZC off', 43.89, 94.15, 29.55, 46.61),
    'kernel, TX ZC': ('table 2, MLX TCP TX ZC on', 50.63, 100.0, 32.36, 50.63),
    'rc': ('table 2, MLX RoCE', 98.03, None, 9.58, None),
    'placed': ('table 2, ZeroNIC', 96.37, 17.20, 33.50, 560.29),
    'private to shared': ('table 3, CPU-GPU', 84.78, 16.31, 36.33, 519.80),
    'shared to shared': ('table 3, GPU-GPU', 38.59, 9.12, 32.50, 423.14),
}
KERNEL = (('kernel', [], []), ('kernel, TX ZC', [], ['-z']), ('kernel, TX and RX ZC', ['-t'], ['-z']))
ORDER = ('placed', 'copied', 'deferred', 'private to shared', 'shared to shared', 'rc', *(k[0] for k in KERNEL))


def paper(name):
    """Its row in our units: CPU seconds per GB of the receiver."""
    if name not in PAPER:
        return None
    place, gbps, control, application, most = PAPER[name]

    def per_gb(percent):
        return percent / 100 * 8 / gbps if percent is not None else None
    return {'place': place, 'gbps': gbps, 'control': per_gb(control), 'application': per_gb(application), 'max_gbps': most}


def ours(quick):
    """Rows and flows of one run of bench-stream."""
    program = os.path.join(build_dir(), 'tests/bench/bench-stream')
    return json.loads(subprocess.run([program, *(['--quick'] if quick else [])], check=True, stdout=subprocess.PIPE, text=True).stdout)


def kernel(veth, quick):
    rows, seconds = [], 1 if quick else 3
    for name, server, client in KERNEL:
        a, b = veth.stream(seconds, ['-n', *server], ['-n', *client])
        gb = b['bytes'] / 1e9
        rows.append({'way': name, 'gbps': a['gbps'], 'user': (a['user_s'] + b['user_s']) / gb,
                     'system': (a['system_s'] + b['system_s']) / gb})
    bare = rows[-1]['system']
    for row in rows:
        row['both'] = {'application': row.pop('user'), 'control': bare, 'data': row.pop('system') - bare}
    return rows


def medians(rounds):
    """Of several lists of rows, by name the row with the median of Gb/s; the names' order is kept."""
    found = {}
    for rows in rounds:
        for row in rows:
            found.setdefault(row.get('way', row.get('long')), []).append(row)
    return [sorted(rows, key=lambda r: r['gbps'])[(len(rows) - 1) // 2] for rows in found.values()]


def number(value, width, digits=3):
    return '-'.rjust(width) if value is None else f'{value:{width}.{digits}f}'


def least(tables):
    """Of tables with the same rows and columns, number by number."""
    return [{key: min(row[key] for row in rows) for key in rows[0]} for rows in zip(*tables)]


def show(rows, flows, placing):
    print(f'# MTU {MTU}, RC 4096. CPU seconds per GB, of both ends and of the receiver: application, control, data. most: Gb/s at '
          'which the receiver\'s control path fills a core.')
    print(f'{"":22}{"Gb/s":>7} {"appl.":>7} {"control":>7} {"data":>7} {"all":>7} |{"appl.":>7} {"control":>7} {"data":>7} '
          f'{"most":>7} | paper: Gb/s, appl., control (receiver), most')
    for row in rows:
        both, receiver, p = row['both'], row.get('receiver', {}), row['paper']
        line = f'{row["way"]:22}{row["gbps"]:7.2f} ' + ' '.join(number(both[k], 7) for k in PARTS) + f' {row["cpu_s_per_gb"]:7.3f} |'
        line += ' '.join(number(receiver.get(k), 7) for k in PARTS) + f' {number(row.get("max_gbps"), 7, 1)} |'
        if p:
            line += f' {p["gbps"]:6.2f} {number(p["application"], 6)} {number(p["control"], 6)} {number(p["max_gbps"], 7, 2)}  {p["place"]}'
        print(line)
    print('\n# figure 12: long flows beside one that exchanges 64 KB each way, in the same thread; the paper: up to 8 share evenly, p50 '
          'of the short one does not change')
    print(f'{"long":>5} {"Gb/s":>7} {"Jain":>7} {"p50 us":>8} {"p99 us":>8}')
    for row in flows:
        print(f'{row["long"]:5} {row["gbps"]:7.2f} {row["jain"]:7.4f} {row["p50_us"]:8.1f} {row["p99_us"]:8.1f}')
    print('\n# ns to place a packet: by the flow and its list (lib/place); by an RNIC\'s receive, and by the key of a WRITE')
    print(f'{"bytes":>5} {"list":>7} {"receive":>8} {"WRITE":>7}')
    for row in placing:
        print(f'{row["bytes"]:5} {row["list_ns"]:7.1f} {row["receive_ns"]:8.1f} {row["write_ns"]:7.1f}')


def ratios(rows):
    """CPU time per GB of what the others take for that of the placed bytes, and figure 2's share of copies."""
    by = {r['way']: r for r in rows}
    placed = by['placed']['cpu_s_per_gb']
    out = {f'{name} / placed': row['cpu_s_per_gb'] / placed for name, row in by.items() if name != 'placed'}
    if 'kernel, TX ZC' in by:
        row = by['kernel, TX ZC']
        out['share of copies, kernel, TX ZC'] = row['both']['data'] / row['cpu_s_per_gb']
    return out


def measure(rounds, quick, why_not):
    seen = {}
    if why_not:
        runs = [(ours(quick), []) for _ in range(rounds)]
    else:
        with rnic.Veth(MTU) as veth:
            runs = [(ours(quick), kernel(veth, quick)) for _ in range(rounds)]
    seen['rows'] = medians([a['rows'] + b for a, b in runs])
    seen['flows'] = medians([a['flows'] for a, _ in runs])
    seen['placing'] = least([a['placing'] for a, _ in runs])
    seen['rows'].sort(key=lambda r: ORDER.index(r['way']))
    for row in seen['rows']:
        row['cpu_s_per_gb'] = sum(row['both'][k] or 0 for k in PARTS)
        row['paper'] = paper(row['way'])
        row['least'], row['most'] = (f(r['gbps'] for a, b in runs for r in a['rows'] + b if r['way'] == row['way']) for f in (min, max))
    return seen


def main(args, why_not):
    rounds = args.rounds or (1 if args.quick else 3)
    load = os.getloadavg()[0]
    print(f'# tables 2 and 3, figures 1, 2 and 12; {rounds} round(s), medians; load average before: {load:.1f}')
    if why_not:
        print(f'# kernel: left out, {why_not}')
    result = {'bench': 'stream-cost', 'mtu': MTU, 'rounds': rounds, 'load': load, **measure(rounds, args.quick, why_not)}
    result['ratios'] = ratios(result['rows'])
    show(result['rows'], result['flows'], result['placing'])
    print()
    for key, value in result['ratios'].items():
        print(f'{key}: {value:.2f}')
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump(result, f, indent=1)
            f.write('\n')
    return 0
