#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every operation of the software RNIC against Linux Soft-RoCE, with either and with both as the one that asks:
verbs_ops on a host of ours and in a guest, or, with --ours, on two hosts of ours (no guests). IPv4 and IPv6,
MTU 1024 and 4096, receivers that are not ready, refused requests, PSNs that wrap, and a switch that loses
requests, acknowledgements, READ responses or atomics' answers. Then the same requests from our RNIC and from
Soft-RoCE, to our RNIC and to Soft-RoCE, captured: the conversations must be the same, packet by packet.

  tests/interop/operations.py [--ours] [CASE...]    only the cases whose name has one of these words

Exit status 0: all was as it should be; 77: guests cannot run here, and why."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, 'tools'), os.path.join(TOP, 'tests/integration')]
import incline_guest  # noqa: E402
from incline_fabric import LabError, Topology  # noqa: E402
from incline_lab import Lab, build_dir, free_port  # noqa: E402
from incline_processes import end_on_signals  # noqa: E402
os.environ.setdefault('INCLINE_BUILD', build_dir())
import captures  # noqa: E402
import checks  # noqa: E402

LIMIT = 200  # seconds for a pair of programs: hangs only
PROGRAM = os.path.join(build_dir(), 'tests/interop/verbs_ops')
FAMILIES = {'IPv4': 1, 'IPv6': 2}  # index of the GID, in guests as on our hosts

RC = ['send:0', 'send:1', 'sendimm:1023', 'sendinv:1025', 'write:3', 'writeimm:4096', 'read:1', 'read:4097', 'cas',
      'fadd', 'send:9000', 'sendinv:7', 'write:60000', 'writeimm:0', 'read:60000', 'fadd', 'cas', 'sendimm:0']
UC = ['send:0', 'send:1', 'sendimm:1023', 'write:3', 'writeimm:4096', 'send:9000', 'write:20000', 'writeimm:0']
UD = ['send:0', 'send:1', 'sendimm:1000', 'send:3', 'sendimm:0', 'send:1024']
REFUSED = ['badwrite:5000', 'badread:5000', 'badcas', 'farwrite:5000', 'oddfadd', 'longsend:3000', 'norecv:3000']

REQUESTS = (0x00, 0x01, 0x02, 0x04, 0x06, 0x07, 0x08, 0x0a, 0x0c, 0x13, 0x14)
ANSWERS = {'acknowledgements': [(0x11, 0.5)], 'READ responses': [(0x0d, 0.3), (0x0e, 0.03), (0x0f, 0.3), (0x10, 0.3)],
           "atomics' answers": [(0x12, 0.3)]}
SKIES = {
    'fine': None,
    'lost requests': {'seed': 2026, 'lose': [{'opcode': o, 'loss': 0.03 if o in (0x01, 0x07) else 0.15} for o in REQUESTS]},
    **{'lost ' + what: {'seed': 2026, 'lose': [{'opcode': o, 'loss': p} for o, p in rows]} for what, rows in ANSWERS.items()},
    'bad weather': {'loss': 0.02, 'dup': 0.02, 'reorder': 0.02, 'corrupt': 0.02, 'seed': 2026},
}


class Failure(Exception):
    pass


def fabric(ours):
    hosts = [{'name': f'h{i}', 'ip': f'10.77.0.{10 + i}', 'ip6': f'fd77::{10 + i}', 'switch': 's0',
              **({} if ours or i == 0 else {'nic': 'soft-roce'})} for i in range(2 if ours else 3)]
    return Topology({'name': 'operations', 'mtu': 4200, 'hosts': hosts,
                     'switches': [{'name': 's0', 'ip': '10.77.255.1', 'ip6': 'fd77::ff:1'}]})


