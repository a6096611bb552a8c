#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The dissector for Wireshark says what incline-dissect says, field by field, and bears whatever comes; and without it
Wireshark reads of MRC's packets what is RoCE's:
wireshark.py INCLINE_DISSECT INCLINE_LUA WIRESHARK_FRAMES tests/data. Exit status 77: no tshark."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

# Of incline-dissect, what is no field of a header: about the frame, what is below, what follows from other packets.
BESIDE = {'n', 'ns', 'interface', 'len', 'cap', 'src', 'dst', 'icrc', 'marks', 'ce', 'way', 'from', 'to', 'at', 'dir', 'kind', 'protocol'}
FIELDS = ['op', 'qp', 'psn', 'payload', 'ackreq', 'imm', 'va', 'rkey', 'dmalen', 'offset', 'syndrome', 'mrc_syndrome', 'msn', 'rqmsn', 'rtx',
          'ts', 'trimmed', 'mark', 'probe', 'trigger', 'base', 'bitmap', 'ev', 'mpr', 'ooo', 'received', 'reason', 'id', 'asks', 'ports',
          'own_ev', 'refused', 'inc.primitive', 'inc.op', 'inc.dtype', 'inc.op_seq', 'inc.root', 'inc.packets', 'inc.bytes', 'inc.write',
          'inc.last', 'inc.m', 'inc.tag', 'netreduce.ring', 'netreduce.rank', 'netreduce.message', 'netreduce.packets', 'netreduce.dtype',
          'netreduce.op']


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f'{argv}: {done.stderr}'
    assert 'lua' not in done.stderr.lower(), done.stderr
    return done.stdout


def flat(packet, prefix=''):
    for name, value in packet.items():
        if isinstance(value, dict):
            yield from flat(value, f'{prefix}{name}.')
        elif prefix or name not in BESIDE:
            yield prefix + name, value


def same(ours, theirs):
    """theirs: text of a field of tshark, '' if it is not there."""
    if isinstance(ours, bool):
        return (theirs.lower() in ('1', 'true')) == ours
    if isinstance(ours, int):
        # What is 64 bits wide JSON has as signed.
        return theirs != '' and int(theirs, 0) % 2**64 == ours % 2**64
    if ours.startswith('0x'):
        return theirs != '' and int(theirs, 0) == int(ours, 16)
    return ours == theirs


def differences(packet, row):
    """What incline-dissect says of a packet, against the fields of tshark."""
    ours = dict(flat(packet))
    op = str(ours.get('op', ''))
    if not op.startswith(('MRC', 'SEL')) and not str(ours.get('refused', '')).startswith('mrc_'):
        # Wireshark's own dissector reads it; ours only what is of collectives.
        ours = {name: value for name, value in ours.items() if '.' in name}
    if op.startswith('MRC') and 'syndrome' in ours:
        ours['mrc_syndrome'] = ours.pop('syndrome')
    if 'cap' not in packet:
        for name, value in ours.items():
            if name not in FIELDS:
                yield f'{name} is not known here'
            elif not same(value, row[name]):
                yield f'{name} is {value}, in Wireshark {row[name] or "not there"}'
        for name in (n for n in FIELDS if '.' in n):
            if row[name] and name not in ours:
                yield f'{name} is {row[name]} in Wireshark alone'


def compare(dissect, lua, capture):
    result = json.loads(run(dissect, '--json', capture))
    packets = {p['n']: p for c in result['connections'] for p in c['packets']}
    packets.update({p['n']: p for p in result['others']})
    out = run('tshark', '-n', '-X', f'lua_script:{lua}', '-r', capture, '-T', 'fields', '-E', 'separator=|', '-e', 'frame.number',
              '-e', '_ws.expert.message', *(a for f in FIELDS for a in ('-e', f'incline.{f}')))
    rows = [line.split('|') for line in out.splitlines()]
    bad = [f'{os.path.basename(capture)}: packet {row[0]}: {d}' for row in rows
           for d in differences(packets.get(int(row[0]), {}), dict(zip(FIELDS, row[2:])))]
    bad += [f'{os.path.basename(capture)}: packet {row[0]}: {row[1]}' for row in rows if 'Lua Error' in row[1]]
    assert len(rows) == result['frames'], (len(rows), result['frames'])
    return bad, packets


