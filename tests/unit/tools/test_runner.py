#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/test: names, results, skips, and what an interruption leaves."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from types import SimpleNamespace

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TOOLS = os.path.join(TOP, 'tools')
sys.path.insert(0, TOOLS)
import incline_repeat  # noqa: E402
import incline_tests as t  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader('tools_test', os.path.join(TOOLS, 'test'))
TOOL = importlib.util.module_from_spec(importlib.util.spec_from_loader(LOADER.name, LOADER))
LOADER.exec_module(TOOL)
KNOWN = {'reduce-avx2': {'unit'}, 'reduce-avx512': {'unit'}, 'wire': {'unit'}, 'netdev': {'process'}}
INTERRUPTED = f'''
import subprocess, sys, time
sys.path.insert(0, {TOOLS!r})
import incline_tests as t
import incline_processes
incline_processes.end_on_signals()
with t.Workspace() as w:
    open(w.dir + '/left', 'w').close()
    # One in a session of its own whose parent has ended, one that ignores SIGTERM.
    subprocess.run(['sh', '-c', 'setsid sleep 600 & echo $!'])
    subprocess.Popen(['sh', '-c', 'trap "" TERM; echo $$; while :; do sleep 1; done'])
    time.sleep(0.5)
    print(w.dir, flush=True)
    t.Report().run('x', ['sleep', '600'])
'''


def row(name, result, **more):
    return {'name': 'incline:unit / ' + name, 'result': result, 'duration': 1.0, 'stdout': '', 'stderr': '', **more}


def alive(pid):
    try:
        with open(f'/proc/{pid}/stat') as f:
            return f.read().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


class Names(unittest.TestCase):
    def test_names_and_wildcards(self):
        self.assertEqual(t.choose(['wire', 'reduce-*'], KNOWN), ['wire', 'reduce-avx2', 'reduce-avx512'])

    def test_unknown_names_are_errors_with_a_hint(self):
        for wrong, hint in ('reduce-avx51', 'is it reduce-avx512, reduce-avx2?'), ('avx512', 'is it reduce-avx512?'), \
                ('nosuchtest', 'no such test (tools/test --list'):
            with self.assertRaises(t.TestError) as e:
                t.choose(['wire', wrong], KNOWN)
            self.assertIn(f'{wrong}: no such test', str(e.exception))
            self.assertIn(hint, str(e.exception))


class Order(unittest.TestCase):
    def setUp(self):
        self.steps = []
        report = SimpleNamespace(step=lambda name, argv, *_, **__: self.steps.append(argv), end=lambda: 0,
                                 meson=lambda builddir, args, _: self.steps.append([builddir, *args]))
        for name, value in ('Report', lambda _: report), ('known_tests', lambda _: KNOWN):
            self.addCleanup(setattr, TOOL, name, getattr(TOOL, name))
            setattr(TOOL, name, value)

    def run_tool(self, *names, **options):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            status = TOOL.run(SimpleNamespace(names=names, **{'list': False, 'quick': False, 'long': False, 'full': False,
                                                                     'repeat': None, 'json': None, **options}))
        return status, out.getvalue()

    def test_a_wrong_name_is_told_before_anything_is_built(self):
        with self.assertRaisesRegex(t.TestError, 'nosuchtest: no such test'):
            self.run_tool('wire', 'nosuchtest')
        self.assertEqual(self.steps, [['tools/build', '--configure']])

    def test_names_are_run_after_the_build(self):
        self.assertEqual(self.run_tool('wire'), (0, ''))
        self.assertEqual(self.steps, [['tools/build', '--configure'], ['tools/build'], ['build', 'wire']])

    def test_format_is_first_of_all_and_ends_a_full_run(self):
        def fails(name, argv, *_, **__):
            self.steps.append(argv[0])
            return 1
        TOOL.Report(None).step = fails
        with self.assertRaisesRegex(t.TestError, '^format: '):
            self.run_tool(full=True)
        self.assertEqual(self.steps, ['clang-format'])

    def test_a_list_takes_no_build(self):
        self.assertIn('netdev ', self.run_tool(list=True)[1])
        self.assertEqual(self.steps, [['tools/build', '--configure']])

    def test_what_is_short_with_sanitizers_is_long_somewhere(self):
        def after(wanted):
            return self.steps[self.steps.index(wanted):]
        self.run_tool(long=True)
        self.assertIn(['build-asan', '--suite', 'sanitized'], after(['tools/build', *TOOL.ASAN_LONG]))
        self.assertEqual(TOOL.ASAN_LONG[:3], ['--tests', 'sanitized', 'build-asan'])
        self.assertEqual(TOOL.ASAN_LONG[2:], TOOL.ASAN[2:])  # the same directory: the same options
        self.assertIn(['tests/integration/elsewhere.py'], self.steps)

    def test_a_suite_is_a_name(self):
        self.run_tool('unit')
        self.assertEqual(self.steps[-1], ['build', 'reduce-avx2', 'reduce-avx512', 'wire'])

    def test_options_that_do_not_go_together_are_refused(self):
        for argv in ['--repeat', '0'], ['--repeat', 'x'], ['--json', 'x'], ['--repeat', '2', '--full'], ['--full', 'wire']:
            with self.assertRaises(SystemExit) as e, contextlib.redirect_stderr(io.StringIO()):
                TOOL.arguments(argv)
            self.assertEqual(e.exception.code, 2, argv)
        args = TOOL.arguments(['--repeat', '20', '--json', 'x', 'wire', 'mgr'])
        self.assertEqual((args.repeat, args.json, args.names), (20, os.path.abspath('x'), ['wire', 'mgr']))


