#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages and completion of the programs: test_manuals.py BUILD/apps MANUAL PAGE... Each program that is installed has both."""
import os
import re
import subprocess
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
COMPLETION = os.path.join(TOP, 'deploy', 'completion.bash')
APPS, PAGES = None, {}


def programs():
    """Of the packages: there each program is named once."""
    found = []
    for name in os.listdir(os.path.join(TOP, 'deploy/debian')):
        with open(os.path.join(TOP, 'deploy/debian', name), encoding='utf-8') as f:
            found += re.findall(r'^usr/bin/(\S+)$', f.read(), re.M)
    return sorted(found)


def shown(page):
    """The text of a page, without what only roff reads."""
    lines = [line for line in page.split('\n') if not line.startswith('.')]
    named = {'\\(dq': '"', '\\(aq': "'", '\\(ga': '`', '\\(ha': '^', '\\(ti': '~', '\\-': '-', '\\&': '', '\\e': '\\'}
    return re.sub(r'\\(\(..|.)', lambda m: named[m[0]], '\n'.join(lines))


def completions(line):
    script = f'source {COMPLETION}; COMP_LINE="$1" COMP_POINT=${{#1}} _incline "$2"; printf "%s\\n" "${{COMPREPLY[@]}}"'
    env = dict(os.environ, INCLINE_SOCKET='/nowhere/at/all', INCLINE_MANAGER='/nowhere/at/all')
    program = os.path.join(APPS, line.split()[0])
    return subprocess.run(['bash', '-c', script, 'bash', line, program], env=env, capture_output=True, text=True, check=True).stdout.split()


class Manuals(unittest.TestCase):
    def test_every_program_has_a_page(self):
        self.assertEqual(sorted(PAGES), programs())
        for name, page in PAGES.items():
            with self.subTest(name):
                text = subprocess.run([os.path.join(APPS, name), '--help'], capture_output=True, text=True, check=True).stdout
                self.assertIn(text.rstrip(), shown(page))
                self.assertTrue(re.search(rf'^\.SH NAME\n{name} \\- .+', page, re.M))

    def test_roff_reads_nothing_of_the_text(self):
        for name, page in PAGES.items():
            for line in page.split('\n'):
                with self.subTest(name, line=line):
                    self.assertTrue(re.match(r'(\.\\"|\.TH |\.SH |\.nf$|\.fi$|[^.\']|$)', line))
                    if not line.startswith('.'):
                        self.assertFalse(re.search(r'\\(?!e|-|&|\((dq|aq|ga|ha|ti))', line))

    def test_pages_that_are_named_are_there(self):
        for name, page in PAGES.items():
            for other in re.findall(r'([\w-]+)\.md[,.]', shown(page).split('Of the documentation')[1]):
                with self.subTest(name):
                    self.assertTrue(os.path.exists(os.path.join(TOP, 'docs', f'{other}.md')), other)


class Completion(unittest.TestCase):
    def test_every_program_has_its_options(self):
        with open(COMPLETION, encoding='utf-8') as f:
            named = re.search(r'complete -o default -F _incline ((?:[\w-]+|\\\n|\s)+)', f.read())[1].replace('\\', '')
        self.assertEqual(sorted(named.split()), programs())
        self.assertEqual(completions('incline-dissect --'), ['--block', '--help', '--json', '--version'])
        self.assertEqual(completions('incline-switch --ch'), ['--check'])
        for name in programs():
            with self.subTest(name):
                self.assertTrue(completions(f'{name} --'))

    def test_commands(self):
        self.assertIn('group', completions('inclinectl gr'))
        self.assertIn('create', completions('inclinectl group '))
        self.assertEqual(completions('inclinectl --json stat'), completions('inclinectl stat'))
        self.assertEqual(completions('inclinectl nosuch '), [])


if __name__ == '__main__':
    APPS = os.path.abspath(sys.argv[1])
    for path in sys.argv[2:]:
        with open(path, encoding='utf-8') as file:
            PAGES[os.path.basename(path)[:-2]] = file.read()
    unittest.main(argv=sys.argv[:1])
