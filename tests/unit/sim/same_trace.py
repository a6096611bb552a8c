#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The same seed gives the same trace, whatever the build: same_trace.py INCLINE_SIM... runs small scenarios
twice with each of them and compares the trace hashes."""
import json
import os
import subprocess
import sys
import tempfile

FAULTS = {'mbps': 100000, 'delay_ns': 1000, 'loss': 0.002, 'dup': 0.002, 'reorder': 0.002, 'corrupt': 0.001}
SCENARIOS = [
    {'topology': 'tree:2x2', 'workload': 'allreduce', 'bytes': 100000, 'mode': mode, 'link': FAULTS}
    for mode in (1, 2, 3, 'netreduce', 'ring')
] + [
    {'topology': 'tree:2x2', 'workload': 'allreduce', 'bytes': 100000, 'mode': 3, 'sr': True, 'link': FAULTS},
    {'topology': 'tree:2x2', 'workload': 'allreduce', 'bytes': 20000, 'mode': 1, 'link': FAULTS,
     'control': {'delay_us': 100, 'jitter_us': 500, 'loss': 0.1, 'break': 0.1, 'silent': 0.05}},
    {'topology': 'clos2:2x4x2', 'workload': 'incast', 'bytes': 100000, 'dcqcn': True,
     'link': {'mbps': 25000, 'delay_ns': 1000, 'queue_bytes': 100000, 'trim': True, 'ecn_bytes': 30000}},
]


def trace_hash(sim, path):
    out = subprocess.run([sim, 'run', path, '--seed', '7', '--json', '-'], check=True, capture_output=True,
                         text=True).stdout
    return json.loads(out)['trace_hash']


def main():
    with tempfile.TemporaryDirectory() as tmp:
        for scenario in SCENARIOS:
            path = os.path.join(tmp, 's.json')
            with open(path, 'w') as f:
                json.dump(scenario, f)
            hashes = [(sim, trace_hash(sim, path)) for sim in sys.argv[1:] for _ in range(2)]
            if len({value for _, value in hashes}) != 1:
                sys.exit(f'{scenario}: {hashes}')
    print(f'{len(SCENARIOS)} scenarios, each {2 * len(sys.argv[1:])} times: the same traces')


if __name__ == '__main__':
    main()
