#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of the documentation: every ```sh block that begins with the comment "checked by
tests/integration/docs.py", in a shell that stops at the first failure, in a lab directory of its own."""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from fabric_case import MARK, TOP, kill_orphans, run_tests  # noqa: E402

BLOCK = re.compile(r'^```sh\n# checked by tests/integration/docs.py\n(.*?)^```', re.S | re.M)
BUILD = os.environ.get('INCLINE_BUILD', os.path.join(TOP, 'build'))


def blocks():
    names = subprocess.check_output(['git', 'ls-files', '*.md'], cwd=TOP, text=True).split() \
        if os.path.exists(os.path.join(TOP, '.git')) else ['docs/lab.md']
    for name in names:
        with open(os.path.join(TOP, name)) as f:
            for i, match in enumerate(BLOCK.finditer(f.read())):
                yield f'{name}, block {i + 1}', match.group(1)


class Docs(unittest.TestCase):
    def run_blocks(self, wanted):
        found = [(where, script) for where, script in blocks() if wanted('--paths' in script)]
        self.assertTrue(found)
        for where, script in found:
            # "wait" alone forgets how its jobs ended.
            script = re.sub(r'^wait$', 'for job in $(jobs -p); do wait $job; done', script, flags=re.M)
            for part in 'apps', 'lib', 'tests':
                script = script.replace(f'build/{part}/', shlex.quote(os.path.join(BUILD, part)) + '/')
            with self.subTest(where), tempfile.TemporaryDirectory(prefix='incline-') as d:
                os.environ[MARK] = f'{os.getpid()}.{where}'  # a block's switches are below nobody here
                env = dict(os.environ, INCLINE_LAB=os.path.join(d, 'lab'), INCLINE_BUILD=BUILD, TMPDIR=d)
                said, began = os.path.join(d, 'said'), time.monotonic()
                try:
                    # Into a file: what a block leaves running would hold a pipe open after its end.
                    with open(said, 'w') as out:
                        status = subprocess.run(['bash', '-euo', 'pipefail', '-c', script], cwd=TOP, env=env, stdin=subprocess.DEVNULL,
                                                stdout=out, stderr=subprocess.STDOUT, timeout=120).returncode
                finally:
                    subprocess.run(['tools/lab', 'down'], cwd=TOP, env=env, capture_output=True)
                    kill_orphans(os.environ.pop(MARK))  # jobs of a block that has failed
                    with open(said) as out:
                        print(f'--- {where} ({time.monotonic() - began:.0f} s)\n{out.read()}', file=sys.stderr)
                self.assertEqual(status, 0, where)

    def test_commands(self):
        self.run_blocks(lambda profiles: not profiles)

    @unittest.skipUnless(os.geteuid() == 0, 'profiles of EVs take CAP_NET_ADMIN')
    def test_commands_of_root(self):
        self.run_blocks(lambda profiles: profiles)


if __name__ == '__main__':
    run_tests(verbosity=2)