# What Wireshark's own dissector, which nobody here wrote, reads of an MRC packet: the BTH. The bits beside the
# acknowledge request it does not know (0x20: sent again, 0x10: a time stamp follows), nor what comes behind.
BTH = ['opcode', 'se', 'm', 'padcnt', 'tver', 'p_key', 'destqp', 'a', 'reserved7', 'psn']
GOLDEN = [
    (0xcb, 0, 0, 3, 0, 0xffff, 0x101, 1, 0x10, 0x100),  # Write Only with Immediate
    (0xdc, 0, 0, 0, 0, 0xffff, 0x202, 0, 0, 0x103),     # SACK
    (0xdd, 0, 0, 0, 0, 0xffff, 0x202, 0, 0, 0x104),     # NACK
    (0xde, 0, 0, 0, 0, 0xffff, 0x101, 0, 0, 0),         # reliability probe
    (0xd8, 0, 0, 0, 0, 0xffff, 2, 0, 0, 0x42),          # EV probe
    (0xd9, 0, 0, 0, 0, 0xffff, 2, 0, 0, 0x42),          # its answer
    (0xd8, 0, 0, 0, 0, 0xffff, 2, 0, 0, 0x43),          # port status update
    (0xd1, 0, 0, 0, 0, 0xffff, 0x202, 0, 0, 0x100),     # transport ACK
]


def plain(dissect, capture):
    """What differs of the golden packets as Wireshark reads them by itself, and of their length behind the BTH."""
    out = run('tshark', '-n', '-r', capture, '-T', 'fields', '-E', 'separator=|', '-e', '_ws.malformed', '-e', 'infiniband.vendor',
              '-e', 'udp.length', *(a for f in BTH for a in ('-e', f'infiniband.bth.{f}')))
    rows = [line.split('|') for line in out.splitlines()]
    result = json.loads(run(dissect, '--json', capture))
    if len(rows) != len(GOLDEN) or result['icrc']['ok'] != len(GOLDEN):
        yield f'{len(rows)} packets, ICRCs {result["icrc"]}: {len(GOLDEN)} are right'
    for n, (row, want) in enumerate(zip(rows, GOLDEN), 1):
        malformed, behind, length = row[:3]
        got = tuple({'True': 1, 'False': 0}.get(v) if v in ('True', 'False') else int(v, 0) for v in row[3:])
        if malformed or got != want:
            yield f'golden packet {n}: {dict(zip(BTH, got))} {malformed}, not {dict(zip(BTH, want))}'
        behind = len(behind.split(',')[-1]) // 2
        if behind != int(length) - 8 - 12:  # UDP, BTH
            yield f'golden packet {n}: {behind} bytes behind the BTH of {length}'


def main():
    dissect, lua, frames, data = sys.argv[1:]
    if not shutil.which('tshark'):
        print('tshark is not installed (tools/setup --interop)')
        return 77
    with tempfile.TemporaryDirectory(prefix='incline-') as directory:
        made = os.path.join(directory, 'frames.pcapng')
        subprocess.run([frames, made], check=True)
        bad, packets = compare(dissect, lua, made)
        seen = {name for p in packets.values() for name, _ in flat(p)}
        # Nothing in FIELDS that was never there, and so never compared.
        bad += [f'no packet has {name}' for name in FIELDS if name not in seen | {'mrc_syndrome'}]
        for name in ('cm-rping', 'rc-ipv4', 'rc-lost-write', 'ud-ipv6'):
            bad += compare(dissect, lua, os.path.join(data, 'pcaps', f'{name}.pcap'))[0]
    golden = os.path.join(data, 'mrc', 'golden.pcap')
    bad += compare(dissect, lua, golden)[0] + list(plain(dissect, golden))
    print('\n'.join(bad[:30]))
    print(f'{len(packets)} packets made, {len(bad)} differences')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
