# SPDX-License-Identifier: BSD-3-Clause
"""tools/test --repeat: the same tests again and again, until one fails: how often they do, and what time they take."""
import json
import os
import shutil
import statistics
import time

from incline_tests import PASSED, SLOWEST, TOP, Report, meson_log

LOG = os.path.join('build', 'repeat-failed.log')


def until(seconds, now):
    """That much more time, and the hour at which it has passed."""
    return f'some {seconds / 60:.0f} min more, until {time.strftime("%H:%M", time.localtime(now + seconds))}'


class Repeat(Report):
    """Rounds of meson's tests; the first test that fails ends them."""

    def __init__(self, rounds, record=None):
        super().__init__(record)
        self.rounds, self.lasted, self.times = rounds, [], {}
        self.failed_s = 0  # of the round that has failed

    def note(self, name, outcome, seconds, why=''):
        if outcome == 'INTERRUPT' and self.failures:
            return  # ran beside the one that failed, and was ended with it
        super().note(name, outcome, seconds, why)
        if outcome in PASSED:
            self.times.setdefault(name, []).append(seconds)

    def left(self, expected, now):
        """What the rounds to come may take: as long as those before, the first as long as it took the last time."""
        lasted = statistics.mean(self.lasted) if self.lasted else expected
        return until(lasted * (self.rounds - len(self.lasted)), now) if lasted else ''

    def run_all(self, chosen, patience, clock=time):
        args = [*chosen, '--maxfail', '1']
        expected = self.last.get(self.name_of('build', args))
        while len(self.lasted) < self.rounds and not self.failures:
            left = self.left(expected, clock.time())
            print(f'ROUND {len(self.lasted) + 1} of {self.rounds}' + (f', {left}' if left else ''), flush=True)
            start = clock.monotonic()
            self.meson('build', args, patience)
            took = clock.monotonic() - start
            if self.failures:
                self.failed_s = took
            else:
                self.lasted.append(took)
        if self.failures:
            self.keep_log()

    def keep_log(self):
        """The next run writes its own."""
        log = os.path.splitext(meson_log('build'))[0] + '.txt'
        if os.path.exists(log):
            shutil.copy(log, os.path.join(TOP, LOG))
            print(f'the output of all tests of this round: {LOG}', flush=True)

    def outcome(self):
        """What there is to say, {} of JSON: of it are both forms."""
        rows = [{'name': name, 'passed': len(took), 'shortest_s': round(min(took), 2), 'mean_s': round(statistics.mean(took), 2),
                 'longest_s': round(max(took), 2)} for name, took in self.times.items()]
        return {'rounds': self.rounds, 'passed': len(self.lasted), 'seconds': round(sum(self.lasted) + self.failed_s, 1),
                'failed': self.failures, 'skipped': self.skips, 'tests': sorted(rows, key=lambda row: -row['mean_s'])}

    def end(self):
        if self.record and not self.failures:
            self.write_record()
        print(text_of(self.outcome()), flush=True)
        return 1 if self.failures else 0


def text_of(outcome):
    lines = ['', f"{'the slowest, seconds':40} {'passed':>6} {'shortest':>9} {'mean':>9} {'longest':>9}"]
    lines += [f"{row['name']:40} {row['passed']:6} {row['shortest_s']:9.1f} {row['mean_s']:9.1f} {row['longest_s']:9.1f}"
              for row in outcome['tests'][:SLOWEST]]
    lines += [f'skipped: {name}: {reason}' for name, reason in outcome['skipped'].items()]
    lines += [f'failed: {text}' for text in outcome['failed']]
    tests = sum(row['passed'] for row in outcome['tests']) + len(outcome['failed'])
    lines.append(f"\n{outcome['passed']} of {outcome['rounds']} rounds passed, {tests} tests in {outcome['seconds']:.0f} s" + (f": round {outcome['passed'] + 1} failed" if outcome['failed'] else ''))
    return '\n'.join(lines)


def write(outcome, path):
    with open(path, 'w') as f:
        json.dump(outcome, f, indent=1)
        f.write('\n')
