# SPDX-License-Identifier: BSD-3-Clause
"""Every mode with every collective on three trees, and Open MPI beside them: what tools/demo --matrix runs."""
import argparse
import json
import os
import time

import incline_epic
import incline_mpi
from incline_fabric import Topology
from incline_lab import TOP

MPI = incline_epic.MPI  # beside the modes: Open MPI's own algorithms over the same RNICs
MODES = ('I', 'II', 'III', 'netreduce', MPI)
COLLECTIVES = ('allreduce', 'reduce', 'broadcast', 'barrier', 'reduce_scatter', 'allgather')
TREES = (('star', 'star4'), ('two-level', 'tree-2x2'), ('depth 4', 'deep4'))
HOSTS = {'incline': 'four software RNICs', 'soft-roce': 'four Linux Soft-RoCE virtual machines'}
BYTES, ITERS, TIMEOUT = 1 << 20, 10, 60

# The two-level tree is that of the paper.
EPIC_BESIDE = 'two-level'
EPIC_NOTE = ('EPIC: tables 19 to 24 of the paper: a spine, two leaves and four Soft-RoCE hosts in eight virtual machines, over libpcap,\n'
             'MTU 1024. The two-level tree beside it is the same one, with MTU 4096 and {}.')
BETWEEN = {'incline': 'memif between processes of one machine', 'soft-roce': 'vhost-user between virtual machines'}


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


def group_name(mode):
    return f'group-{mode}.json'


def write_group(lab, mode):
    """The fabric's group file, for this mode."""
    with open(lab.path('group.json')) as f:
        group = json.load(f)
    group['mode'] = mode
    group['fallback'] = False
    group['name'] = group['name'] + '-' + mode
    with open(lab.path(group_name(mode)), 'w') as f:
        json.dump(group, f)


def row_of(mode, collective, tree, n_hosts, dtype, size, us, wrong):
    """wrong: elements, None: it did not end well."""
    return {'mode': mode, 'collective': collective, 'tree': tree, 'hosts': n_hosts, 'dtype': dtype, 'bytes': size, 'time_us': us,
            'algbw_gbps': size * 8 / us / 1000 if us else None, 'wrong': wrong}


def run_mpi(lab, path, tree, hosts, collective, size, iters, say, *, mode=MPI, transport=incline_mpi.RDMA, timeout=TIMEOUT):
    us, wrong, said = incline_mpi.run(lab, path, hosts, collective, size, iters, timeout, transport)
    if said:
        say(f'Open MPI, {collective}: {said}')
    return row_of(mode, collective, tree, len(hosts), 'float', size, us, wrong)


def run_mode(lab, mode, tree, n_hosts, collective, size, iters, dtype, run_ranks, timeout=TIMEOUT, more=()):
    """In the group of this mode (write_group). more: of incline-perf."""
    out = lab.path(f'matrix-{mode}.out')
    if os.path.exists(out):
        os.remove(out)
    argv = ['--collective', collective, '-b', str(size), '-e', str(size), '-n', str(iters), '-w', '2', '-d', dtype, *more]
    ok = run_ranks(lab, 'incline-perf', lambda r: argv + (['--json', out] if r == 0 else []), group_name(mode), timeout, show=False)
    try:
        with open(out) as f:
            results = json.load(f)
        row = next(v for v in results.values() if isinstance(v, list))[0]
    except (OSError, ValueError, StopIteration, IndexError):
        row = {}
    return {**row_of(mode, collective, tree, n_hosts, dtype, row.get('bytes', size), row.get('time_us'), row.get('wrong') if ok else None),
            'algbw_gbps': row.get('algbw_gbps')}


def run_all(lab, tree, topo, mode, run_ranks, say, args):
    """Every collective of a mode."""
    if mode == MPI:
        hosts, path = [h['name'] for h in topo.hosts], incline_mpi.program(lab.dir)
        return [run_mpi(lab, path, tree, hosts, c, BYTES, args.iters, say) for c in COLLECTIVES]
    write_group(lab, mode)
    return [run_mode(lab, mode, tree, len(topo.hosts), c, BYTES, args.iters, args.dtype, run_ranks) for c in collectives_of(mode)]


def rate(row):
    """Throughput as EPIC prints it: Mb/s, of barriers operations per second."""
    if row['wrong'] is None:
        return 'failed'
    if row['collective'] == 'barrier':
        return f"{1e6 / row['time_us']:.0f}/s"
    return f"{row['algbw_gbps'] * 1000:.0f}"


def beside(tree, cell, epic):
    """A cell, with EPIC's figure after it where the trees are alike."""
    return cell + (f"{'' if epic is None else epic if isinstance(epic, str) else round(epic):>8}" if tree == EPIC_BESIDE else '')


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
                cells.append(beside(name, f'{cell:>18}', incline_epic.of(collective, mode, BYTES)))
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
                    new = run_all(lab, tree, topo, mode, run_ranks, say, args)
                    bad = [r['collective'] for r in new if r['wrong'] != 0]
                    say(f'{tree}, mode {mode}: {len(new) - len(bad)} of {len(new)} exact in '
                        f"{time.monotonic() - start:.0f} s" + (f", not {', '.join(bad)}" if bad else ''))
                    rows += new
            finally:
                lab.down()
    show(rows, args.hosts)
    return rows
