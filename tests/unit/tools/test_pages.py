#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pages (*.md): their links lead somewhere, what they call exists, and what is installed has its neighbours."""
import glob
import json
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
ROOMS = 'apps', 'ctrl', 'dataplane', 'deploy', 'docs', 'examples', 'include', 'lib', 'pmd-configs', 'python', 'tests', 'tools'
BLOCK = re.compile(r'^```.*?^```$', re.S | re.M)
LINK = re.compile(r'\]\(([^)\s]+)\)')
# A file of ours in code, in the text or at the beginning of a command.
PATH = re.compile(r'(?<![\w/.$-])((?:' + '|'.join(ROOMS) + r')/[\w./-]*\w)(?!\.?[\w*{<$-])')


def pages():
    """{name: text}"""
    names = glob.glob('*.md', root_dir=TOP)
    for room in ROOMS:
        names += glob.glob(f'{room}/**/*.md', root_dir=TOP, recursive=True)
    found = {}
    for name in sorted(names):
        with open(os.path.join(TOP, name), encoding='utf-8') as f:
            found[name] = f.read()
    return found


def anchor(heading):
    """As GitHub makes it."""
    text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading.strip().lower())
    return re.sub(r'[^\w\- ]', '', text).replace(' ', '-')


def links(name, text):
    """[(link, page or file, anchor)] of those inside the repository."""
    for link in LINK.findall(BLOCK.sub('', text)):
        if '://' not in link and not link.startswith('mailto:'):
            path, _, part = link.partition('#')
            yield link, os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name, part


class Pages(unittest.TestCase):
    def setUp(self):
        self.pages = pages()
        self.assertIn('docs/lab.md', self.pages)

    def test_links(self):
        anchors = {name: {anchor(h) for h in re.findall(r'^#+ (.*)$', BLOCK.sub('', text), re.M)}
                   for name, text in self.pages.items()}
        dead = [f'{name}: {link}' for name, text in self.pages.items() for link, target, part in links(name, text)
                if not os.path.exists(os.path.join(TOP, target)) or (part and target in anchors and part not in anchors[target])]
        self.assertEqual(dead, [])

    def test_files(self):
        """What is written in code as a path of the repository is one."""
        code = re.compile(r'`([^`\n]+)`|^    (.*)$', re.M)
        missing = sorted({f'{name}: {path}' for name, text in self.pages.items() for m in code.finditer(text)
                          for path in PATH.findall(m[1] or m[2])
                          if not os.path.exists(os.path.join(TOP, path))
                          and not glob.glob(os.path.join(TOP, path) + '.[ch]')})
        self.assertEqual(missing, [])

    def test_rooms_and_programs(self):
        """README and the architecture name every library, and every program that is built."""
        with open(os.path.join(TOP, 'apps/meson.build'), encoding='utf-8') as f:
            programs = re.findall(r"executable\('(incline[\w-]*)'", f.read())
        self.assertIn('incline-sim', programs)
        rooms = [f'lib/{name}' for name in os.listdir(os.path.join(TOP, 'lib')) if os.path.isfile(os.path.join(TOP, 'lib', name, 'meson.build'))]
        self.assertEqual([f'{page}: {name}' for page in ('README.md', 'docs/architecture.md') for name in sorted(rooms + programs)
                          if f'`{name}`' not in self.pages[page]], [])

    def test_installed(self):
        """README and docs are installed, and so is what they lead to, in the same places."""
        said = subprocess.run(['meson', 'introspect', '--installed', os.environ.get('INCLINE_BUILD', os.path.join(TOP, 'build'))],
                              capture_output=True, check=True).stdout
        installed = {os.path.relpath(source, TOP): where for source, where in json.loads(said).items()}
        folder = os.path.dirname(installed['README.md'])
        shipped = [name for name in self.pages if name == 'README.md' or re.fullmatch(r'docs/[\w-]+\.md', name)]
        self.assertEqual([name for name in shipped if installed.get(name) != os.path.join(folder, name)], [])
        dead = [f'{name}: {link}' for name in shipped for link, target, _ in links(name, self.pages[name])
                if os.path.isfile(os.path.join(TOP, target)) and not target.startswith('include/')
                and installed.get(target) != os.path.join(folder, target)]
        self.assertEqual(dead, [])


class Sources(unittest.TestCase):
    def test_length(self):
        """A file that does not fit into a head is two files (CONTRIBUTING.md)."""
        long = {}
        for room in ROOMS:
            for name in glob.glob(f'{room}/**/*.*', root_dir=TOP, recursive=True):
                if name.endswith(('.c', '.h', '.py')):
                    with open(os.path.join(TOP, name), encoding='utf-8') as f:
                        n = sum(1 for _ in f)
                    if n > 600:
                        long[name] = n
        self.assertEqual(long, {})


if __name__ == '__main__':
    unittest.main()
