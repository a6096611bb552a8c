# SPDX-License-Identifier: BSD-3-Clause
"""What tests with real processes have in common: a fabric of tools/lab for the tests of a class, programs on its
hosts, questions to its switches."""
import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tests/interop'))
sys.path.insert(0, os.path.join(TOP, 'tools'))
import checks  # noqa: E402
from incline_fabric import LabError, Topology  # noqa: E402
from incline_lab import Lab, build_dir, free_port, listening  # noqa: E402
from incline_processes import SIGNALS, descendants, end_descendants  # noqa: E402
import incline_planes  # noqa: E402

__all__ = ['Fabric', 'Lab', 'LabError', 'TOP', 'Topology', 'app', 'build_dir', 'listening', 'run_tests', 'topology']

MARK = 'INCLINE_TEST'  # in the environment of a test's programs: which test
WORKERS = int(os.environ.get('INCLINE_TEST_WORKERS', 1))  # of switches that say nothing of it


def topology(name):
    with open(os.path.join(TOP, 'tools/fabrics', name + '.json')) as f:
        doc = json.load(f)
    for switch in doc.get('switches', []) if WORKERS > 1 else ():
        switch.setdefault('workers', WORKERS)
    return incline_planes.topology(doc)


def app(name):
    return os.path.join(build_dir(), 'apps', name)


def family(pid):
    """A process and all that it has started."""
    children = []
    for path in glob.glob(f'/proc/{pid}/task/*/children'):
        try:
            with open(path) as f:
                children += map(int, f.read().split())
        except OSError:
            pass
    return [pid, *(p for c in children for p in family(c))]


def marked(pid, mark):
    try:
        with open(f'/proc/{pid}/environ', 'rb') as f:
            return f'{MARK}={mark}'.encode() in f.read().split(b'\0')
    except OSError:  # it has ended, or is not ours to look at
        return False


def orphans(mark):
    """Processes with this mark in their environment that are not below this one: who started them has ended. The lab's
    switches are below it."""
    ours = {os.getpid(), *descendants()}
    return [pid for pid in map(int, filter(str.isdigit, os.listdir('/proc'))) if pid not in ours and marked(pid, mark)]


def kill_orphans(mark, *numbers):
    """By a handle: nobody here waits for them, and a number may be another process's by now."""
    for pid in orphans(mark):
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            for number in numbers or [signal.SIGKILL] if marked(pid, mark) else ():
                signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)


class Ended(Exception):
    """By a signal: what the test that runs fails with, so that it takes down what it has made."""


class Runner(unittest.TextTestRunner):
    """A signal ends it, with all that it has begun, and the tests that are left are not run. After a test's time meson sends
    SIGTERM, and SIGKILL half a second later: so processes are told first of all, also those that are in no group of ours."""
    number = 0

    def _makeResult(self):
        self.result = super()._makeResult()
        for number in SIGNALS:
            signal.signal(number, self.end)
        return self.result

    def end(self, number, _):
        for n in SIGNALS:
            signal.signal(n, lambda *_: None)  # once is enough
        Runner.number, mark = number, os.environ.get(MARK)
        for n in signal.SIGTERM, signal.SIGCONT:
            for pid in descendants():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, n)
        kill_orphans(mark, signal.SIGTERM, signal.SIGCONT)
        end_descendants()
        kill_orphans(mark)
        self.result.failfast = True  # of subtests
        self.result.stop()
        raise Ended(f'by signal {number}')


