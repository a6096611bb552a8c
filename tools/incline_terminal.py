# SPDX-License-Identifier: BSD-3-Clause
"""What a program shows on a terminal, and the same as SVG. Text and a cleared screen are all that our programs write to one."""
import fcntl
import os
import pty
import struct
import subprocess
import termios
from xml.sax.saxutils import escape

COLUMNS, ROWS = 128, 48
LETTER, LINE, EDGE = 8.43, 18, 14  # of DejaVu Sans Mono of 14 points
CLEAR = '\033[H\033[2J'


class TerminalError(Exception):
    pass


def run(argv, **kwargs):
    """All that it writes to a terminal of its own until it ends."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', ROWS, COLUMNS, 0, 0))
    said = b''
    with subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, **kwargs) as process:
        os.close(theirs)
        try:
            while piece := os.read(ours, 65536):
                said += piece
        except OSError:  # EIO: nobody has the other end any more
            pass
        os.close(ours)
    if process.returncode:
        raise TerminalError(f'{argv[0]} has ended with {process.returncode}: {said.decode(errors="replace")}')
    return said.decode()


def screen(said):
    """Lines of what is on it at the end."""
    last = said.rpartition(CLEAR)[2].replace('\r\n', '\n')
    if any(c < ' ' and c != '\n' for c in last):
        raise TerminalError(f'the screen has more than text: {last!r}')
    lines = last.rstrip('\n').split('\n')
    if len(lines) > ROWS or max(map(len, lines)) > COLUMNS:
        raise TerminalError(f'{len(lines)} lines of up to {max(map(len, lines))} letters are more than a screen')
    return lines


def svg(lines, prompt=''):
    """As (text, width, height); with the line on which it was called above it."""
    lines = [*([prompt] if prompt else []), *lines]
    width = int(2 * EDGE + LETTER * max(map(len, lines)))
    height = 2 * EDGE + LINE * len(lines)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="DejaVu Sans Mono, monospace" font-size="14" fill="#d8dee4">',
           f'<rect width="{width}" height="{height}" rx="6" fill="#14181d"/>']
    for i, line in enumerate(lines):
        colour = ' fill="#7ec699"' if prompt and i == 0 else ''
        out.append(f'<text x="{EDGE}" y="{EDGE + LINE * i + 13}" xml:space="preserve"{colour}>{escape(line)}</text>')
    return '\n'.join([*out, '</svg>', '']), width, height
