#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counterexamples of seeded bugs as captures: what the printed trace says was sent is what the capture has, and
to tshark every frame is RoCEv2 with nothing malformed. Exit status 77: no tshark."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../integration'))
from captures import dissect  # noqa: E402

BUGS = (
    ('T7', '--ops', 'R0:3,R1:2,A1', '--loss', '1'),
    ('T13', '--mode', '3', '--ops', 'A3', '--loss', '1'),
    ('NR_UP', '--mode', 'netreduce', '--topology', 'tree:1+1', '--ops', 'A2', '--loss', '1'),
)
SENT = re.compile(r'\b(CTRL|DATA|SUM|ACK|NAK|RNR) #')


def sent(trace):
    """Frames that the steps of a printed trace send."""
    return sum(len(SENT.findall(line.partition('sends ')[2]))
               for line in trace.splitlines() if re.match(r' *\d+  ', line))


def main():
    if not shutil.which('tshark'):
        print('tshark is not installed')
        return 77
    bad = 0
    with tempfile.TemporaryDirectory(prefix='incline-') as directory:
        for bug, *options in BUGS:
            path = os.path.join(directory, bug + '.pcap')
            p = subprocess.run([sys.argv[1], '--bug', bug, *options, '--expect-violation', '--pcap', path],
                               capture_output=True, text=True)
            if p.returncode != 0:
                sys.exit(f'{bug}: exit status {p.returncode}\n{p.stdout}{p.stderr}')
            n, wrong = dissect(path)
            said = sent(p.stdout)
            print(f'{bug}: {n} frames, {said} in the trace, {len(wrong)} with a fault')
            print('\n'.join(wrong))
            bad += n == 0 or n != said or bool(wrong)
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
