# SPDX-License-Identifier: BSD-3-Clause
"""Every mode with every collective on three trees, and Open MPI beside them: what tools/demo --matrix runs."""
import argparse
import json
import os
import time

import incline_mpi
from incline_fabric import Topology
from incline_lab import TOP

MPI = 'mpi'  # beside the modes: Open MPI's own algorithms over the same RNICs
MODES = ('I', 'II', 'III', 'netreduce', MPI)
COLLECTIVES = ('allreduce', 'reduce', 'broadcast', 'barrier', 'reduce_scatter', 'allgather')
TREES = (('star', 'star4'), ('two-level', 'tree-2x2'), ('depth 4', 'deep4'))
HOSTS = {'incline': 'four software RNICs', 'soft-roce': 'four Linux Soft-RoCE virtual machines'}
BYTES, ITERS, TIMEOUT = 1 << 20, 10, 60

# EPIC, tables 19 to 24, at 1 MB: Mb/s on a tree of three switches and four hosts with Soft-RoCE, each in a virtual
# machine, over libpcap, with MTU 1024 (barrier: per second). The two-level tree here is the same one.
EPIC_BESIDE = 'two-level'
EPIC_NOTE = ('EPIC: tables 19 to 24 of the paper: a spine, two leaves and four Soft-RoCE hosts in eight virtual machines, over libpcap,\n'
             'MTU 1024. The two-level tree beside it is the same one, with MTU 4096 and {}.')
BETWEEN = {'incline': 'memif between processes of one machine', 'soft-roce': 'vhost-user between virtual machines'}
EPIC_MBPS = {'allreduce': {'I': 182, 'II': 89, 'III': 73, MPI: 74}, 'reduce': {'I': 210, 'II': 99, 'III': 106, MPI: 52},
             'reduce_scatter': {'I': 72, 'II': 105, 'III': 95, MPI: 74}, 'broadcast': {'I': 79, 'II': 125, 'III': 230, MPI: 222},
             'allgather': {'I': 282, 'II': 200, 'III': 3, MPI: 194}, 'barrier': {'I': 1331, 'II': 590, 'III': 2502, MPI: 38}}


def modes(text, known=MODES):
    """The modes of a list with commas, for argparse."""
    words = text.split(',')
    for word in words:
        if word not in known:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(known)}")
    return words


def collectives_of(mode):
    """NetReduce is an AllReduce and nothing else (its paper, section 3)."""
    return ('allreduce',) if mode == 'netreduce' else COLLECTIVES


def topology(fabric, nic):
    with open(os.path.join(TOP, 'tools/fabrics', fabric + '.json')) as f:
        config = json.load(f)
    for host in config['hosts']:
        host['nic'] = nic
    return Topology(config)


def write_group(lab, mode):
    """The fabric's group file, for this mode."""
    with open(lab.path('group.json')) as f:
        group = json.load(f)
    group['mode'] = mode
    group['fallback'] = False
    group['name'] = group['name'] + '-' + mode
    path = lab.path(f'group-{mode}.json')
    with open(path, 'w') as f:
        json.dump(group, f)
    return os.path.basename(path)


def run_mpi(lab, tree, hosts, say, args):
    rows, path = [], incline_mpi.program(lab.dir)
    for collective in COLLECTIVES:
        us, wrong, said = incline_mpi.run(lab, path, hosts, collective, BYTES, args.iters, TIMEOUT)
        if said:
            say(f'Open MPI, {collective}: {said}')
        rows.append({'mode': MPI, 'collective': collective, 'tree': tree, 'hosts': len(hosts), 'dtype': 'float', 'bytes': BYTES,
                     'time_us': us, 'algbw_gbps': BYTES * 8 / us / 1000 if us else None, 'wrong': wrong})
    return rows