class Results(unittest.TestCase):
    def end(self, report):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            return report.end(), out.getvalue().splitlines()

    def test_what_fails_once_has_failed(self):
        report = t.Report()
        report.meson_result('build', row('wire', 'OK'))
        report.meson_result('build', row('netdev', 'FAIL'))
        report.meson_result('build-asan', row('wire', 'TIMEOUT'))
        status, said = self.end(report)
        self.assertEqual((status, said[-1]), (1, '1 passed, 2 failed, 0 skipped'))
        self.assertIn('failed: build-asan/wire: TIMEOUT', said)

    def test_what_fails_says_why(self):
        for said, why in (('OK    one\nFAIL  two: rank 2: no end after 240 s\nrank 3\n3 cases', 'FAIL: FAIL  two: rank 2: no end after 240 s'),
                          ('[  ERROR   ] --- 0 != 0x1\n[  FAILED  ] changes', 'FAIL: [  ERROR   ] --- 0 != 0x1'),
                          ('Traceback (most recent call last):\n  File "x"\nOSError: [Errno 2] no file\n', 'FAIL: OSError: [Errno 2] no file'),
                          ('==7==ERROR: AddressSanitizer: heap-use-after-free on', 'FAIL: ==7==ERROR: AddressSanitizer: heap-use-after-free on'),
                          ('nothing', 'FAIL')):
            report = t.Report()
            report.meson_result('build', row('soft-roce', 'FAIL', stdout=said))
            self.assertEqual(report.failures, [f'soft-roce: {why}'])

    def test_skipped_tests_and_cases_are_named(self):
        report = t.Report()
        report.meson_result('build', row('reduce-avx512', 'SKIP', stdout='skipped: this CPU has no avx512\n'))
        report.meson_result('build', row('netdev', 'OK', stderr=(
            "test_ping (__main__.Interfaces.test_ping) ... skipped 'network namespaces need root'\n"
            'test_qperf (__main__.Interfaces.test_qperf)\nIts queue pairs ... ... skipped "no qperf"\n'
            'test_fork (__main__.Ports.test_fork) ... ok\n')))
        self.assertEqual(report.skips, {'reduce-avx512': 'skipped: this CPU has no avx512',
                                        'netdev/Interfaces.test_ping': 'network namespaces need root',
                                        'netdev/Interfaces.test_qperf': 'no qperf'})
        status, said = self.end(report)
        self.assertEqual((status, said[-1]), (0, '1 passed, 0 failed, 3 skipped'))

    def test_the_slowest_come_first(self):
        report = t.Report()
        for i in range(30):
            report.note(f'n{i}', 'OK', 1.0 * i)
        _, said = self.end(report)
        self.assertEqual(said[2].split(), ['29.0', 'n29'])
        self.assertEqual(len([line for line in said if line.endswith(tuple(f' n{i}' for i in range(30)))]), t.SLOWEST)

    def test_estimates_are_of_the_last_run_that_passed(self):
        with tempfile.TemporaryDirectory() as d:
            report = t.Report(os.path.join(d, 'times'))
            with contextlib.redirect_stdout(io.StringIO()) as out:
                report.step('s', ['true'], 10)
                report.end()
                again = t.Report(os.path.join(d, 'times'))
                self.assertIn('s', again.last)
                self.assertEqual(again.step('f', ['sh', '-c', 'exit 3'], 10), 3)
                self.assertEqual(again.end(), 1)
            self.assertIn('failed: f: exit status 3', out.getvalue())
            self.assertNotIn('f', t.Report(os.path.join(d, 'times')).last)
        self.assertEqual(t.Heartbeat('x', 90.4, lambda: '3 tests done').line(30), '...   x: 30 s of some 90, 3 tests done')

    def test_a_step_without_end_fails(self):
        report = t.Report()
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(report.step('s', ['sleep', '600'], 0.1), 'no end after 0.1 s')
        self.assertEqual(len(report.failures), 1)