def run_tests(**how):
    """What unittest.main() does, and ends as Runner says."""
    done = unittest.main(testRunner=Runner, exit=False, **how).result
    sys.exit(128 + Runner.number if Runner.number else not done.wasSuccessful())


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def where(pids):
    """What each thread of these processes waits for: in the kernel, and with gdb in the program."""
    said = []
    for p in pids:
        try:
            with open(f'/proc/{p}/cmdline', 'rb') as f:
                said.append(f'{p}: {f.read().replace(bytes(1), b" ").decode(errors="replace")[:200]}')
            for task in os.listdir(f'/proc/{p}/task'):
                with open(f'/proc/{p}/task/{task}/stat') as stat, open(f'/proc/{p}/task/{task}/wchan') as wchan:
                    said.append(f'  {task}: {stat.read().rpartition(")")[2].split()[0]} {wchan.read()}')
            if shutil.which('gdb'):
                said.append(subprocess.run(['gdb', '-p', str(p), '-batch', '-nx', '-ex', 'thread apply all bt 12'], capture_output=True,
                                           text=True, timeout=30).stdout)
        except (OSError, subprocess.TimeoutExpired) as e:
            said.append(f'  {e}')
    return '\n'.join(said)


class Fabric(unittest.TestCase):
    """Of a program nothing outlives it: what one test leaves behind in a switch would be a defect that the next may
    well find."""
    topo = 'star4'
    impair = None
    netns = False

    @classmethod
    def topology(cls):
        return topology(cls.topo)

    @classmethod
    def up(cls):
        cls.dir = tempfile.mkdtemp(prefix='incline-')
        cls.lab = Lab(cls.dir)
        cls.lab.up(cls.topology(), cls.impair, cls.netns)

    @classmethod
    def down(cls):
        killed = cls.lab.down()
        if killed or os.path.exists(cls.dir):
            raise AssertionError(f'had to be killed: {killed}')

    @classmethod
    def setUpClass(cls):
        cls.up()

    @classmethod
    def tearDownClass(cls):
        cls.down()

    def breaks_fabric(self):
        """The tests that follow get another one."""
        self.addCleanup(self.up)
        self.addCleanup(self.down)

    def in_weather(self, function, *args):
        """What the function returns, if the weather of `impair` was there meanwhile, and no other."""
        return checks.during(self.lab, [s['name'] for s in self.topology().switches], self.impair, function, *args)

    def setUp(self):
        self.procs = []
        self.mark = os.environ[MARK] = f'{os.getpid()}.{time.monotonic_ns()}'

    def tearDown(self):
        """With what they have started: a launcher's ranks would hold its pipes open, also when it has ended."""
        for p in self.procs:
            if p.poll() is None:
                kill(family(p.pid))
        kill_orphans(self.mark)  # who was below one of them, too, if it began meanwhile
        os.environ.pop(MARK, None)
        for p in self.procs:
            p.communicate(timeout=60)  # who still holds a pipe was left over

    def left(self, p):
        """A program, all that it has started, and what programs of this test that have ended had started."""
        return [*(family(p.pid) if p.poll() is None else []), *orphans(self.mark)]

    def start(self, host, argv, **kwargs):
        p = self.lab.popen(host, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
        self.procs.append(p)
        return p

    def perf(self, ranks, *args):
        return [self.start(f'h{r}', [app('incline-perf'), '--group', self.lab.path('group.json'),
                                     '--rank', str(r), *args]) for r in ranks]

    def finish(self, procs, timeout):
        """(exit status, stdout, stderr) of each."""
        deadline = time.monotonic() + timeout
        result = []
        for p in procs:
            try:
                out, err = p.communicate(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired as e:
                self.hangs(p, timeout, e.stdout, e.stderr, *self.said_of_others(procs, p, result))
            result.append((p.returncode, out, err))
        return result

    @staticmethod
    def said_of_others(procs, hangs, done):
        """Why a program waits is often what another one has said that has ended."""
        for p, (rc, out, err) in zip(procs, done):
            yield f'{p.args} has ended with {rc}:\n{out or ""}{err or ""}'.encode()
        for p in procs[len(done):]:
            if p is not hangs and p.poll() is not None:
                try:
                    said = ''.join(filter(None, p.communicate(timeout=1))).encode()
                except subprocess.TimeoutExpired as e:  # what it has started holds its pipes
                    said = (e.stdout or b'') + (e.stderr or b'')
                yield f'{p.args} has ended with {p.returncode}:\n'.encode() + said

    def hangs(self, p, timeout, *said):
        """Whoever has to find out why has this only."""
        so_far = b'\n'.join(s or b'' for s in said).decode(errors='replace')
        self.fail(f'{p.args} is not done after {timeout} s, with load {os.getloadavg()}; so far it said:\n{so_far}\n{where(self.left(p))}')

    def line(self, p, timeout=60):
        """The next one that a program says."""
        waits = []

        def late():
            waits.append(where(self.left(p)))
            kill(family(p.pid) if p.poll() is None else [])
            kill_orphans(self.mark)
        timer = threading.Timer(timeout, late)
        timer.start()
        said = p.stdout.readline()
        timer.cancel()
        if waits:
            self.fail(f'{p.args} has said nothing for {timeout} s:\n{waits[0]}')
        return said

    def all_ok(self, procs, timeout=60):
        """What each has printed."""
        done = self.finish(procs, timeout)
        for rank, (rc, out, err) in enumerate(done):
            self.assertEqual(rc, 0, f'rank {rank}: {err}\n{out}')
        return [out for _, out, _ in done]

    def variant(self, **fields):
        """The lab's group file with other fields."""
        with open(self.lab.path('group.json')) as f:
            group = json.load(f)
        group.update(fields)
        path = os.path.join(self.dir, 'variant.json')
        with open(path, 'w') as f:
            json.dump(group, f)
        return path

    def report(self, group, *args, ranks=4):
        """With what rank 0 has printed as `text`."""
        out = os.path.join(self.dir, 'perf.out')
        text = self.all_ok([self.start(f'h{r}', [app('incline-perf'), '--group', group, '--rank', str(r), *args]
                                       + (['--json', out] if r == 0 else [])) for r in range(ranks)])[0]
        with open(out) as f:
            report = json.load(f)
        os.remove(out)
        return {**report, 'text': text}

    def pingpong(self, program, server, client, *args):
        """One of rdma-core's pingpong programs. They set a retry budget of half a second: whoever does not get the CPU
        for so long fails (docs/lab.md, "A crowded machine")."""
        port = free_port()
        procs = [self.start(server, [program, '-g', '1', '-p', str(port), *args])]
        deadline = time.monotonic() + 20
        while not listening(port) and procs[0].poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        procs.append(self.start(client, [program, '-g', '1', '-p', str(port), *args, '127.0.0.1']))
        for p in procs[1], procs[0]:
            try:
                p.wait(60 if p is procs[1] else 5)
            except subprocess.TimeoutExpired:
                p.kill()
        results = self.finish(procs, 10)
        if any(rc for rc, _, _ in results):
            self.fail('\n'.join(err + out for _, out, err in results))

    def no_groups_left(self, *switches, patience=120):
        """Groups that answer late packets, or whose job went on without them, end within seconds."""
        deadline = time.monotonic() + patience
        for switch in switches:
            while left := self.rpc(switch, 'group.list')['result']['groups']:
                self.assertLess(time.monotonic(), deadline, f'{switch} still has {left}')
                time.sleep(0.1)

    def workers_hand_over(self, *switches):
        """Each switch has as many as it was given, and where these are several some packet came to another than its
        group's."""
        for switch in switches:
            workers = self.rpc(switch, 'worker.list')['result']['workers']
            self.assertEqual(len(workers), WORKERS)
            self.assertEqual(sum(w['handed_over'] for w in workers) > 0, WORKERS > 1, workers)

    def rpc(self, switch, method, params=None):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(self.lab.control_socket(switch))
            s.sendall(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method,
                                  'params': params or {}}).encode() + b'\n')
            f = s.makefile()
            while True:
                reply = json.loads(f.readline())
                if reply.get('id') == 1:
                    return reply
