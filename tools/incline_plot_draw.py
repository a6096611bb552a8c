# SPDX-License-Identifier: BSD-3-Clause
"""Charts as SVG: lines over an axis of labels, bars beside one another or stacked; several below one another in one picture."""
from dataclasses import dataclass, field
from math import ceil, floor, log10
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 570, 420, 70, 40, 60  # of lines, without the legend
LEGEND, LETTER = 190, 7  # at least, and what one of its letters takes at most
BAR, BAR_GAP, BARS, NUMBER = 11, 9, 360, 90  # high, between rows, the longest, and the number after it
COLOURS = ('#1b6ca8', '#c0392b', '#2e8b57', '#8e44ad', '#b9770e', '#16a085', '#7f8c8d', '#d35400', '#2c3e50',
           '#e0b000', '#d770ad', '#5dade2', '#a0522d')


@dataclass
class Lines:
    """labels: of the axis; curves: (name, dashed, {label: value}); spread: {(name, label): (least, most)}."""
    title: str
    unit: str
    axis: str
    labels: list
    curves: list
    spread: dict = field(default_factory=dict)
    log: bool = False


@dataclass
class Bars:
    """names: of what a row has; rows: (label, {name: value}); stacked: end to end, else below one another."""
    title: str
    unit: str
    names: list
    rows: list
    stacked: bool = False
    log: bool = False


def ticks(most):
    """From 0 to this or a little more, at steps that people count in."""
    power = 10 ** floor(log10(most / 5))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power * 5 >= most * 0.999)
    return [step * i for i in range(ceil(most / step * 0.999) + 1)]


def powers(values):
    """Of ten, from below the least of these that is more than 0 to above the greatest."""
    values = [v for v in values if v > 0] or [1]
    first, last = floor(log10(min(values))), ceil(log10(max(values)))
    return [10.0 ** p for p in range(first, max(last, first + 1) + 1)]


class Scale:
    """Where a value is: 0 to 1."""

    def __init__(self, values, log):
        self.log = log
        self.at = powers(values) if log else ticks(max(values, default=1) or 1)

    def __call__(self, value):
        if not self.log:
            return value / self.at[-1]
        return 0 if value <= self.at[0] else log10(value / self.at[0]) / log10(self.at[-1] / self.at[0])


def words(x, y, said, more=''):
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(said)}</text>'


def short(value):
    return f'{value:,.4g}' if value < 1e4 else f'{value:,.0f}'


def head(chart):
    unit = ', '.join(filter(None, [chart.unit, 'logarithmic' if chart.log else '']))
    return words(LEFT, 22, f'{chart.title} ({unit})', ' font-size="15"')


def colours(names):
    """Of curves whose names begin alike, one."""
    bases = list(dict.fromkeys(name.split(',')[0] for name in names))
    return {name: COLOURS[bases.index(name.split(',')[0]) % len(COLOURS)] for name in names}


def lines(chart):
    """(elements, width, height)"""
    place = {label: i for i, label in enumerate(chart.labels)}
    scale = Scale([v for c in chart.curves for v in c[2].values()] + [most for _, most in chart.spread.values()], chart.log)
    right, bottom = WIDTH, HEIGHT - BOTTOM
    width = right + max([LEGEND] + [50 + LETTER * len(name) for name, _, _ in chart.curves])
    colour_of = colours([name for name, _, _ in chart.curves])

    def x(label):
        return LEFT + (right - LEFT) * (place[label] + 0.5) / len(chart.labels)

    def y(value):
        return bottom - (bottom - TOP) * scale(value)

    out = [head(chart), words((LEFT + right) / 2, HEIGHT - 16, chart.axis, ' text-anchor="middle"')]
    for v in scale.at:
        out += [f'<path d="M{LEFT} {y(v):.1f}H{right}" stroke="#ddd"/>', words(LEFT - 6, y(v) + 4, f'{v:.4g}' if v < 1e4 else f'{v:.0f}', ' text-anchor="end"')]
    out += [words(x(label), bottom + 18, label, ' text-anchor="middle"') for label in chart.labels[::(len(chart.labels) + 9) // 10]]
    for i, (name, dashed, values) in enumerate(chart.curves):
        colour, dash = colour_of[name], ' stroke-dasharray="5 4"' if dashed else ''
        points = ' '.join(f'{x(k):.1f},{y(v):.1f}' for k, v in values.items())
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        out += [f'<circle cx="{x(k):.1f}" cy="{y(v):.1f}" r="3" fill="{colour}"/>' for k, v in values.items()]
        out += [f'<path d="M{x(k):.1f} {y(chart.spread[name, k][0]):.1f}V{y(chart.spread[name, k][1]):.1f}" stroke="{colour}"/>'
                for k in values if (name, k) in chart.spread]
        out += [f'<path d="M{right + 12} {TOP + 20 * i}h24" stroke="{colour}" stroke-width="2"{dash}/>',
                words(right + 42, TOP + 20 * i + 4, name)]
    return out, width, max(HEIGHT, TOP + 20 * len(chart.curves))


def bars(chart):
    """(elements, width, height)"""
    colour_of = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(chart.names)}
    sums = [[sum(v.values())] if chart.stacked else v.values() for _, v in chart.rows]
    scale = Scale([v for values in sums for v in values], chart.log)
    left = LEFT + LETTER * max(len(label) for label, _ in chart.rows) - 40
    out, x, y = [head(chart)], LEFT, 34
    for name in chart.names if len(chart.names) > 1 else ():
        long = 26 + LETTER * len(name)
        if x > LEFT and x + long > left + BARS + NUMBER:
            x, y = LEFT, y + 18
        out += [f'<rect x="{x}" y="{y}" width="12" height="{BAR}" fill="{colour_of[name]}"/>', words(x + 18, y + 10, name)]
        x += long
    right, y = x, y + (26 if len(chart.names) > 1 else 0)
    for label, values in chart.rows:
        high = BAR * (1 if chart.stacked else len(values))
        out.append(words(left - 8, y + high / 2 + 4, label, ' text-anchor="end"'))
        x = left
        for name, value in values.items():
            long = BARS * scale(value)
            out.append(f'<rect class="bar" x="{x:.1f}" y="{y}" width="{max(long, 1):.1f}" height="{BAR - 1}" fill="{colour_of[name]}"/>')
            if chart.stacked:
                x += long
                continue
            out.append(words(x + long + 5, y + 9, short(value), ' font-size="10"'))
            y += BAR
        if chart.stacked:
            total = sum(values.values())
            out.append(words(x + 5, y + 9, short(total), ' font-size="10"'))
            y += BAR
        y += BAR_GAP
    return out, max(left + BARS + NUMBER, right), y + 12


def svg(charts):
    """All of them in one picture."""
    drawn = [(lines if isinstance(c, Lines) else bars)(c) for c in charts]
    width, height, body, y = max(w for _, w, _ in drawn), sum(h for _, _, h in drawn), [], 0
    for out, _, high in drawn:
        body += [f'<g transform="translate(0 {y})">', *out, '</g>'] if y else out
        y += high
    return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="12">',
                      f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>', *body, '</svg>', ''])