class Again(unittest.TestCase):
    """tools/test --repeat, with rounds of 600 s on a clock of their own."""

    def repeat(self, rounds, results, last=None):
        """results: of each round, [(name, outcome)]."""
        now, asked = [0], []

        class Rounds(incline_repeat.Repeat):
            def meson(self, builddir, args, patience):
                asked.append(args)
                for name, outcome in results[len(asked) - 1]:
                    self.meson_result(builddir, row(name, outcome, duration=float(len(asked))))
                now[0] += 600
        report = Rounds(rounds)
        report.last = last or {}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            report.run_all(['netdev', 'etcd'], 3, SimpleNamespace(time=lambda: now[0], monotonic=lambda: now[0]))
            status = report.end()
        return status, asked, out.getvalue().splitlines(), report.outcome()

    def test_all_rounds_pass(self):
        status, asked, said, outcome = self.repeat(3, [[('netdev', 'OK'), ('etcd', 'SKIP')]] * 3)
        self.assertEqual(asked, [['netdev', 'etcd', '--maxfail', '1']] * 3)
        self.assertEqual((status, said[-1]), (0, '3 of 3 rounds passed, 3 tests in 1800 s'))
        self.assertEqual(outcome['tests'], [{'name': 'netdev', 'passed': 3, 'shortest_s': 1, 'mean_s': 2, 'longest_s': 3}])
        self.assertEqual((outcome['failed'], list(outcome['skipped'])), ([], ['etcd']))

    def test_the_end_is_estimated(self):
        said = self.repeat(3, [[('netdev', 'OK')]] * 3)[2]
        self.assertEqual(said[0], 'ROUND 1 of 3')
        hour = time.strftime('%H:%M', time.localtime(1800))
        self.assertEqual(said[1:3], [f'ROUND 2 of 3, some 20 min more, until {hour}', f'ROUND 3 of 3, some 10 min more, until {hour}'])
        known = self.repeat(1, [[('netdev', 'OK')]], {'meson test build netdev etcd --maxfail 1': 300})[2]
        self.assertEqual(known[0], f"ROUND 1 of 1, some 5 min more, until {time.strftime('%H:%M', time.localtime(300))}")

    def test_the_first_that_fails_ends_it(self):
        self.addCleanup(setattr, incline_repeat, 'TOP', incline_repeat.TOP)
        self.addCleanup(setattr, incline_repeat, 'meson_log', incline_repeat.meson_log)
        with tempfile.TemporaryDirectory() as d:
            os.mkdir(os.path.join(d, 'build'))
            with open(os.path.join(d, 'testlog.txt'), 'w') as f:
                f.write('what it said')
            incline_repeat.TOP, incline_repeat.meson_log = d, lambda _: os.path.join(d, 'testlog.json')
            status, asked, said, outcome = self.repeat(5, [
                [('netdev', 'OK'), ('etcd', 'OK')], [('netdev', 'FAIL'), ('etcd', 'INTERRUPT')]])
            with open(os.path.join(d, incline_repeat.LOG)) as f:
                self.assertEqual(f.read(), 'what it said')
            incline_repeat.write(outcome, os.path.join(d, 'json'))
            with open(os.path.join(d, 'json')) as f:
                self.assertEqual(json.load(f), outcome)
        self.assertEqual((status, len(asked)), (1, 2))
        self.assertEqual((outcome['rounds'], outcome['passed'], outcome['failed']), (5, 1, ['netdev: FAIL']))
        self.assertIn('failed: netdev: FAIL', said)
        self.assertEqual(said[-1], '1 of 5 rounds passed, 3 tests in 1200 s: round 2 failed')
        self.assertEqual(outcome['seconds'], 1200)


