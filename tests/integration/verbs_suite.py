#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's own test-suite, as Debian's python3-pyverbs ships it, on the device incline0. It is
unpacked into a temporary directory; each of its files runs in a process of its own, on a port that
leads nowhere: both ends of the traffic are queue pairs of the one device, which talks to itself.

usage: verbs_suite.py path/to/libincline_verbs.so [--update] [test_FILE...]

verbs_suite.txt beside this file says what becomes of every case: "pass", or "skip: " and the reason
that the case gives. Anything else fails. Where it depends on the machine (huge pages) the list
has alternatives, separated by " | ". --update writes the list anew, keeping the lines that hold.
Exit 77 (skipped) without python3-pyverbs."""
import argparse
import faulthandler
import gzip
import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../../tools'))
from incline_lab import preloadable  # noqa: E402

LIST = os.path.join(HERE, 'verbs_suite.txt')
SUITE = '/usr/share/doc/rdma-core/tests'
PYTHON = '/usr/bin/python3'  # pyverbs is built for Debian's
PATIENCE = 240  # seconds per file: hangs only
SEED = 2026
# Of other vendors' devices, or of hardware that is not looked for.
NOT_RUN = ('test_mlx5_', 'test_efa', 'test_cuda_')
HEADER = """\
# SPDX-License-Identifier: BSD-3-Clause
# rdma-core's test-suite on incline0, case by case: see verbs_suite.py, which compares and, with
# --update, writes this file. "pass", or "skip" with the reason that the case gives.
"""


# ---- one file of the suite, in a process with the device ----

class Outcomes(unittest.TextTestResult):
    def __init__(self, *args):
        super().__init__(*args)
        self.outcome = {}

    def note(self, test, outcome):
        # Sub-tests and clean-ups may report after a failure: the worst stays.
        name = test.id().removeprefix('tests.') if hasattr(test, 'id') else str(test)
        if not self.outcome.get(name, '').startswith('fail'):
            self.outcome[name] = outcome

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, 'pass')

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, f'skip: {reason}')

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, f'fail: {err[1]}')

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, f'fail: {err[1]!r}')


def child(directory, name, result):
    faulthandler.dump_traceback_later(PATIENCE - 10, exit=True)
    sys.path[:0] = [directory, os.path.join(directory, 'tests')]
    # No card will be found behind that number.
    sys.argv[1:] = ['--gpu', '127']
    importlib.import_module('args_parser').parser.parse_args()
    random.seed(SEED)
    suite = unittest.defaultTestLoader.loadTestsFromModule(
        importlib.import_module('tests.' + name))
    outcomes = unittest.TextTestRunner(sys.stderr, verbosity=2, resultclass=Outcomes).run(suite)
    with open(result, 'w', encoding='utf-8') as f:
        json.dump(outcomes.outcome, f)


# ---- the whole ----

def unpack(directory):
    os.mkdir(os.path.join(directory, 'tests'))
    for name in os.listdir(SUITE):
        path = os.path.join(SUITE, name)
        read = gzip.open if name.endswith('.gz') else open
        # Their package imports every file of the suite: an empty one stands in for it.
        with read(path, 'rb') as f:
            text = b'' if name == '__init__.py' else f.read()
        with open(os.path.join(directory, 'tests', name.removesuffix('.gz')), 'wb') as f:
            f.write(text)


def run_file(library, directory, name):
    config, result = (os.path.join(directory, x) for x in ('rnic.json', name + '.result'))
    with open(config, 'w', encoding='utf-8') as f:
        json.dump({'mac': '02:00:00:00:00:0c', 'ip': ['10.77.0.12', 'fd77::c'], 'mtu': 4200,
                   'port': {'name': 'p0', 'type': 'null'}}, f)
    env = dict(os.environ, LD_PRELOAD=library, INCLINE_RNIC=config, INCLINE_VERBS_DEBUG='1')
    run = subprocess.run([PYTHON, __file__, '--child', directory, name, result], env=env, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
    try:
        with open(result, encoding='utf-8') as f:
            return json.load(f), run.stdout
    except FileNotFoundError:
        return {name: f'fail: ended with {run.returncode} and no result'}, run.stdout


def read_list():
    listed = {}
    with open(LIST, encoding='utf-8') as f:
        for line in f:
            if line.strip() and not line.startswith('#'):
                name, outcomes = line.rstrip('\n').split(None, 1)
                listed[name] = outcomes
    return listed


def matches(outcome, listed):
    if os.geteuid() and 'by root' in outcome:
        return listed.startswith('skip')
    return outcome in listed.split(' | ')


def compare(seen, listed, files):
    """What differs, one line each."""
    wrong = [f'{name}: {outcome}; the list says {listed.get(name, "nothing of it")}'
             for name, outcome in seen.items() if not matches(outcome, listed.get(name, ''))]
    wrong += [f'{name}: did not run' for name in listed
              if name not in seen and name.split('.')[0] in files]
    return sorted(wrong)


def update(seen, listed):
    with open(LIST, 'w', encoding='utf-8') as f:
        f.write(HEADER)
        for name in sorted(seen):
            outcome = seen[name]
            if matches(outcome, listed.get(name, '')):
                outcome = listed[name]
            f.write(f'{name} {outcome}\n')


def main():
    if sys.argv[1:2] == ['--child']:
        child(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('library', type=os.path.abspath)
    parser.add_argument('--update', action='store_true')
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    if not os.path.exists(os.path.join(SUITE, 'base.py.gz')) or subprocess.run(
            [PYTHON, '-c', 'import pyverbs'], capture_output=True).returncode:
        print('skipped: python3-pyverbs is not installed (tools/setup does), or without its documentation')
        return 77
    found = sorted(n.split('.')[0] for n in os.listdir(SUITE) if n.startswith('test_'))
    files = args.files or [n for n in found if not n.startswith(NOT_RUN)]
    seen, output = {}, {}
    with tempfile.TemporaryDirectory(prefix='incline-suite-') as directory:
        unpack(directory)
        for name in files:
            outcomes, output[name] = run_file(preloadable(args.library, directory), directory, name)
            seen.update(outcomes)
    listed = read_list()
    if args.update:
        update({**{n: o for n, o in listed.items() if args.files and n.split('.')[0] not in files},
                **seen}, listed)
        listed = read_list()
    wrong = compare(seen, listed, files)
    for name in sorted({line.split('.')[0].split(':')[0] for line in wrong}):
        print(output.get(name, ''))
    for line in wrong:
        print(line)
    count = {word: sum(o.startswith(word) for o in seen.values()) for word in ('pass', 'skip', 'fail')}
    print(f'{len(seen)} cases of {len(files)} files: {count["pass"]} pass, {count["skip"]} skip, '
          f'{count["fail"]} fail; {len(wrong)} not as listed')
    return 1 if wrong or count['fail'] or not seen else 0


if __name__ == '__main__':
    sys.exit(main())
