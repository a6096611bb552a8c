# SPDX-License-Identifier: BSD-3-Clause
"""Processes that must not outlive who started them, and what a signal may interrupt."""
import ctypes
import os
import signal
import sys
import threading
import time

PR_SET_CHILD_SUBREAPER = 36
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


def end_on_signals():
    """Signals end this program as an exception does: what it began is taken back. SIGINT too: a shell that starts us
    in the background has it ignored."""
    for number in SIGNALS:
        signal.signal(number, lambda n, _: sys.exit(128 + n))


class Undisturbed:
    """Signals that come meanwhile have their effect at the end of it: a process is started and written down, or not."""

    def __enter__(self):
        self.pending, self.old = [], {}
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:  # or our children would not have it ignored
                    self.old[number] = signal.signal(number, lambda n, _: self.pending.append(n))
        return self

    def __exit__(self, *_):
        for number, handler in self.old.items():
            signal.signal(number, handler)
        for number in self.pending:
            os.kill(os.getpid(), number)


def process_start(pid):
    """Start time of a process, which tells it from a later one with the same number."""
    try:
        with open(f'/proc/{pid}/stat') as f:
            fields = f.read().rsplit(')', 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == 'Z' else fields[19]


def adopt_orphans():
    """Descendants whose parents end become children of this process, so that none is lost."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants():
    """Every process below this one."""
    parent = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/stat') as f:
                parent[int(pid)] = int(f.read().rsplit(')', 1)[1].split()[1])
        except OSError:
            pass
    below, grown = {os.getpid()}, True
    while grown:
        new = {pid for pid, above in parent.items() if above in below} - below
        below |= new
        grown = bool(new)
    return below - {os.getpid()}


def end_descendants(patience=5):
    """SIGTERM, and SIGKILL for who does not heed it."""
    for number in signal.SIGTERM, signal.SIGKILL:
        deadline = time.monotonic() + patience
        for pid in descendants():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        while time.monotonic() < deadline:
            try:
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            except ChildProcessError:
                return
            time.sleep(0.02)
