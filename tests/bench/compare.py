#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two results of a bench (tools/bench NAME --json FILE), number by number: what the second is of the first.

Figures of two runs are of two moments, and of two machines if that is so: what says most is what each run has as a ratio
to something of its own ("ratio", "limit")."""
import argparse
import json
import sys

# Whole numbers that say what was measured, not what came of it.
NAMES = {'bytes', 'chunk', 'cpus', 'evs', 'fan_in', 'frame', 'groups', 'hosts', 'members', 'mtu', 'path', 'payload', 'qps', 'ranks', 'routes',
         'rounds', 'row', 'switches', 'value', 'workers'}


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def label(item, at):
    """What a row is called: by what it says of itself, else by its place."""
    said = [str(v) if isinstance(v, str) else f'{k} {v}' for k, v in item.items()
            if isinstance(v, str) or (k in NAMES and is_number(v))] if isinstance(item, dict) else []
    return ', '.join(said) or str(at)


def flat(value, path=()):
    """(path, number) of all numbers; of rows with one name the second is called so."""
    if isinstance(value, dict):
        for key, v in value.items():
            if key not in NAMES and key != 'machine':
                yield from flat(v, path + (key,))
    elif isinstance(value, list):
        seen = {}
        for i, v in enumerate(value):
            name = label(v, i)
            seen[name] = seen.get(name, 0) + 1
            yield from flat(v, path + (name if seen[name] == 1 else f'{name} ({seen[name]})',))
    elif is_number(value):
        yield path, value


def compare(old, new):
    """Rows {what, old, new, ratio}, and what only one of them has."""
    if old.get('bench') != new.get('bench'):
        raise ValueError(f"not the same bench: {old.get('bench')}, {new.get('bench')}")
    a, b = ({' / '.join(p): v for p, v in flat(d)} for d in (old, new))
    rows = [{'what': k, 'old': a[k], 'new': b[k], 'ratio': b[k] / a[k] if a[k] else None} for k in a if k in b]
    if not rows:
        raise ValueError('no number is in both')
    return rows, [k for k in a if k not in b], [k for k in b if k not in a]


def machine(doc):
    m = doc.get('machine') or {}
    return f"{m.get('cpu', 'machine not said')}, {m.get('cpus', '?')} CPUs, load {m.get('load', '?')}, commit {m.get('commit', '?')}"


def load(path):
    try:
        with open(path) as f:
            doc = json.load(f)
    except (OSError, ValueError) as e:
        raise ValueError(f'{path}: {e}') from None
    if not isinstance(doc, dict):
        raise ValueError(f'{path}: not the result of a bench')
    return doc


def main():
    parser = argparse.ArgumentParser(prog='tools/bench compare', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('old', metavar='OLD.json')
    parser.add_argument('new', metavar='NEW.json')
    parser.add_argument('--json', metavar='FILE', help='the same as JSON')
    args = parser.parse_args()
    try:
        old, new = load(args.old), load(args.new)
        rows, gone, come = compare(old, new)
    except ValueError as e:
        sys.exit(f'error: tools/bench compare: {e}')
    print(f'# old: {machine(old)}\n# new: {machine(new)}')
    width = max(len(r['what']) for r in rows)
    print(f"{'# what':{width}} {'old':>12} {'new':>12} {'new/old':>8}")
    for r in rows:
        print(f"{r['what']:{width}} {r['old']:12.6g} {r['new']:12.6g} " + (f"{r['ratio']:8.3f}" if r['ratio'] is not None else f"{'-':>8}"))
    for word, names in ('old', gone), ('new', come):
        for name in names:
            print(f'# only in {word}: {name}')
    if args.json:
        with open(args.json, 'w') as f:
            json.dump({'compare': old.get('bench'), 'rows': rows, 'only_old': gone, 'only_new': come}, f, indent=1)
            f.write('\n')


if __name__ == '__main__':
    main()
