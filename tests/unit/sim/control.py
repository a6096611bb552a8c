#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A scenario's "control": control.py INCLINE_SIM. What is refused, and with which words; what comes out."""
import json
import os
import subprocess
import sys
import tempfile

BASE = {'topology': 'star:2', 'workload': 'barrier'}
REFUSED = [
    (7, 'control: must be an object'),
    ({'delay_us': -1}, 'control.delay_us: must be an integer, 0..600000000'),
    ({'jitter_us': 1.5}, 'control.jitter_us: must be an integer, 0..600000000'),
    ({'timeout_ms': 0}, 'control.timeout_ms: must be an integer, 1..3600000'),
    ({'timeout_ms': 3600001}, 'control.timeout_ms: must be an integer, 1..3600000'),
    ({'break_nth': 0}, 'control.break_nth: must be an integer, 1..4294967295'),
    ({'loss': 1.1}, 'control.loss: must be 0..1'),
    ({'silent': '1'}, 'control.silent: must be 0..1'),
    ({'late_nth': 3}, 'control.late_nth: goes with late_us'),
    ({'down_us': [[5, 5]]}, 'control.down_us: span 0 must be [from, until], 0 <= from < until <= 600000000'),
    ({'down_us': [[1, 2]] * 9}, 'control.down_us: must be a list of up to 8 spans [from, until]'),
    ({'lost': 1}, 'control.lost: unknown field'),
]


def run(sim, tmp, scenario):
    path = os.path.join(tmp, 's.json')
    with open(path, 'w') as f:
        json.dump(scenario, f)
    return subprocess.run([sim, 'run', path, '--json', '-'], capture_output=True, text=True)


def main():
    sim = sys.argv[1]
    with tempfile.TemporaryDirectory() as tmp:
        for control, words in REFUSED:
            got = run(sim, tmp, {**BASE, 'control': control})
            assert got.returncode == 1 and got.stderr == f'incline-sim: {words}\n', (control, got.stderr)
        none = subprocess.run([sim, 'run', os.path.join(tmp, 'none.json')], capture_output=True, text=True)
        assert none.returncode == 1 and 'No such file' in none.stderr and ': line ' not in none.stderr, none.stderr
        good = json.loads(run(sim, tmp, {**BASE, 'control': {'#': 'a comment', 'delay_us': 250}}).stdout)
        assert good['control'] == {'messages': 8, 'set_up_ns': 8 * 250000, 'arena_left_bytes': 0}, good['control']
        away = run(sim, tmp, {**BASE, 'control': {'timeout_ms': 700, 'down_us': [[0, 9000000]]}})
        assert away.returncode == 1 and 'switch s0: ' in away.stderr and 'nobody listens' in away.stderr, away.stderr
        mute = run(sim, tmp, {**BASE, 'control': {'timeout_ms': 700, 'silent': 1}})
        assert mute.returncode == 1 and 'no answer to owner.hold within' in mute.stderr, mute.stderr
    print(f'{len(REFUSED)} refused, 3 run')


if __name__ == '__main__':
    main()
