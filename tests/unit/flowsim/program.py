#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""incline-flowsim as a program: program.py INCLINE_FLOWSIM. What it prints, writes and refuses."""
import json
import subprocess
import sys


def run(*args):
    return subprocess.run([sys.argv[1], *args], capture_output=True, text=True, check=False)


def result(*args):
    got = run(*args, '--json', '-')
    assert got.returncode == 0, got
    return json.loads(got.stdout), got.stderr


def main():
    for args, words in ((('table', '46'), 'table 6|36..45'), (('figure', '6'), 'figure 16'), (('job', '--gpus', '0'), 'not understood'),
                        (('job', '--model', 'gpt4'), '--model gpt4: not understood'), (('table', '44', '--load', 'nan'), 'load nan'),
                        (('job', '--slots'), '--slots: not understood'), ((), 'OPTIONS')):
        got = run(*args)
        assert got.returncode == 2 and words in got.stderr and not got.stdout, (args, got)
    got = run('job', '--gpus', '7')
    assert got.returncode == 1 and 'gpus: wants whole groups' in got.stderr, got

    table, text = result('table', '6')
    assert (table['same'], table['cells'], table['orders_that_differ']) == (16, 16, 0), table
    assert '16 of 16' in text or text.count('8 of 8 figures') == 2, text
    exact, _ = result('table', '36', '--exact')
    assert exact['same'] < 16 and exact['orders_that_differ'] == 0, exact
    table, text = result('table', '42')
    assert table['same'] == 12 and 'order differs at 4 slots: ring is above spatial' in text, table

    job = [result('job', '--setting', 'spatial', '--sram', str(bytes))[0] for bytes in (1 << 16, 1 << 30)]
    assert job[0]['seconds'] > job[1]['seconds'] and job[0]['peak_memory'] <= 48 / 16, job

    figure = [result('figure', '16', '--jobs', '12', '--quiet', '--seed', seed)[0] for seed in '112']
    assert figure[0] == figure[1] != figure[2]
    rows = figure[0]['rows']
    assert len(rows) == 4 * 13 and [r['paper'] for r in rows if r['at'] == '99'] == [7115, 5420, None, 4917], rows
    for setting in 'ring', 'edt', 'spatial', 'temporal':
        seconds = [r['ours'] for r in rows if r['solution'] == setting]
        assert seconds == sorted(seconds) and seconds[0] > 0, seconds


main()
