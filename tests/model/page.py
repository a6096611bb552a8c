#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The counts that docs/model-checking.md gives are those that the explorer prints: runs what the test model-ci is, and
wants each row of the page's tables that is a configuration of ci.conf among what came out. Rows of long.conf are not run.

  tests/model/page.py INCLINE-MODEL CI.CONF LONG.CONF PAGE"""
import re
import subprocess
import sys

MODES = {'Mode-III': '3', 'III': '3', 'Mode-I': '1', 'NetReduce': 'netreduce', 'II': '2'}
LEAST = 30  # rows, or the page has other tables than these


def configurations(path):
    """(mode, topology, operations, what is lost, overtaken and doubled, end) of each."""
    with open(path, encoding='utf-8') as f:
        for words in (line.split('#')[0].split() for line in f):
            option = {a: b for a, b in zip(words, words[1:] + ['']) if a.startswith('--')}
            if option:
                yield (option.get('--mode', '2'), option.get('--topology', 'star:2').replace('tree:', ''), option['--ops'],
                       tuple(option.get('--' + budget, '0') for budget in ('loss', 'reorder', 'dup')), option.get('--again', ''))


def rows(path):
    """(configuration, is it said to be of long.conf, (states, transitions), the row) of each row that has these."""
    mode, head = '2', []
    with open(path, encoding='utf-8') as f:
        for line in f:
            named = re.match(r'(Mode-I+|NetReduce):$', line)
            mode = MODES[named[1]] if named else mode
            cells = [cell.strip() for cell in line.strip().strip('|').split('|')] if line.startswith('|') else []
            head = [] if not cells else head or cells
            row = dict(zip(head, cells))
            counts = [row.get(name, '').replace(' ', '') for name in ('states', 'transitions')]
            if 'topology' not in row or not all(count.isdigit() for count in counts):
                continue
            budget = [re.search(rf'(\d) {word}', row['disturbances']) for word in ('loss', 'reord', 'dup')]
            again = re.search(r'--again (\w+)', row.get('end', ''))
            yield ((MODES.get(row.get('mode'), mode), row['topology'].replace(' ', ':'), row['ops'].split(', ')[0],
                    tuple(b[1] if b else '0' for b in budget), again[1] if again else ''),
                   '(long)' in line, tuple(map(int, counts)), line.strip())


def main(model, ci, long, page):
    done = subprocess.run([model, '--suite', ci, '--quiet'], stdout=subprocess.PIPE, text=True)
    print(done.stdout, end='')
    printed = {tuple(map(int, m)) for m in re.findall(r': (\d+) states, (\d+) transitions', done.stdout)}
    not_run = set(configurations(long)) - set(configurations(ci))
    wanted = [(counts, line) for of, is_long, counts, line in rows(page) if not is_long and of not in not_run]
    stale = [line for counts, line in wanted if counts not in printed]
    print(f'{page}: {len(wanted)} rows are of {ci}' + ''.join(f'\nnot what was printed: {line}' for line in stale))
    return done.returncode or bool(stale) or len(wanted) < LEAST


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
