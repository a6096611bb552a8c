# SPDX-License-Identifier: BSD-3-Clause
"""EPIC's emulation, tables 3 and 19 to 24, on its tree: every collective by size in three modes, and by Open MPI over the same switches: what tools/demo --paper runs."""
import argparse
import os
import time

import incline_epic
import incline_matrix
import incline_mpi
import incline_netns
from incline_epic import MPI, MPI_ICRC, SIZES
from incline_matrix import COLLECTIVES, EPIC_BESIDE

# Open MPI over the software RNIC; the same, and the switches compute each ICRC anew; over the kernel's TCP.
MPI_TCP = 'mpi-tcp'
SOLUTIONS = 'I', 'II', 'III', MPI, MPI_ICRC, MPI_TCP
FABRIC = dict(incline_matrix.TREES)[EPIC_BESIDE]
ICRC = {'icrc': True}
RANKS, BUFFERS = 4, 2  # of a rank, each of the whole vector
OFTEN, SELDOM = 16 << 20, 3  # beyond so many bytes an operation is timed so often at most
WARM_UP, SET_UP_S, GUESS_GBPS, PATIENCE = 3, 3, 0.1, 60  # operations (one is checked); of a cell; before anything is known; seconds
RATE = 1 << 20  # bytes from which on it is a rate that decides


def size(text):
    """4K, 1M, 1G: of those that the paper has."""
    unit = {'K': 10, 'M': 20, 'G': 30}.get(text[-1:].upper())
    value = int(text[:-1]) << unit if unit and text[:-1].isdigit() else 0
    if value not in SIZES:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(map(short, SIZES))}")
    return value


def sizes(text):
    return [size(word) for word in text.split(',')]


def short(value):
    return next(f'{value >> shift}{unit}' for shift, unit in ((30, 'G'), (20, 'M'), (10, 'K')) if value >> shift)


def available():
    with open('/proc/meminfo') as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith('MemAvailable:'))


def fitting(wanted, free):
    """(sizes that fit into half of the memory, what is said of the others)"""
    fit = [s for s in wanted if s * RANKS * BUFFERS <= free / 2]
    cut = [s for s in wanted if s not in fit]
    return fit, [f"{', '.join(map(short, cut))} left out: {RANKS} ranks with {BUFFERS} buffers take {short(min(cut) * RANKS * BUFFERS)} and more, "
                 f'half of the memory that is free is {free / 2 / (1 << 30):.1f} GB'] if cut else []


def iterations(value, n):
    return n if value <= OFTEN else min(n, SELDOM)


def cells_of(solutions, of_sizes):
    """(solution, collective, size) in the order in which they are measured; of a barrier there is one."""
    return [(s, c, v) for s in solutions for c in COLLECTIVES for v in (of_sizes if c != 'barrier' else of_sizes[:1])]


class Estimate:
    """How long cells will take, from those that have been measured: all of it, with starting ranks, making vectors and checking them."""

    def __init__(self, n):
        self.n, self.took = n, {}

    def work(self, cell):
        """Bytes of all its operations."""
        return 0 if cell[1] == 'barrier' else cell[2] * (iterations(cell[2], self.n) + WARM_UP)

    def note(self, cell, seconds):
        self.took[cell] = seconds

    def nearest(self, cell):
        """The measured cell that is most like it: the next smaller size, else the next larger one."""
        like = (lambda k: k[:2] == cell[:2], lambda k: k[0] == cell[0], lambda k: True)
        known = next(filter(None, ([k for k in self.took if k[1] != 'barrier' and same(k)] for same in like)), [])
        return max(known, key=lambda k: (k[2] <= cell[2], k[2] if k[2] <= cell[2] else -k[2]), default=None)

    def one(self, cell):
        start = min((s for k, s in self.took.items() if k[0] == cell[0]), default=SET_UP_S)
        near, guess = self.nearest(cell), self.work(cell) * 8e-9 / GUESS_GBPS
        if near is None:
            return start + guess
        grown = max(0, self.took[near] - start) * self.work(cell) / self.work(near)
        # What is short takes as long as it takes to begin, which says nothing of rates.
        return start + (grown if near[2] >= min(RATE, cell[2]) else min(grown, guess))

    def seconds(self, cells):
        return sum(map(self.one, cells))

    def limit(self, cell):
        """What hangs, not what is slow."""
        return PATIENCE + 10 * max(self.one(cell), self.work(cell) * 8e-9 / GUESS_GBPS)


def until(seconds, now):
    return f'{seconds / 60:.0f} min more, until {time.strftime("%H:%M", time.localtime(now + seconds))}'


def throughput(row):
    """As the paper prints it: Mb/s, of barriers operations per second; None: not measured."""
    if row['wrong'] is None or not row['time_us']:
        return None
    return 1e6 / row['time_us'] if row['collective'] == 'barrier' else row['bytes'] * 8 / row['time_us']


def name(row):
    return ' '.join([row['mode'], row['collective'], *([] if row['collective'] == 'barrier' else [short(row['bytes'])])])


def outcome(row):
    if row['wrong'] is None:
        return 'failed'
    return f"{number(throughput(row))} {'per second' if row['collective'] == 'barrier' else 'Mb/s'}, {row['wrong']} wrong"