class BesideTheTests(unittest.TestCase):
    def finish(self, report, beside, *names, counts=False):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            return [report.finish(beside, name, counts) for name in names], out.getvalue()

    def test_one_after_the_other_and_none_after_one_that_failed(self):
        report = t.Report()
        steps = [('a', ['sh', '-c', 'echo said by a']), ('b', ['sh', '-c', 'echo said by b; exit 3']), ('c', ['true'])]
        with t.Beside(steps) as beside:
            status, out = self.finish(report, beside, 'a', 'b', 'c')
        self.assertEqual(status, [0, 3, 'not begun'])
        self.assertEqual(report.failures, ['b: exit status 3', 'c: exit status not begun'])
        self.assertEqual(report.passed, [])
        self.assertIn('said by b\n', out)
        self.assertNotIn('said by a\n', out)

    def test_what_counts_is_one_test(self):
        report = t.Report()
        with t.Beside([('a', ['true']), ('b', ['false'])]) as beside:
            self.finish(report, beside, 'a', 'b', counts=True)
        self.assertEqual((report.passed, report.failures), (['a'], ['b: exit status 1']))

    def test_results_of_tests_beside_are_counted_one_by_one(self):
        report = t.Report()
        with tempfile.TemporaryDirectory() as d:
            os.mkdir(d + '/meson-logs')
            for base, rows in ('testlog', (('wire', 'OK'), ('mgr', 'FAIL'))), ('model', (('model-ci', 'OK'),)):
                with open(f'{d}/meson-logs/{base}.json', 'w') as f:
                    f.writelines(json.dumps(row(*r)) + '\n' for r in rows)
            report.meson_results(d, 0, 'model')  # the log that it is told
            steps = [('a', ['false']), ('b', ['true'])]
            with t.Beside(steps) as beside:
                for status in self.finish(report, beside, 'a', 'b', counts=None)[0]:
                    report.meson_results(d, status)
        self.assertEqual((report.passed, report.failures), ([d + '/model-ci', d + '/wire'], [
            d + '/mgr: FAIL', d + ': meson test: exit status not begun, 0 results']))  # not the log once more

    def test_what_cannot_be_run_has_failed(self):
        report = t.Report()
        with t.Beside([('a', ['/nowhere/x'])]) as beside:
            status, _ = self.finish(report, beside, 'a')
        self.assertIn('No such file', status[0])
        self.assertEqual(len(report.failures), 1)

    def test_its_end_is_theirs(self):
        with tempfile.TemporaryDirectory() as d:
            with t.Beside([('a', ['sh', '-c', f'echo $$ > {d}/pid.; mv {d}/pid. {d}/pid; sleep 600; :']),
                           ('b', ['touch', d + '/b'])]):
                while not os.path.exists(d + '/pid'):
                    time.sleep(0.01)
            with open(d + '/pid') as f:
                self.assertFalse(alive(int(f.read())))
            self.assertFalse(os.path.exists(d + '/b'))

    @unittest.skipUnless(os.access('/proc/self/autogroup', os.W_OK), 'this kernel has no autogroup')
    def test_the_share_is_least_until_it_is_waited_for(self):
        end = ['sh', '-c', 'sleep 600 & wait; :']
        with tempfile.TemporaryDirectory() as d, \
                t.Beside([(name, ['sh', '-c', f'until [ -e {d}/{name} ]; do sleep 0.05; done']) for name in 'ab'] +
                         [('c', end)]) as beside:
            def await_share(name, share):
                while True:
                    process = beside.process
                    if beside.now == name and process:
                        with contextlib.suppress(OSError), open(f'/proc/{process.pid}/autogroup') as f:
                            if int(f.read().split()[-1]) == share:
                                return
                    time.sleep(0.01)
            await_share('a', beside.LEAST)
            waiting = threading.Thread(target=beside.wait, args=('b',))
            waiting.start()
            await_share('a', beside.FULL)  # b is wanted, which is after it
            open(d + '/a', 'w').close()
            await_share('b', beside.FULL)
            open(d + '/b', 'w').close()
            waiting.join()
            await_share('c', beside.LEAST)

    def test_no_test_beside_has_a_limit_of_its_own(self):
        """meson's are multiplied, for they run with what is left of the processors."""
        build = os.environ.get('INCLINE_BUILD') or os.path.join(TOP, 'build')
        known = json.loads(subprocess.run(['meson', 'introspect', '--tests', build], check=True, capture_output=True).stdout)
        scripts = {word for test in known if any(suite.endswith(('virtual', 'model')) for suite in test['suite'])
                   for word in test['cmd'] if word.endswith('.py')}
        for one in 'tests/integration/captures.py', 'tests/model/traces.py':
            self.assertIn(os.path.join(TOP, one), scripts)
        for path in scripts:
            with open(path) as f:
                self.assertEqual(re.findall(r'\b(?:timeout=|alarm\()', f.read()), [], path)

    def test_a_wait_has_a_bound(self):
        report = t.Report()
        with t.Beside([('a', ['sleep', '600'])]) as beside:
            beside.LIMIT = 0.1
            status, _ = self.finish(report, beside, 'a')
        self.assertEqual(status, ['no end after 0.1 s'])
        self.assertEqual(len(report.failures), 1)


