# SPDX-License-Identifier: BSD-3-Clause
"""What the suites of this folder share: weather that was really there (tests/integration too), programs that end, and
failures that say why."""
import glob
import os
import subprocess

import incline_guest
from incline_fabric import LabError

# Which counter of a switch tells that it happened.
COUNTERS = {'loss': 'impair_loss', 'tx_loss': 'impair_loss', 'lose': 'impair_loss', 'dup': 'doubled',
            'reorder': 'overtaken', 'corrupt': 'corrupted'}
LAST_WORDS = 10  # seconds for what a killed program has said
LOG_LINES = 20


# ---- weather ----

def counts(lab, switches):
    """{counter: sum over these switches} of all that weather does to packets."""
    out = dict.fromkeys(COUNTERS.values(), 0)
    for name in switches:
        rows = [(r['reason'], r['count']) for r in lab.ctl(name, 'drops')['drops']]
        rows += [(r['name'], r['value']) for r in lab.ctl(name, 'stats')['values']]
        for counter, count in rows:
            if counter in out:
                out[counter] += int(count)
    return out


def asked(weather):
    """Fields of a port's "impair" (None: fine weather) that do something."""
    return [field for field, value in (weather or {}).items() if field in COUNTERS and
            (any(row['loss'] > 0 for row in value) if field == 'lose' else value > 0)]


def contradictions(weather, before, after):
    """What the counters say against the weather: bad one that did nothing, or something that nobody asked for."""
    wanted = {COUNTERS[field] for field in asked(weather)}
    wrong = [f'no {field} in this weather: {COUNTERS[field]} stays at {before[COUNTERS[field]]}' for field in asked(weather)
             if after[COUNTERS[field]] <= before[COUNTERS[field]]]
    return wrong + [f'{counter} went from {before[counter]} to {after[counter]}, which is not in this weather'
                    for counter in before if counter not in wanted and after[counter] != before[counter]]


def during(lab, switches, weather, function, *args):
    """What the function returns, if the weather on these switches was there meanwhile, and no other."""
    before = counts(lab, switches)
    said = function(*args)
    wrong = contradictions(weather, before, counts(lab, switches))
    if wrong:
        raise LabError('; '.join(wrong))
    return said


# ---- programs ----

def end(process, timeout):
    """(exit status, stdout, stderr) of a program; 124 if it had to be killed, and what it had said by then."""
    try:
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out or '', err or ''
    except subprocess.TimeoutExpired:
        process.kill()
    try:
        out, err = process.communicate(timeout=LAST_WORDS)
    except (subprocess.TimeoutExpired, incline_guest.GuestError):
        out = err = ''
    return 124, out or '', f'no end after {timeout:.0f} s\n{err or ""}'.rstrip()


# ---- failures ----

def reason(error):
    """An exception in words, with what a program that failed has said."""
    text = str(error) or type(error).__name__
    for said in (getattr(error, 'output', None), getattr(error, 'stderr', None)):
        said = said.decode(errors='replace') if isinstance(said, bytes) else said
        if said and said.strip():
            text += '\n' + said.strip()
    return text


def first_line(text):
    return text.splitlines()[0] if text else ''


def logs(directory):
    """The ends of what switches have said, but for that they were ready: read before the folder goes."""
    said = []
    for path in sorted(glob.glob(os.path.join(glob.escape(directory), '*.log'))):
        with open(path, errors='replace') as f:
            lines = [line.rstrip() for line in f if ' ready' not in line and line.strip()]
        said += [f'{os.path.basename(path)}: {line}' for line in lines[-LOG_LINES:]]
    return said
