#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What hosts and switches emit, in every mode: captured on virtual time, checked by our own parser (ICRC)
and by tshark, whose dissector nobody here wrote: all RoCEv2, nothing malformed. Exit status 77: no tshark."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.join(os.environ['INCLINE_BUILD'], 'tests/integration')


def run(argv, **kwargs):
    p = subprocess.run(argv, capture_output=True, text=True, **kwargs)
    if p.returncode != 0:
        sys.exit(f"{' '.join(argv)}: exit status {p.returncode}\n{p.stdout}{p.stderr}")
    return p.stdout


# What tshark may guess a payload of random bytes to be.
GUESSES = [a for p in ('rpcordma', 'smb_direct', 'iser', 'nvme-rdma') for a in ('--disable-protocol', p)]


def dissect(path):
    """Packets that tshark does not take for RoCEv2, or finds fault with."""
    fields = ['frame.number', 'frame.protocols', '_ws.malformed', '_ws.expert.message']
    out = run(['tshark', '-n', *GUESSES, '-r', path, '-T', 'fields', '-E', 'separator=|']
              + [a for f in fields for a in ('-e', f)])
    bad, n = [], 0
    for line in out.splitlines():
        number, protocols, malformed, expert = line.split('|', 3)
        n += 1
        if 'infiniband' not in protocols or malformed or 'alformed' in expert:
            bad.append(f'{os.path.basename(path)}: packet {number}: {protocols} {malformed} {expert}')
    return n, bad


def main():
    if not shutil.which('tshark'):
        print('tshark is not installed')
        return 77
    total, bad = 0, []
    with tempfile.TemporaryDirectory(prefix='incline-') as directory:
        for arg in sys.argv[1:]:
            program, test = arg.split(':')
            run([os.path.join(BUILD, program), '1', test, '24', '6000'], env=dict(os.environ, FABRIC_PCAP=directory))
            files = sorted(glob.glob(os.path.join(directory, '*.pcapng')))
            print(test, run([os.path.join(BUILD, 'check_capture'), *files]), sep='\n')
            for path in files:
                n, wrong = dissect(path)
                total, bad = total + n, bad + wrong
                os.remove(path)
    print(f'tshark: {total} packets, {len(bad)} with a fault')
    print('\n'.join(bad[:20]))
    return 1 if bad or not total else 0


if __name__ == '__main__':
    sys.exit(main())