def pair(lab, topo, hosts, options):
    """verbs_ops on two hosts, the first listens. Guests reach this machine; two guests meet in the fabric."""
    listener, connector = hosts
    guests = [h['name'] for h in topo.guests]
    port = free_port() if listener not in guests else 18700
    host = '127.0.0.1' if connector not in guests else incline_guest.GATEWAY if listener not in guests else \
        lab.host(listener)['ip']
    procs = []
    for name, at in (listener, ['-l', str(port)]), (connector, ['-c', f'{host}:{port}']):
        procs.append(lab.popen(name, [PROGRAM, *at, *options], limit=LIMIT, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, **({} if name in guests else {'text': True})))
    ends = [checks.end(p, LIMIT) for p in procs]
    if any(rc for rc, _, _ in ends):
        raise Failure('\n'.join(f'{name}: exit status {rc}: {(out + err).strip()}'
                                for name, (rc, out, err) in zip(hosts, ends)))


# ---- cases: (name, sky, function(lab, topo) -> None) ----

def operations(kind, ops, extra=(), times=2):
    def run(lab, topo):
        pair(lab, topo, (topo.hosts[0]['name'], topo.hosts[1]['name']),
             ['-t', kind, '-n', str(times), *extra, *ops])
    return run


def cases():
    rows = []
    for family, gid in FAMILIES.items():
        for mtu in 1024, 4096:
            for side in 'listener', 'connector', 'both':
                for kind, ops in ('rc', RC), ('uc', UC), ('ud', UD):
                    rows.append((f'{kind.upper()}, {family}, MTU {mtu}, {side}', 'fine', operations(
                        kind, ops, ['-g', str(gid), '-m', str(mtu), '-a', side])))
    for side in 'listener', 'connector', 'both':
        rows.append((f'PSN wrap, {side}', 'fine', operations('rc', RC, ['-p', '0xffffe0', '-a', side])))
        rows.append((f'late receives, {side}', 'fine', operations('rc', RC, ['-d', '200', '-a', side])))
        for sky in list(SKIES)[1:]:
            rows.append((f'{sky}, {side}', sky, operations('rc', RC, ['-a', side], times=6)))
    for side in 'listener', 'connector':
        for op in REFUSED:
            if op == 'oddfadd' and side == 'connector':
                continue  # the library of Soft-RoCE does not take the request
            rows.append((f'{op.split(":")[0]}, {side}', 'fine',
                         operations('rc', ['write:100', 'send:3000', op], ['-a', side], times=1)))
    return rows


# ---- conversations ----

FIELDS = ('ip.src', 'infiniband.bth.opcode', 'infiniband.bth.psn', 'infiniband.bth.a', 'infiniband.bth.padcnt',
          'infiniband.reth.dmalen', 'infiniband.aeth.syndrome', 'infiniband.aeth.msn', 'udp.length')
SERIAL = ['send:0', 'send:1', 'sendimm:1023', 'send:3000', 'sendinv:1025', 'write:3', 'write:2500', 'writeimm:4096',
          'writeimm:0', 'read:1', 'read:1024', 'read:2500', 'cas', 'fadd', 'sendimm:2048']


def conversation(path, asker):
    """[(asks or answers, opcode, PSN from the first, ...)] as captured."""
    out = captures.run(['tshark', '-n', *captures.GUESSES, '-r', path, '-T', 'fields', '-E', 'separator=|']
                       + [a for f in FIELDS for a in ('-e', f)])
    rows = [line.split('|') for line in out.splitlines()]
    if not rows:
        raise Failure(f'{path}: nothing was captured')
    first = int(rows[0][2], 0)
    return [(('asks' if r[0] == asker else 'answers'), int(r[1], 0), (int(r[2], 0) - first) & 0xffffff, *r[3:])
            for r in rows]