def run_mode(lab, mode, tree, n_hosts, run_ranks, args):
    out = lab.path(f'matrix-{mode}.out')
    group = write_group(lab, mode)
    rows = []
    for collective in collectives_of(mode):
        if os.path.exists(out):
            os.remove(out)
        ok = run_ranks(lab, 'incline-perf',
                       lambda r: ['--collective', collective, '-b', str(BYTES), '-e', str(BYTES), '-n', str(args.iters),
                                  '-w', '2', '-d', args.dtype] + (['--json', out] if r == 0 else []), group, TIMEOUT,
                       show=False)
        try:
            with open(out) as f:
                results = json.load(f)
            row = next(v for v in results.values() if isinstance(v, list))[0]
        except (OSError, ValueError, StopIteration, IndexError):
            row = {}
        rows.append({'mode': mode, 'collective': collective, 'tree': tree, 'hosts': n_hosts, 'dtype': args.dtype,
                     'bytes': row.get('bytes', BYTES), 'time_us': row.get('time_us'),
                     'algbw_gbps': row.get('algbw_gbps'), 'wrong': row.get('wrong') if ok else None})
    return rows


def rate(row):
    """Throughput as EPIC prints it: Mb/s, of barriers operations per second."""
    if row['wrong'] is None:
        return 'failed'
    if row['collective'] == 'barrier':
        return f"{1e6 / row['time_us']:.0f}/s"
    return f"{row['algbw_gbps'] * 1000:.0f}"


def beside(tree, cell, epic):
    """A cell, with EPIC's figure after it where the trees are alike."""
    return cell + (f'{epic:>8}' if tree == EPIC_BESIDE else '')


def show(rows, hosts):
    print(f'\n{HOSTS[hosts]}, {BYTES} bytes, Mb/s (algbw = bytes / time; barrier: operations per second), #wrong')
    print(f"{'mode':<10}{'collective':<16}" + ''.join(beside(name, f'{name:>18}', 'EPIC') for name, _ in TREES))
    for mode in dict.fromkeys(r['mode'] for r in rows):
        for collective in collectives_of(mode):
            cells = []
            for name, _ in TREES:
                row = next((r for r in rows if (r['mode'], r['collective'], r['tree']) == (mode, collective, name)),
                           None)
                cell = '' if row is None else f"{rate(row)} #{'-' if row['wrong'] is None else row['wrong']}"
                cells.append(beside(name, f'{cell:>18}', EPIC_MBPS.get(collective, {}).get(mode, '')))
            print(f'{mode:<10}{collective:<16}' + ''.join(cells))
    print(EPIC_NOTE.format(BETWEEN[hosts]), flush=True)


def run(lab_of, run_ranks, say, args):
    """lab_of() makes a Lab; run_ranks as the demo's. Returns the rows."""
    rows, modes = [], list(args.modes)
    why = 'ranks in virtual machines' if args.hosts == 'soft-roce' else incline_mpi.why_not()
    if MPI in modes and why:
        modes.remove(MPI)
        say(f'without Open MPI: {why}')
    # Virtual machines take long to boot; else every mode has a fabric of its own.
    together = [modes] if args.hosts == 'soft-roce' else [[m] for m in modes]
    for tree, fabric in TREES:
        topo = topology(fabric, args.hosts)
        for some in together:
            lab = lab_of()
            lab.up(topo)
            try:
                for mode in some:
                    start = time.monotonic()
                    new = (run_mpi(lab, tree, [h['name'] for h in topo.hosts], say, args) if mode == MPI
                           else run_mode(lab, mode, tree, len(topo.hosts), run_ranks, args))
                    bad = [r['collective'] for r in new if r['wrong'] != 0]
                    say(f'{tree}, mode {mode}: {len(new) - len(bad)} of {len(new)} exact in '
                        f"{time.monotonic() - start:.0f} s" + (f", not {', '.join(bad)}" if bad else ''))
                    rows += new
            finally:
                lab.down()
    show(rows, args.hosts)
    return rows
