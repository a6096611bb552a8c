# SPDX-License-Identifier: BSD-3-Clause
"""What tools/test is made of: tests by name, results, skips that are compared with a list, progress, the slowest,
and an end that leaves no process and no file behind."""
import contextlib
import difflib
import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import incline_guest
import incline_netns
from incline_fabric import LabError
from incline_lab import Lab
from incline_processes import SIGNALS, adopt_orphans, end_descendants

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIPS = os.path.join(TOP, 'tests', 'skips.txt')
PASSED = ('OK', 'EXPECTEDFAIL')
SLOWEST = 15
HEARTBEAT = 30  # seconds


class TestError(Exception):
    pass


# ---- names ----

def known_tests(builddir):
    """{name: suites} of all tests of a build directory."""
    out = subprocess.run(['meson', 'introspect', '--tests', builddir], cwd=TOP, check=True, capture_output=True).stdout
    return {t['name']: {s.split(':')[-1] for s in t['suite']} for t in json.loads(out)}


def choose(wanted, known):
    """The tests that these names, patterns or suites mean. Tells what a wrong one may have meant."""
    chosen = []
    for name in wanted:
        found = fnmatch.filter(known, name) or [test for test, suites in known.items() if name in suites]
        if not found:
            near = difflib.get_close_matches(name, known, 3, 0.6) or sorted(k for k in known if name in k)[:3]
            raise TestError(f'{name}: no such test' + (f"; is it {', '.join(near)}?" if near else '')
                            + ' (tools/test --list prints all)')
        chosen += [f for f in found if f not in chosen]
    return chosen


# ---- skips ----

def cpu_flags():
    with open('/proc/cpuinfo') as f:
        return next((line.split(':')[1].split() for line in f if line.startswith('flags')), [])


# Where a row of the list counts.
WHERE = {
    'always': lambda: True,
    'no-avx2': lambda: 'avx2' not in cpu_flags(),
    'no-avx512': lambda: not {'avx512f', 'avx512bw', 'avx512vl', 'avx512dq'} <= set(cpu_flags()),
    'no-root': lambda: os.geteuid() != 0,
    'one-cpu': lambda: len(os.sched_getaffinity(0)) < 2,
    'no-netns': lambda: incline_netns.why_not() is not None,
    'no-other-root': lambda: incline_netns.why_no_other_root() is not None,
    'no-next-csid': lambda: incline_netns.why_no_next_csid() is not None,
    'no-autogroup': lambda: not os.access('/proc/self/autogroup', os.W_OK),
    'no-guests': lambda: incline_guest.why_not() is not None,
}


def read_skips(path=SKIPS):
    """[(pattern, where, why)]"""
    rows = []
    with open(path) as f:
        for number, line in enumerate(f, 1):
            words = line.split(None, 2)
            if not words or words[0].startswith('#'):
                continue
            if len(words) < 3 or words[1] not in WHERE:
                raise TestError(f"{os.path.basename(path)}:{number}: wants NAME WHERE WHY, WHERE one of {', '.join(WHERE)}")
            rows.append((words[0], words[1], words[2].strip()))
    return rows


def wrong_skips(skipped, ran, rows, where=None):
    """What is not as the list says. skipped: {name: reason}; ran: names that were not skipped."""
    where = where or {word: holds() for word, holds in WHERE.items()}
    rows = [row for row in rows if where[row[1]]]
    wrong = [f'{name}: skipped, which tests/skips.txt does not expect here: {reason}' for name, reason in skipped.items()
             if not any(fnmatch.fnmatch(name, row[0]) for row in rows)]
    wrong += [f'{name}: ran, though tests/skips.txt says it is skipped ({why})' for pattern, _, why in rows
              for name in ran if fnmatch.fnmatch(name, pattern)]
    return wrong