def converse(lab, topo, asker, asked):
    """The plan, one operation at a time, as one of the two (a guest) sees it."""
    guests = [h['name'] for h in topo.guests]
    watcher = lab.guest(asked if asked in guests else asker)
    dump = watcher.popen('exec tcpdump -Z root -i data -s 0 -U --immediate-mode -B 16384 -w /tmp/o.pcap udp port 4791', LIMIT,
                         subprocess.PIPE, subprocess.PIPE)
    deadline = time.monotonic() + 30
    while 'listening on' not in dump.read('err'):
        if time.monotonic() > deadline or dump.poll() is not None:
            raise Failure(f'tcpdump: {dump.read("err")}')
        time.sleep(0.05)
    listener, side = (asked, 'connector') if asked not in guests or asker in guests else (asker, 'listener')
    pair(lab, topo, (listener, asker if listener == asked else asked),
         ['-1', '-a', side, '-p', '0x100', *SERIAL])
    watcher.run('sleep 0.5; killall -INT tcpdump')
    dump.wait(LIMIT)
    watcher.run(f'mv /tmp/o.pcap /host/o-{asker}-{asked}.pcap')
    return conversation(lab.path(f'o-{asker}-{asked}.pcap'), lab.host(asker)['ip'])


def conversations(lab, topo):
    """Soft-RoCE with itself is the measure."""
    ours, one, two = (h['name'] for h in topo.hosts)
    want = converse(lab, topo, one, two)
    for asker, asked in (ours, two), (one, ours):
        got = converse(lab, topo, asker, asked)
        for i, (g, w) in enumerate(zip(got, want)):
            if g != w:
                raise Failure(f'{asker} to {asked}, packet {i + 1}: {g}; Soft-RoCE with itself: {w}')
        if len(got) != len(want):
            raise Failure(f'{asker} to {asked}: {len(got)} packets; Soft-RoCE with itself: {len(want)}')
    return f'{len(want)} packets each, the same opcodes, PSNs, AckReqs, pads, lengths, syndromes and MSNs'


# ---- the suite ----

def fail(name, why, failures):
    failures.append(f'{name}: {checks.first_line(why)}')
    print(f'FAIL  {name}: {why}', flush=True)


def check(name, sky, function, lab, topo, failures):
    start = time.monotonic()
    try:
        said = checks.during(lab, ['s0'], SKIES[sky], function, lab, topo)
    except (Failure, LabError, incline_guest.GuestError, subprocess.SubprocessError, OSError, ValueError) as e:
        fail(name, checks.reason(e), failures)
    else:
        print(f"OK    {name} ({time.monotonic() - start:.1f} s){': ' + said if said else ''}", flush=True)


def under(sky, rows, lab, topo, failures):
    lab.impair('s0', SKIES[sky])
    before = checks.counts(lab, ['s0'])
    for name, _, function in rows:
        check(name, sky, function, lab, topo, failures)
    if sky != 'fine':
        after = checks.counts(lab, ['s0'])
        print(f"      {sky}: " + ', '.join(f'{name} {after[name] - before[name]}' for name in after), flush=True)


def all_skies(rows, topo, failures):
    directory = tempfile.mkdtemp(prefix='incline-')
    lab = Lab(directory)
    try:
        lab.up(topo)
        for sky in SKIES:
            mine = [r for r in rows if r[1] == sky]
            if mine:
                under(sky, mine, lab, topo, failures)
    except (Failure, LabError, incline_guest.GuestError, subprocess.SubprocessError, OSError, ValueError) as e:
        fail('the fabric', checks.reason(e), failures)
    finally:
        try:
            lab.down()
        except LabError as e:
            if os.path.exists(lab.path('lab.json')):  # else it never came up
                fail("the fabric's end", checks.reason(e), failures)
        for line in checks.logs(directory) if failures else ():
            print('      ' + line, flush=True)
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ours', action='store_true')
    parser.add_argument('case', nargs='*')
    args = parser.parse_args()
    end_on_signals()
    why_not = None if args.ours else incline_guest.why_not()
    if why_not:
        print('SKIP: ' + why_not)
        return 77
    rows = cases()
    if not args.ours and shutil.which('tshark'):
        rows.append(('conversations', 'fine', conversations))
    rows = [r for r in rows if not args.case or any(w in r[0] for w in args.case)]
    failures = []
    all_skies(rows, fabric(args.ours), failures)
    print(f'{len(rows)} cases, {len(failures)} failed' + ''.join('\nfailed: ' + f for f in failures))
    return 1 if failures or not rows else 0


if __name__ == '__main__':
    sys.exit(main())
