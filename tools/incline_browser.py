# SPDX-License-Identifier: BSD-3-Clause
"""Chromium without a screen: what a page has become, as text or as a picture."""
import os
import shutil
import subprocess
import tempfile

PROGRAM, LIMIT = 'chromium', 120


class BrowserError(Exception):
    pass


def why_not():
    return None if shutil.which(PROGRAM) else f'{PROGRAM} is not installed (tools/setup --frameworks)'


def run(url, *options, budget_ms=4000):
    """What it prints. Virtual time: it goes on to what the page's script does next at once, for so long, and ends."""
    with tempfile.TemporaryDirectory(prefix='incline-') as home:
        done = subprocess.run([PROGRAM, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', f'--user-data-dir={home}',
                               f'--virtual-time-budget={budget_ms}', *options, url], env=dict(os.environ, HOME=home),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT)
    if done.returncode:
        raise BrowserError(f'{PROGRAM} has ended with {done.returncode}: {done.stderr}')
    return done.stdout


def dom(url):
    return run(url, '--dump-dom')


def screenshot(url, png, width, height):
    run(url, f'--screenshot={os.path.abspath(png)}', f'--window-size={width},{height}', '--hide-scrollbars')
    if not os.path.exists(png):
        raise BrowserError(f'{PROGRAM} has made no picture of {url}')