class Skips(unittest.TestCase):
    ROWS = [('reduce-avx512', 'no-avx512', 'the CPU'), ('netdev/Interfaces.*', 'no-netns', 'root')]

    def wrong(self, skipped, ran, *holds):
        return t.wrong_skips(skipped, ran, self.ROWS, {word: word in holds for word in t.WHERE})

    def test_expected_only_where_the_condition_holds(self):
        self.assertEqual(self.wrong({'reduce-avx512': 'x'}, ['wire'], 'no-avx512'), [])
        self.assertEqual(self.wrong({}, ['wire', 'reduce-avx512']), [])
        self.assertEqual(len(self.wrong({'reduce-avx512': 'x'}, [])), 1)
        self.assertEqual(len(self.wrong({'soft-roce': 'no QEMU'}, [], 'no-avx512', 'no-netns')), 1)
        self.assertEqual(self.wrong({'netdev/Interfaces.test_ping': 'x'}, ['netdev'], 'no-netns'), [])

    def test_what_is_listed_must_be_skipped(self):
        self.assertIn('reduce-avx512: ran', self.wrong({}, ['reduce-avx512'], 'no-avx512')[0])

    def test_the_list(self):
        self.assertTrue(t.read_skips())
        with tempfile.NamedTemporaryFile('w', suffix='.txt') as f:
            for bad in 'name', 'name somewhere because', 'name always':
                f.seek(0)
                f.truncate()
                f.write('# x\n' + bad + '\n')
                f.flush()
                with self.assertRaisesRegex(t.TestError, ':2: wants NAME WHERE WHY'):
                    t.read_skips(f.name)


class Interruption(unittest.TestCase):
    def test_no_process_and_no_file_is_left(self):
        p = subprocess.Popen([sys.executable, '-c', INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        pids = [int(p.stdout.readline()) for _ in range(2)]
        directory = p.stdout.readline().strip()
        self.assertTrue(os.path.isdir(directory) and all(map(alive, pids)))
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 130)
        self.assertNotIn('Traceback', err)
        self.assertFalse(os.path.exists(directory))
        self.assertFalse(any(map(alive, pids)))

    def test_programs_have_the_interpreter_of_the_runner_at_once(self):
        with tempfile.TemporaryDirectory() as d:
            with open(os.path.join(d, 'python3'), 'w') as f:
                f.write('#!/bin/sh\nexit 7\n')
            os.chmod(f.name, 0o755)
            script = f'import subprocess, sys\nsys.path.insert(0, {TOOLS!r})\nimport incline_tests as t\nwith t.Workspace():\n    ' \
                "subprocess.run(['env', 'python3', '-c', 'import sys; print(sys.prefix, sys.argv[1:])', 'a b'])\n    " \
                f"subprocess.run(['bash', '-euc', '. {TOOLS}/compiler.sh; command -v python3'])"
            p = subprocess.run([sys.executable, '-c', script], env={**os.environ, 'PATH': d + ':' + os.environ['PATH']}, timeout=60,
                               capture_output=True, text=True)
            # A build must not know what goes with the run.
            self.assertEqual((p.returncode, p.stdout), (0, f"{sys.prefix} ['a b']\n{d}/python3\n"), p.stderr)


if __name__ == '__main__':
    unittest.main()