# Of unittest -v and of cmocka.
CASE_SKIPPED = re.compile(r'^(\w+) \([\w.]*?(\w+)\.?(?:\1)?\)(?:\n[^\n]*?)? \.\.\. skipped (.*)$', re.M)
CMOCKA_SKIPPED = re.compile(r'^\[  SKIPPED \] (\w+)$', re.M)


def skipped_cases(text):
    """{case: reason} of what a test program skipped by itself, though it passed."""
    cases = {f'{m[2]}.{m[1]}': m[3].strip("'\"") for m in CASE_SKIPPED.finditer(text)}
    cases.update({m[1]: '' for m in CMOCKA_SKIPPED.finditer(text)})
    return cases


# Of this project's suites, unittest, cmocka, meson's own and sanitizers.
FAILED = re.compile(r'^(?:FAIL[: ]|failed:|error:|\[  ERROR   \]|\w*(?:Error|Exception|Failure)\b.*:|.*ERROR: \w+Sanitizer|.*runtime error:)')


def why_failed(text):
    """The line of its output that says first why a test has failed, '': none does."""
    return next((line.strip()[:300] for line in text.splitlines() if FAILED.match(line)), '')


# ---- the end ----

class Workspace:
    """A folder for all temporary files of the tests; when it is left, by whatever way, it goes, and with it fabrics
    that were not taken down and processes that were not waited for. In it "env python3" is the interpreter that runs
    this, at once: in many a PATH it is a script that looks for one (pyenv's takes several times as long as the start of
    Python), and a run starts hundreds."""

    def __enter__(self):
        adopt_orphans()
        # Sockets have short names.
        self.dir = os.environ['TMPDIR'] = tempfile.mkdtemp(prefix='it-', dir='/tmp')
        tempfile.tempdir = None
        programs = os.path.join(self.dir, 'bin')
        os.mkdir(programs)
        python = os.path.join(programs, 'python3')  # a symbolic link would not be in a virtual environment
        with open(python, 'w') as f:
            f.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        os.chmod(python, 0o755)
        os.environ['PATH'] = programs + os.pathsep + os.environ['PATH']
        os.environ['INCLINE_TEST_PROGRAMS'] = programs  # tools/compiler.sh: not for builds
        return self

    def __exit__(self, *_):
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        end_descendants()
        for directory, _, files in os.walk(self.dir):
            if 'lab.json' in files:
                try:
                    Lab(directory).down()
                except (LabError, OSError, ValueError):
                    pass
        shutil.rmtree(self.dir, ignore_errors=True)


class Heartbeat:
    """Says from time to time that a long step goes on: estimate() gives words."""

    def __init__(self, name, last=None, progress=None):
        self.name, self.last, self.progress = name, last, progress
        self.over, self.start = threading.Event(), time.monotonic()
        self.thread = threading.Thread(target=self.beat, daemon=True)

    def line(self, seconds):
        text = f'...   {self.name}: {seconds:.0f} s'
        if self.last:
            text += f' of some {self.last:.0f}'
        return text + (f', {self.progress()}' if self.progress else '')

    def beat(self):
        while not self.over.wait(HEARTBEAT):
            print(self.line(time.monotonic() - self.start), flush=True)

    def __enter__(self):
        if not sys.stdout.isatty() or not self.progress:  # to a terminal meson says itself what runs
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        if self.thread.ident:
            self.thread.join()


# ---- beside the tests ----

