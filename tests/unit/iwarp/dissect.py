#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What iWARP's queue pairs send, read by tshark, whose dissector nobody here wrote: both frames of MPA, every message
by its opcode, the Terminate by its codes, no CRC and nothing else at fault. Exit status 77: no tshark."""
import collections
import os
import shutil
import subprocess
import sys
import tempfile


def tshark(path, *fields):
    argv = ['tshark', '-n', '--disable-protocol', 'rpcordma', '--disable-protocol', 'smb_direct', '--disable-protocol', 'iser',
            '-r', path, '-T', 'fields', '-E', 'separator=|'] + [a for f in fields for a in ('-e', f)]
    out = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    return [line.split('|') for line in out.splitlines()]


def main():
    if not shutil.which('tshark'):
        print('tshark is not installed')
        return 77
    with tempfile.TemporaryDirectory(prefix='incline-') as directory:
        path = os.path.join(directory, 'iwarp.pcapng')
        said = subprocess.run([sys.argv[1], path], capture_output=True, text=True, timeout=60, check=True).stdout
        want = {int(o): int(n) for o, n in (line.split() for line in said.splitlines())}
        rows = tshark(path, 'iwarp_rdma.opcode', 'iwarp_mpa.key.req', 'iwarp_mpa.key.rep', '_ws.malformed', '_ws.expert.message',
                      'iwarp_rdma.term_layer', 'iwarp_rdma.term_etype_ddp', 'iwarp_rdma.term_errcode_ddp_tagged', 'frame.number')
        text = subprocess.run(['tshark', '-n', '-V', '-r', path], capture_output=True, text=True, timeout=60, check=True).stdout
    got = collections.Counter(int(o, 16) for row in rows for o in row[0].split(',') if o)
    assert got == want, f'opcodes {dict(got)}, sent were {want}'
    assert [sum(1 for row in rows if row[i]) for i in (1, 2)] == [1, 1], 'a request and a reply frame'
    bad = [row for row in rows if row[3] or 'alformed' in row[4] or 'CRC' in row[4] or 'hecksum' in row[4]]
    assert not bad, bad
    # tshark says of each CRC whether it is good.
    crcs = [line for line in text.splitlines() if 'CRC' in line and '0x' in line]
    assert len(crcs) >= sum(want.values()) and not [c for c in crcs if 'Good' not in c], crcs[:3]
    terms = [row[5:8] for row in rows if row[5]]
    assert [[int(x, 16) for x in t] for t in terms] == [[1, 1, 1]], terms
    print(f'tshark: {sum(got.values())} messages in {len(rows)} packets, {len(crcs)} CRCs, as sent')
    return 0


if __name__ == '__main__':
    sys.exit(main())
