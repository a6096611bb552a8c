#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/bench rnic: the software RNIC beside what else there is, in one run on one machine.

1. Two RNICs on one core, and the copies and CRCs that cannot be left out (bench-rnic).
2. perftest's programs, unmodified, between two hosts of tools/lab through incline-switch; between two Linux hosts with
   Soft-RoCE in virtual machines through the same switch; kernel TCP between two network namespaces over a veth pair
   (root). They take turns; the best of the rounds counts for each. Latency is half of a round trip of 8 bytes: of SENDs
   whose completions are polled (ib_send_lat), of WRITEs whose last byte is polled (ib_write_lat), and of SENDs whose
   completions are slept for (ib_send_lat -e).

  tools/bench rnic [--quick] [--json FILE] [--no-guests]

The guests are emulated where the machine has no KVM, which the output says: Soft-RoCE on real hosts is faster."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
import incline_guest  # noqa: E402
from incline_fabric import LabError, Topology  # noqa: E402
from incline_lab import Lab, build_dir, free_port  # noqa: E402
from incline_processes import end_on_signals  # noqa: E402

LIMIT = 180
POINTS = {'p50_us': 0.5, 'p99_us': 0.99, 'p99.9_us': 0.999, 'p99.99_us': 0.9999}
# What waits, and how; the first is what TCP is compared with.
LATENCIES = {'': ['ib_send_lat'], 'write.': ['ib_write_lat'], 'events.': ['ib_send_lat', '-e']}


def fabric(guests):
    hosts = [{'name': f'h{i}', 'ip': f'10.77.0.{10 + i}', 'switch': 's0', **({'nic': 'soft-roce'} if i >= 2 else {})}
             for i in range(4 if guests else 2)]
    return Topology({'name': 'bench', 'mtu': 4200, 'hosts': hosts, 'switches': [{'name': 's0', 'ip': '10.77.255.1'}]})