class Beside:
    """Commands, [(name, argv)], that run one after the other beside the tests, with what the tests leave of the
    processors: tests of processes wait for much of their time. What was said by one that failed is printed when it is
    waited for; after it none is begun."""
    LEAST, FULL = 19, 0  # share of a session of processes, as nice; see sched(7), autogroup
    LIMIT = 3600  # seconds

    def __init__(self, steps):
        self.steps = [name for name, _ in steps]
        self.done = {name: threading.Event() for name in self.steps}
        self.status, self.seconds, self.output = {}, {}, {}
        self.over, self.lock, self.process, self.now, self.wanted = False, threading.Lock(), None, None, None
        self.thread = threading.Thread(target=self.run, args=(steps,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        for number in signal.SIGTERM, signal.SIGKILL:
            with self.lock:
                self.over = True
                if self.process:
                    os.killpg(self.process.pid, number)
            self.thread.join(10)

    def run(self, steps):
        for name, argv in steps:
            start = time.monotonic()
            try:
                with tempfile.TemporaryFile('w+', errors='replace') as out:
                    self.status[name] = self.one(name, argv, out)
                    out.seek(0)
                    self.output[name] = out.read()
            except (OSError, ValueError) as e:
                self.status[name] = str(e)
            self.seconds[name] = time.monotonic() - start
            self.done[name].set()

    def one(self, name, argv, out):
        """Exit status; without one a word why."""
        with self.lock:
            self.now = name
            if self.over or any(self.status.values()):
                return 'not begun'
            try:
                self.process = subprocess.Popen(argv, cwd=TOP, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                start_new_session=True)
            except OSError as e:
                return str(e)
            self.weigh()
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)  # its number stays its own until it is taken back
        with self.lock:
            process, self.process = self.process, None
        return process.wait()

    def weigh(self):
        """What is waited for, or must be done before it, has its full share."""
        asked = self.wanted and self.steps.index(self.now) <= self.steps.index(self.wanted)
        for _ in range(20):
            try:
                with open(f'/proc/{self.process.pid}/autogroup', 'w') as f:
                    f.write(str(self.FULL if asked else self.LEAST))
                return
            except BlockingIOError:  # who is not root may do it ten times a second
                time.sleep(0.11)
            except OSError:
                return  # a kernel without: then all have the same share

    def wait(self, name):
        with self.lock:
            self.wanted = name
            if self.process:
                self.weigh()
        if not self.done[name].wait(self.LIMIT):
            return f'no end after {self.LIMIT} s'
        return self.status[name]


# ---- results ----

def meson_log(builddir, base='testlog'):
    return os.path.join(TOP, builddir, 'meson-logs', base + '.json')


def meson_tests(builddir, args, patience):
    """The command that runs tests of a build directory; patience: factor for time limits. Three at a time on two
    cores: many wait for most of their time."""
    return ['meson', 'test', '-C', builddir, '--no-rebuild', '--print-errorlogs', '--num-processes', '3',
            '--timeout-multiplier', str(patience), *args]


class Report:
    def __init__(self, record=None):
        """record: file of how long things took the last time, for estimates."""
        self.passed, self.failures, self.skips, self.took = [], [], {}, {}
        self.record = record
        try:
            with open(record) as f:
                self.last = json.load(f)
        except (OSError, ValueError, TypeError):
            self.last = {}

    def run(self, name, argv, timeout=None, progress=None):
        """Exit status, or what else happened. In a process group of its own: an interruption comes through us."""
        with Heartbeat(name, self.last.get(name), progress) as pulse:
            process = subprocess.Popen(argv, cwd=TOP, process_group=0)
            try:
                status = process.wait(timeout)
            except subprocess.TimeoutExpired:
                status = f'no end after {timeout} s'
            finally:
                if process.poll() is None:
                    process.terminate()  # of meson: all its tests end
                    try:
                        process.wait(10)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
            self.last[name] = time.monotonic() - pulse.start
        return status

    def note(self, name, outcome, seconds, why=''):
        """One test: outcome is meson's word."""
        self.took[name] = seconds
        if outcome == 'SKIP':
            self.skips[name] = why
        elif outcome in PASSED:
            self.passed.append(name)
        else:
            self.failures.append(f'{name}: {why or outcome}')

    def step(self, name, argv, timeout, counts=True):
        """One command, which counts as one test."""
        print(f'RUN   {name}' + (f' (some {self.last[name]:.0f} s)' if self.last.get(name, 0) > 5 else ''), flush=True)
        status = self.run(name, argv, timeout)
        seconds = self.last[name]
        print(f"{'OK   ' if status == 0 else 'FAIL '} {name} ({seconds:.0f} s)"
              + ('' if status == 0 else f': exit status {status}'), flush=True)
        if counts or status:
            self.note(name, 'OK' if status == 0 else 'FAIL', seconds, f'exit status {status}')
        else:
            self.took[name] = seconds
        return status

    def finish(self, beside, name, counts=False):
        """Waits for a command of Beside; counts, as in step(), or only if it failed, or (None) somewhere else."""
        print(f'RUN   {name}: begun beside the tests', flush=True)
        with Heartbeat(name, self.last.get(name)):
            status = beside.wait(name)
        seconds = beside.seconds.get(name, beside.LIMIT)
        self.last[name] = self.took[name] = seconds
        if status:
            print(beside.output.get(name, ''), end='')
        if counts or (status and counts is False):
            self.note(name, 'OK' if status == 0 else 'FAIL', seconds, f'exit status {status}')
        print(f"{'OK   ' if status == 0 else 'FAIL '} {name} ({seconds:.0f} s beside the tests)"
              + ('' if status == 0 else f': exit status {status}'), flush=True)
        return status

    @staticmethod
    def name_of(builddir, args):
        return ' '.join(['meson test', builddir, *args])

    def meson(self, builddir, args, patience):
        """meson_tests(), whose results are counted one by one."""
        log = meson_log(builddir)
        if os.path.exists(log):
            os.remove(log)

        def progress():
            try:
                with open(log) as f:
                    return f'{sum(1 for _ in f)} tests done'
            except OSError:
                return 'no test done'
        status = self.run(self.name_of(builddir, args), meson_tests(builddir, args, patience), None, progress)
        self.meson_results(builddir, status)

    def meson_results(self, builddir, status, base='testlog'):
        """Counts the results of a run of meson_tests() that ended so and was logged there (--logbase); a word for status:
        there was none."""
        bad = len(self.failures)
        rows = []
        with contextlib.suppress(OSError):
            if isinstance(status, int):
                with open(meson_log(builddir, base)) as f:
                    rows = [json.loads(line) for line in f]
        for row in rows:
            self.meson_result(builddir, row)
        if (status and bad == len(self.failures)) or not rows:
            self.failures.append(f'{builddir}: meson test: exit status {status}, {len(rows)} results')

    def meson_result(self, builddir, row):
        name = row['name'].split(' / ')[-1]
        name = name if builddir == 'build' else f'{builddir}/{name}'
        text = f"{row.get('stdout') or ''}\n{row.get('stderr') or ''}"
        why = ''
        if row['result'] == 'SKIP':
            said = [line for line in text.splitlines() if 'skip' in line.lower()]
            why = said[-1].strip() if said else 'it does not say why'
        elif row['result'] not in PASSED:
            why = f"{row['result']}: {why_failed(text)}".removesuffix(': ')
        self.note(name, row['result'], row['duration'], why)
        for case, reason in skipped_cases(text).items() if row['result'] in PASSED else ():
            self.skips[f'{name}/{case}'] = reason

    def compare_skips(self):
        ran = self.passed + [f.split(':')[0] for f in self.failures]
        self.failures += wrong_skips(self.skips, ran, read_skips())

    def write_record(self):
        with open(self.record, 'w') as f:
            json.dump(self.last, f, indent=1)

    def end(self):
        """Prints what there is to say, the counts last. Exit status."""
        if self.record and not self.failures:
            self.write_record()
        slow = sorted(self.took.items(), key=lambda row: -row[1])[:SLOWEST]
        if slow and slow[0][1] >= 1:
            print('\nthe slowest, seconds:')
            for name, seconds in slow:
                print(f'{seconds:8.1f}  {name}')
        for name, reason in self.skips.items():
            print(f'skipped: {name}: {reason}')
        for text in self.failures:
            print(f'failed: {text}')
        print(f'\n{len(self.passed)} passed, {len(self.failures)} failed, {len(self.skips)} skipped', flush=True)
        return 1 if self.failures else 0
