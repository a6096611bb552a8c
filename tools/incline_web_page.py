# SPDX-License-Identifier: BSD-3-Clause
"""The page of a fabric as HTML, of a view (incline_web_model.py). It is well-formed XML, and whole without the browser's
script, which only brings the part that changes anew."""
from urllib.parse import quote

from incline_web_draw import MOST_TREES, number, number_bytes, picture, seconds, text

MOST_ROWS = 200  # of a table
HEAD = '''<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><title>{name} – Incline</title>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<noscript><meta http-equiv="refresh" content="2"/></noscript>
<link rel="icon" href="data:,"/><link rel="stylesheet" href="/page.css"/><script src="/page.js" defer="defer"></script></head>
<body><header><h1>{name}</h1><span id="state"></span></header>
<main id="fabric">{part}</main></body></html>
'''


def link_to(name):
    return f'<a href="/?group={quote(name, safe="")}">{text(name)}</a>'


def table(caption, heads, rows, empty):
    """rows: [(class, [cells as HTML])]; heads: a trailing # means numbers."""
    if not rows:
        return f'<section><h2>{caption}</h2><p class="none">{empty}</p></section>'
    head = ''.join(f'<th class="n">{h[:-1]}</th>' if h.endswith('#') else f'<th>{h}</th>' for h in heads)
    body = ''.join(f'<tr class="{kind}">' + ''.join(f'<td class="n">{c}</td>' if h.endswith('#') else f'<td>{c}</td>'
                                                    for h, c in zip(heads, cells)) + '</tr>' for kind, cells in rows[:MOST_ROWS])
    more = f'<p class="none">and {len(rows) - MOST_ROWS} more</p>' if len(rows) > MOST_ROWS else ''
    return f'<section><h2>{caption}</h2><div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}</section>'


def tree_text(tree):
    """The tree below each root, in one line. A switch that has not told what is below it is a name only."""
    def below(name, seen):
        if not tree.get(name) or name in seen:
            return text(name)
        return f'{text(name)} (' + ' '.join(below(b, seen | {name}) for b in tree[name]) + ')'
    children = {c for row in tree.values() for c in row}
    return ', '.join(below(r, frozenset()) for r in tree if r not in children)


def waits_text(group):
    if group['fail']:
        return f"<b>failed: {text(group['fail'])}</b>"
    said = []
    for wait in group['waits'][:8]:
        rank = '' if wait['rank'] is None else f"rank {wait['rank']}, "
        said.append(f"{rank}{text(wait['path'][-1])} <small>({' → '.join(map(text, wait['path']))})</small>")
    more = len(group['waits']) - len(said)
    return f'<span class="{"" if group["stuck"] else "none"}">' + '<br/>'.join(said) + (f'<br/>and {more} more' if more > 0 else '') + '</span>'


def groups(view, colours):
    rows = []
    for g in view['groups']:
        colour = colours.get((g['kind'], g['name']))
        swatch = '' if colour is None else f'<svg class="swatch" viewBox="0 0 12 12"><rect class="c{colour}" width="12" height="12"/></svg> '
        kind = 'bad' if g['state'] == 'failed' else 'stuck' if g['stuck'] else ''
        rows.append((kind, [swatch + link_to(g['name']), text(g['state']) + (', stuck' if g['stuck'] else ''),
                            f"{text(g['mode'])} {text(g['does'])}", str(g['ranks']), number(g['done_s']), number(g['done']),
                            tree_text(g['tree']), waits_text(g)]))
    return table('Groups and their trees', ['group', 'state', 'mode', 'ranks#', 'per second#', 'so far#', 'tree', 'waits for'], rows,
                 'No switch has a group now.')