def tables(rows):
    """As tools/plot draws them: ours, and the paper's if it has one."""
    out = []
    for collective, number in incline_epic.TABLES.items():
        cells = [{'at': 'barrier' if collective == 'barrier' else short(r['bytes']), 'solution': r['mode'], 'ours': throughput(r),
                  'paper': incline_epic.of(collective, r['mode'], r['bytes'])} for r in rows if r['collective'] == collective]
        if cells:
            out.append({'table': number, 'title': incline_epic.TITLES[collective], 'unit': 'operations per second' if collective == 'barrier' else 'Mb/s',
                        'log': collective != 'barrier', 'rows': cells})
    return out


def number(value):
    return '-' if value is None else f'{value:.2f}' if value < 10 else f'{value:.0f}'


def text(table):
    """Lines: sizes down, solutions across, each with the paper's figure on its right."""
    solutions = list(dict.fromkeys(c['solution'] for c in table['rows']))
    cell = {(c['at'], c['solution']): c for c in table['rows']}
    lines = [f"\nTable {table['table']}{' (and 3)' if table['table'] == 19 else ''}: {table['title']}, {table['unit']}",
             f"{'':8}" + ''.join(f'{s:>10}{"EPIC":>8}' for s in solutions)]
    for at in dict.fromkeys(c['at'] for c in table['rows']):
        found = [cell.get((at, s)) for s in solutions]
        lines.append(f'{at:8}' + ''.join(f"{number(c['ours']):>10}{number(c['paper']):>8}" if c else ' ' * 18 for c in found))
    return lines


def verdict(rows):
    """How often ours is more than the paper's, and where it is not."""
    compared = [(r, throughput(r) or 0, paper) for r in rows if (paper := incline_epic.of(r['collective'], r['mode'], r['bytes']))]
    less = [name(r) for r, ours, paper in compared if ours <= paper]
    said = f'more than the paper in {len(compared) - len(less)} of {len(compared)} cells'
    return said + (f", not in: {', '.join(less)}" if less else '')


def why_not(solution):
    """Why it cannot be measured here, or None."""
    if not solution.startswith(MPI):
        return None
    return incline_mpi.why_not() or (incline_netns.why_not() if solution == MPI_TCP else None)


def measure(lab, cell, hosts, program, run_ranks, say, n, limit):
    solution, collective, value = cell
    times = iterations(value, n)
    if solution.startswith(MPI):
        row = incline_matrix.run_mpi(lab, program, EPIC_BESIDE, hosts, collective, value, times, say, mode=solution, timeout=limit,
                                     transport=incline_mpi.TCP if solution == MPI_TCP else incline_mpi.RDMA)
    else:
        row = incline_matrix.run_mode(lab, solution, EPIC_BESIDE, len(hosts), collective, value, times, 'float', run_ranks, limit,
                                      ['--timeout', str(PATIENCE * 1000)])  # a rank that makes a vector of 1 GB is not gone
    return {**row, 'iters': times}


def run(lab_of, run_ranks, say, args, save=lambda rows, notes: None, clock=time):
    """(rows, notes); save is called after each, for who has no patience. lab_of() makes a Lab."""
    (wanted, notes), load = fitting(args.sizes, available()), os.getloadavg()[0]
    solutions = []
    for s in args.solutions:
        why = why_not(s)
        notes += [f'without {s}: {why}'] if why else []
        solutions += [] if why else [s]
    notes.append(f'{os.cpu_count()} CPUs, load {load:.1f} before')
    for note in notes:
        say(note)
    topo = incline_matrix.topology(FABRIC, 'incline')
    hosts, rows, estimate, cells = [h['name'] for h in topo.hosts], [], Estimate(args.iters), cells_of(solutions, wanted)
    for solution in solutions:
        lab = lab_of()
        lab.up(topo, ICRC if solution == MPI_ICRC else None, netns=solution == MPI_TCP)
        try:
            program = incline_mpi.program(lab.dir) if solution.startswith(MPI) else incline_matrix.write_group(lab, solution)
            for cell in [c for c in cells if c[0] == solution]:
                start = clock.monotonic()
                row = measure(lab, cell, hosts, program, run_ranks, say, args.iters, estimate.limit(cell))
                if row['wrong'] is not None:  # how long one hung says nothing
                    estimate.note(cell, clock.monotonic() - start)
                rows.append(row)
                save(rows, notes)
                left = estimate.seconds(cells[len(rows):])
                say(f'{len(rows)} of {len(cells)}: {name(row)}: {outcome(row)}; {until(left, clock.time())}')
        finally:
            lab.down()
    return rows, notes


def show(rows, notes):
    for table in tables(rows):
        print('\n'.join(text(table)))
    print('\nEPIC: a spine, two leaves and four Soft-RoCE hosts in eight virtual machines, over libpcap, MTU 1024. Ours: the same tree of processes '
          'on one\nmachine, MTU 4096; mpi: Open MPI over the software RNIC, mpi-icrc: and the switches compute every ICRC anew, mpi-tcp: over the '
          "kernel's TCP.\n" + verdict(rows))
    for note in notes:
        print('# ' + note)
    print(end='', flush=True)
