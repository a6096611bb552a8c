# SPDX-License-Identifier: BSD-3-Clause
"""incline_suites.py DIR SUITE,SUITE: the targets of a build directory that the tests of these suites run, a line each."""
import json
import os
import subprocess
import sys


def targets(build, suites):
    """Files, as ninja names them. What a test runs is what its row in meson.build has as program, argument or `depends`."""
    out = subprocess.run(['meson', 'introspect', '--tests', '--targets', build], check=True, capture_output=True).stdout
    known = json.loads(out)
    tests = [t for t in known['tests'] if suites & {s.split(':')[-1] for s in t['suite']}]
    wanted = {i for t in tests for i in t['depends']}
    return sorted(os.path.relpath(f, os.path.abspath(build)) for t in known['targets'] if t['id'] in wanted
                  for f in t['filename'])


def main():
    build, suites = sys.argv[1], sys.argv[2].split(',')
    found = targets(build, set(suites))
    if not found:
        sys.exit(f"error: build: {', '.join(suites)}: no test of these suites")
    print('\n'.join(found))


if __name__ == '__main__':
    main()