def perftest(lab, server, client, program, options, report=()):
    """What the client says; report: options of its alone, as nobody reads the server before its end."""
    guest = lab.host(client)['nic'] == 'soft-roce'
    port = 18600 if guest else free_port()
    argv = [program, '-x', '1', '-F', '-u', '20', '-p', str(port), *options, *(['-e', '-d', 'rxe0'] if guest else [])]
    pipes = {'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT if not guest else subprocess.PIPE}
    text = {} if guest else {'text': True}
    a = lab.popen(server, argv, limit=LIMIT, **pipes, **text)
    if guest:
        lab.guest(server).run(f'listening {port}', LIMIT)
    else:
        subprocess.run(['sh', '-c', f'until ss -Hltn sport = :{port} | grep -q .; do sleep 0.05; done'],
                       timeout=LIMIT, check=True)
    b = lab.popen(client, argv + [*report, lab.host(server)['ip'] if guest else '127.0.0.1'], limit=LIMIT, **pipes, **text)
    out = b.communicate(timeout=LIMIT)[0]
    a.communicate(timeout=LIMIT)
    if b.returncode:
        raise LabError(f'{" ".join(argv)}: exit status {b.returncode}\n{out}')
    return out


def last_row(out):
    """perftest's last row of figures."""
    rows = re.findall(r'^ *(\d+ +\d+[ \t]+[\d.]+[\d. \t]+)$', out, re.M)
    if not rows:
        raise LabError(f'no row of figures in:\n{out}')
    return [float(v) for v in rows[-1].split()]


def points(out):
    """Percentiles of what perftest prints with -H: each measurement on a line, with its number."""
    us = sorted(float(v) for v in re.findall(r'^\d+, ([\d.]+)$', out, re.M))
    if not us:
        raise LabError(f'no measurements in:\n{out}')
    return {key: us[min(int(at * len(us)), len(us) - 1)] for key, at in POINTS.items()}


def latencies(lab, server, client, quick):
    """Half of a round trip of 8 bytes."""
    if lab.host(client)['nic'] == 'soft-roce':
        # bytes, iterations, min, max, typical, average, deviation, 99 %, 99.9 %
        row = last_row(perftest(lab, server, client, 'ib_send_lat', ['-s', '8', '-n', '200']))
        return {'p50_us': row[4], 'p99_us': row[7], 'p99.9_us': row[8]}
    found = {}
    for prefix, (program, *options) in LATENCIES.items():
        out = perftest(lab, server, client, program, ['-s', '8', '-n', '10000' if quick else '100000', *options], ['-H'])
        found.update({prefix + key: value for key, value in points(out).items()})
    return found


def verbs(lab, server, client, quick):
    """Bandwidth of messages of 64 KB, rate of messages of 64 bytes, latencies."""
    guest = lab.host(client)['nic'] == 'soft-roce'
    n = 200 if guest else 5000 if quick else 20000
    # columns: bytes, iterations, peak and average MB/s, Mmsg/s
    wide = last_row(perftest(lab, server, client, 'ib_send_bw', ['-s', '65536', '-m', '4096', '-n', str(n)]))
    small = last_row(perftest(lab, server, client, 'ib_send_bw', ['-s', '64', '-n', str(10 * n)]))
    return {'gbps': wide[3] * 8 * 1.048576e-3, 'messages_per_s': small[4] * 1e6, **latencies(lab, server, client, quick)}


class Veth:
    """Two network namespaces of our own, and a cable."""

    def __init__(self, mtu=4200):
        self.mtu = mtu
        self.names = [f'incline-bench-{os.getpid()}-{i}' for i in range(2)]

    def __enter__(self):
        a, b = self.names
        for words in (f'netns add {a}', f'netns add {b}', f'link add v0 mtu {self.mtu} netns {a} type veth peer name v1 mtu {self.mtu} netns {b}',
                      f'-n {a} addr add 10.78.0.1/24 dev v0', f'-n {b} addr add 10.78.0.2/24 dev v1',
                      f'-n {a} link set v0 up', f'-n {b} link set v1 up'):
            subprocess.run(['ip', *words.split()], check=True, capture_output=True, text=True)
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(['ip', 'netns', 'del', name], capture_output=True)

    def within(self, end, argv):
        return ['ip', 'netns', 'exec', self.names[end], *argv]

    def stream(self, seconds, server=(), client=()):
        """What bench-tcp says at the client, and at the server."""
        program = os.path.join(build_dir(), 'tests/bench/bench-tcp')
        peer = subprocess.Popen(self.within(1, [program, '-l', *server, '10.78.0.2', '5201']), stdout=subprocess.PIPE, text=True)
        try:
            out = subprocess.run(self.within(0, [program, *client, '10.78.0.2', '5201', str(seconds)]), check=True, timeout=LIMIT,
                                 capture_output=True, text=True).stdout
            return json.loads(out), json.loads(peer.communicate(timeout=LIMIT)[0])
        finally:
            peer.kill()
            peer.communicate()

    def tcp(self, seconds):
        return {key: value for key, value in self.stream(seconds)[0].items() if not key.endswith('_s')}


def better(best, row):
    """Field by field: more bandwidth and messages, less latency."""
    for key, value in row.items():
        best[key] = (min if key.endswith('_us') else max)(best.get(key, value), value)


def take_turns(lab, guests, veth, rounds, quick):
    table = {'incline': {}}
    for i in range(rounds):
        print(f'# round {i + 1} of {rounds}', file=sys.stderr, flush=True)
        better(table['incline'], verbs(lab, 'h0', 'h1', quick))
        if guests:
            better(table.setdefault('soft-roce', {}), verbs(lab, 'h2', 'h3', quick))
        if veth:
            better(table.setdefault('tcp', {}), veth.tcp(1 if quick else 3))
    return table


def ratios(table):
    ours = table['incline']
    return {f'{name}.{key}': ours[key] / row[key] for name, row in table.items() if name != 'incline'
            for key in row if row[key]}


def messages(row):
    """Of a stream of bytes there are none."""
    return f"{row['messages_per_s']:.0f}" if 'messages_per_s' in row else '-'


def show(table, compared, notes):
    print(f"{'through one switch':20} {'Gb/s':>9} {'msg/s':>10}")
    for name, row in table.items():
        print(f"{name:20} {row['gbps']:9.3f} {messages(row):>10}")
    print(f"\n{'half a round trip, us':36}" + ' '.join(f'{key.removesuffix("_us"):>9}' for key in POINTS))
    for name, row in table.items():
        for prefix, argv in LATENCIES.items():
            if prefix + 'p50_us' in row:
                print(f"{name:20}{'' if name == 'tcp' else ' '.join(argv):16}"
                      + ' '.join(f'{row[prefix + k]:9.1f}' if prefix + k in row else f"{'-':>9}" for k in POINTS))
    print()
    for key, value in compared.items():
        print(f'incline / {key}: {value:.3f}')
    for text in notes:
        print('# ' + text)


def processes(args):
    notes = []
    why = 'not asked for' if args.no_guests else incline_guest.why_not()
    if why:
        notes.append(f'no Soft-RoCE guests: {why}')
    elif not incline_guest.has_kvm():
        notes.append('the guests are emulated: no KVM here')
    if os.geteuid() != 0:
        notes.append('no TCP over veth: that takes root')
    lab = Lab(tempfile.mkdtemp(prefix='incline-'))
    try:
        lab.up(fabric(not why))
        if os.geteuid() == 0:
            with Veth() as veth:
                return take_turns(lab, not why, veth, 1 if args.quick else 3, args.quick), notes
        return take_turns(lab, not why, None, 1 if args.quick else 3, args.quick), notes
    finally:
        lab.down()
        shutil.rmtree(lab.dir, ignore_errors=True)


def run_program(name, quick):
    with tempfile.NamedTemporaryFile(suffix='.json') as f:
        subprocess.run([os.path.join(build_dir(), 'tests/bench', name), '--json', f.name,
                        *(['--quick'] if quick else [])], check=True)
        return json.load(f)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--json', metavar='FILE')
    parser.add_argument('--no-guests', action='store_true')
    args = parser.parse_args()
    end_on_signals()
    result = run_program('bench-rnic', args.quick)
    table, notes = processes(args)
    compared = ratios(table)
    show(table, compared, notes)
    if args.json:
        result.update({'through_switch': table, 'ratios': compared, 'notes': notes})
        with open(args.json, 'w') as f:
            json.dump(result, f, indent=1)
            f.write('\n')
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (LabError, incline_guest.GuestError, subprocess.SubprocessError, OSError) as e:
        sys.exit(f'bench rnic: {e}')