def jobs(view):
    if view['manager'] is None:
        return ''
    if view['manager']['error']:
        return f"<section><h2>Jobs</h2><p class=\"none\">The manager: {text(view['manager']['error'])}.</p></section>"
    rows = [('', [text(j['job']), text(j['phase']), text(j['mode']), str(j['ranks']), '' if j['bytes'] is None else number_bytes(j['bytes']),
                  ' '.join(map(text, j['switches'])), text(j['tenant'])]) for j in view['manager']['jobs']]
    return table('Jobs', ['job', 'phase', 'mode', 'ranks#', 'memory#', 'switches, the root first', 'tenant'], rows,
                 'The manager knows of no job.')


def drops(view):
    rows = [('bad' if d['per_s'] else '', [text(d['switch']), text(d['reason']), number(d['per_s']), number(d['count']), text(d['help'])])
            for d in view['drops']]
    return table('Drops by reason', ['switch', 'reason', 'per second#', 'so far#', 'meaning'], rows, 'No switch has lost a packet.')


def ports(view):
    rows = []
    for p in view['ports']:
        waits = number_bytes(p['queue_bytes']) if p['queue_bytes'] else '0'
        events = ', '.join(f'{number(p[f])} {f}' for f in ('marked', 'trimmed', 'full', 'stale') if p[f])
        rows.append(('bad' if p['link'] != 'up' and not p['unplugged'] or p['lost_s'] else '', [
            text(p['switch']), text(p['port']) + (f" → {text(p['far'])}" if p['far'] not in ('', p['port']) else ''), 'unplugged' if p['unplugged'] else text(p['link']),
            number(p['rx_bits_s'], 'b/s'), number(p['rx_packets_s']), number(p['tx_bits_s'], 'b/s'), number(p['tx_packets_s']),
            number(p['lost_s']), waits, f"{number_bytes(p['queue_peak'])} of {number_bytes(p['queue_limit'])}" if p['queue_peak'] else '', events]))
    return table('Ports and queues', ['switch', 'port', 'link', 'in#', 'packets/s#', 'out#', 'packets/s#', 'lost/s#', 'waits now#',
                                      'most that waited#', 'of what waited'], rows, 'No switch has answered.')


def summary(view):
    switches = [n for n in view['nodes'] if n['kind'] == 'switch']
    up = sum(n['state'] == 'up' for n in switches)
    lost = view['drops_s']
    parts = [f'<b class="{"" if up == len(switches) else "bad"}">{up} of {len(switches)}</b> switches answer',
             f"<b>{len(view['groups'])}</b> group{'' if len(view['groups']) == 1 else 's'}", f'<b class="{"bad" if lost else ""}">{number(lost)}</b> drops per second',
             f"at {text(view['time'])}"]
    silent = [f"{text(n['name'])} {text(n['error'])}" + (f", for {seconds(n['silent_s'])} now" if n['silent_s'] is not None else '')
              for n in switches if n['state'] == 'silent'][:8]
    return f'<p class="summary">{" · ".join(parts)}</p>' + (f'<p class="bad">{"; ".join(silent)}</p>' if silent else '')


def coloured(view, only):
    """The first groups have colours; one that is asked for alone has all attention."""
    chosen = [g for g in view['groups'] if only is None or g['name'] == only][:MOST_TREES]
    return {(g['kind'], g['name']): i for i, g in enumerate(chosen)}


def part(view, only=None):
    """What changes. only: the name of the group whose tree is drawn; None: the first ones."""
    colours = coloured(view, only)
    note = '' if only is None else f'<p>Tree of {text(only)} only; <a href="/">all</a>.</p>'
    legend = '<p class="none">Beside a link: bits per second ▼ down and ▲ up; amber: waits in a queue; dashes: a group is stuck for want of who is at their end.</p>'
    return (f'<div>{summary(view)}{note}<div class="wide picture">{picture(view, colours)}</div>{legend}'
            f'{jobs(view)}{groups(view, colours)}{drops(view)}{ports(view)}</div>')


def page(view, only=None):
    return HEAD.format(name=text(view['name']), part=part(view, only))
