# SPDX-License-Identifier: BSD-3-Clause
"""One program on all hosts of a fabric, and the logs of its processes: lines with the node's name before them."""
import os
import shutil
import subprocess
import sys
import threading
import time

from incline_fabric import LabError
from incline_processes import end_on_signals

FOLLOW_EVERY = 0.2


class Prefixed:
    """Whole lines of several writers on one stream."""

    def __init__(self, names, out):
        self.width, self.out, self.lock = max(map(len, names)), out, threading.Lock()

    def line(self, name, text):
        with self.lock:
            self.out.write(f'{name:{self.width}} | {text.rstrip()}\n')
            self.out.flush()


def start(lab, name, argv):
    """With its output in one pipe, and the host busy as long as it runs."""
    if lab.host(name)['nic'] == 'soft-roce':
        return lab.popen(name, argv, limit=3600, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lock = lab.hold(name)
    try:
        return lab.popen(name, argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, errors='replace', pass_fds=(lock,))
    finally:
        os.close(lock)


def show(name, process, out):
    if isinstance(process, subprocess.Popen):
        for text in process.stdout:
            out.line(name, text)
        process.wait()
    else:  # a virtual machine's output is there when the program has ended
        for part in process.communicate():
            for text in part.splitlines():
                out.line(name, text)


def run_everywhere(lab, argv, out=sys.stdout):
    """The exit status: 0 if all have 0, else the first other one in the order of hosts; who has another is told on
    stderr. A signal ends all of them."""
    names = [h['name'] for h in lab.state()['hosts']]
    if not shutil.which(argv[0]):
        raise LabError(f'run: {argv[0]}: no such program')
    end_on_signals()
    processes, threads, prefixed = {}, [], Prefixed(names, out)
    try:
        for name in names:
            processes[name] = start(lab, name, argv)
        threads = [threading.Thread(target=show, args=(name, p, prefixed), daemon=True) for name, p in processes.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.kill()
        for process in processes.values():
            process.wait()
    codes = {name: p.returncode if p.returncode >= 0 else 128 - p.returncode for name, p in processes.items()}
    for name, code in codes.items():
        if code:
            print(f'{name}: exit status {code}', file=sys.stderr)
    return next(filter(None, codes.values()), 0)


def show_logs(lab, name, lines, follow, out=sys.stdout):
    """Of one process, or of all with their names; lines: the last ones, None for all; follow: until a signal."""
    files = lab.logs()
    if name and name not in files:
        raise LabError(f'{name}: has no log; there are ' + ', '.join(files))
    files = {name: files[name]} if name else files
    prefixed = Prefixed(list(files), out)
    open_files = {n: open(path, errors='replace') for n, path in files.items()}
    try:
        first = True
        while first or follow:
            for n, f in open_files.items():
                said = f.read().splitlines()
                for text in said[-lines:] if first and lines else said:
                    prefixed.line(n, text) if not name else out.write(text + '\n')
            out.flush()
            first = False
            if follow:
                time.sleep(FOLLOW_EVERY)
    finally:
        for f in open_files.values():
            f.close()
