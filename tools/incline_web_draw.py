# SPDX-License-Identifier: BSD-3-Clause
"""The picture of a fabric as SVG, and numbers as people read them. Everything that comes from elsewhere is escaped here."""
from html import escape
from math import hypot, log10

MOST_NODES = 300  # in a picture
MOST_TREES = 6  # with a colour
BOX = {'switch': (136, 44), 'host': (92, 40)}
GAP, ROW, MARGIN, SIDE = 22, 150, 16, 30
STRAND = 5  # from one tree on a link to the next
UNDER = 19  # a box: so far its links go on, lest one at an angle ends before it


def text(value):
    return escape(str(value), quote=True)


def number(value, unit=''):
    """Three digits and k, M, G; a dash if it cannot be told."""
    if value is None:
        return '–'
    factor, prefix = next(((f, p) for f, p in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k')) if value >= f * 0.9995), (1, ''))
    value /= factor
    return f"{f'{value:.3g}' if value < 999.5 else f'{value:.0f}'} {prefix}{unit}".rstrip()


def number_bytes(value):
    if value < 1024:
        return f'{value} B'
    return f'{value / 1024:.3g} KB' if value < 1000 * 1024 else f'{value / (1 << 20):.3g} MB'


def seconds(value):
    value = int(value)
    return f'{value} s' if value < 120 else f'{value // 60} min' if value < 7200 else f'{value // 3600} h'


class Layout:
    """Where each box is: {name: (x, y) of its middle}. Hosts in the order of the tree, what is above in the middle of them."""

    def __init__(self, nodes, links):
        self.below, self.kind = {}, {n['name']: n['kind'] for n in nodes}
        for k in links:
            self.below.setdefault(k['a'], []).append(k['b'])
        tiers = {}
        for n in nodes:
            tiers.setdefault(n['tier'], []).append(n['name'])
        self.width = max(sum(BOX[self.kind[n]][0] + GAP for n in row) for row in tiers.values()) + 2 * SIDE
        self.width = max(self.width, 640)
        self.height = ROW * max(tiers) + 2 * MARGIN + 56
        self.x = {}
        order = self.in_order([n['name'] for n in nodes])
        for tier in sorted(tiers, reverse=True):
            self.place(sorted(tiers[tier], key=order.index) if tier == max(tiers) else tiers[tier])
        self.at = {n['name']: (self.x[n['name']], MARGIN + 26 + ROW * n['tier']) for n in nodes}

    def in_order(self, names):
        order, seen = [], set()

        def visit(name):
            if name not in seen:
                seen.add(name)
                order.append(name)
                for below in self.below.get(name, ()):
                    visit(below)
        for name in names:
            visit(name)
        return order

    def place(self, row):
        """In the middle of what is below, or, where they would touch, at equal distances."""
        step = self.width / len(row)
        even = {n: step * (i + 0.5) for i, n in enumerate(row)}
        mean = {n: [self.x[b] for b in self.below.get(n, ()) if b in self.x] for n in row}
        mean = {n: sum(xs) / len(xs) if xs else even[n] for n, xs in mean.items()}
        row = sorted(row, key=mean.get)
        apart = all(mean[b] - mean[a] >= (BOX[self.kind[a]][0] + BOX[self.kind[b]][0]) / 2 + GAP for a, b in zip(row, row[1:]))
        self.x.update(mean if apart else {n: step * (i + 0.5) for i, n in enumerate(row)})


def thickness(bits):
    """0: idle; 1 to 5 from 1 Mb/s to 10 Gb/s and more."""
    return 0 if not bits or bits < 1e3 else max(1, min(5, int(log10(bits)) - 5))


def arrows(link):
    return f"▼ {number(link['down_bits_s'])}", f"▲ {number(link['up_bits_s'])}"


class Picture:
    def __init__(self, view, colours):
        self.view, self.colours, self.out = view, colours, []
        self.layout = Layout(view['nodes'], view['links'])
        self.ends = self.make_ends()
        self.waited = {i for g in view['groups'] if g['stuck'] for i in g['waited_links']}
        self.blamed = {}
        for g in view['groups']:
            for wait in g['waits'] if g['stuck'] else ():
                self.blamed.setdefault(wait['path'][-1], []).append(g['name'])

    def make_ends(self):
        """[(x1, y1, x2, y2)] of links: they leave a box side by side, in the order of where they go."""
        at, kind = self.layout.at, self.layout.kind
        fans = {}
        for i, k in enumerate(self.view['links']):
            fans.setdefault((k['a'], 'down'), []).append((at[k['b']][0], i))
            fans.setdefault((k['b'], 'up'), []).append((at[k['a']][0], i))
        x = {}
        for (name, way), links in fans.items():
            room = BOX[kind[name]][0] * (0.8 if len(links) > 1 else 0)
            for place, (_, i) in enumerate(sorted(links)):
                x[i, way] = at[name][0] + room * ((place + 0.5) / len(links) - 0.5)
        half = {n: BOX[kind[n]][1] / 2 for n in at}
        return [(x[i, 'down'], at[k['a']][1] + half[k['a']], x[i, 'up'], at[k['b']][1] - half[k['b']])
                for i, k in enumerate(self.view['links'])]

    def line(self, ends, classes, aside=0, title=''):
        x1, y1, x2, y2 = ends
        length = hypot(x2 - x1, y2 - y1) or 1
        dx, dy = (y2 - y1) / length * aside, (x1 - x2) / length * aside
        into = UNDER / length
        x1, y1, x2, y2 = x1 - (x2 - x1) * into, y1 - (y2 - y1) * into, x2 + (x2 - x1) * into, y2 + (y2 - y1) * into
        self.out.append(f'<line class="{classes}" x1="{x1 + dx:.1f}" y1="{y1 + dy:.1f}" x2="{x2 + dx:.1f}" y2="{y2 + dy:.1f}">'
                        f'<title>{text(title)}</title></line>')

    def words(self, x, y, classes, said, anchor='middle'):
        self.out.append(f'<text class="{classes}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(said)}</text>')

    def pill(self, x, y, classes, said):
        width = 7 * len(said) + 12
        self.out.append(f'<rect class="pill {classes}" x="{x - width / 2:.1f}" y="{y - 9:.1f}" width="{width}" height="18" rx="9"/>')
        self.words(x, y + 4, 'pill', said)

    def trees(self, i):
        """Those with a colour that have link i."""
        return [g for g in self.view['groups'] if i in g['links'] and (g['kind'], g['name']) in self.colours]

    def links(self):
        for i, (k, ends) in enumerate(zip(self.view['links'], self.ends)):
            level = thickness(max(k['down_bits_s'] or 0, k['up_bits_s'] or 0))
            title = f"{k['a']} {k['a_port']} – {k['b']} {k['b_port']}, {k['state']}; {' '.join(arrows(k))} bits per second"
            self.line(ends, f"link {k['state']} l{level}", title=title)
            for place, g in enumerate(self.trees(i)):
                self.line(ends, f"strand c{self.colours[g['kind'], g['name']]}", STRAND * (place + 1.2), f"{g['name']}: its tree")
            if i in self.waited:
                self.line(ends, 'waited', -STRAND, 'waited for')

    def rates(self, i, share, right):
        """Two rows beside a link, there where so much of it is above; a link that is idle has none."""
        k, (x1, y1, x2, y2) = self.view['links'][i], self.ends[i]
        if not k['down_bits_s'] and not k['up_bits_s']:
            return
        x, y = x1 + (x2 - x1) * share, y1 + (y2 - y1) * share
        step = abs((x2 - x1) / (y2 - y1)) * 13  # a row up or down the line is so much nearer
        trees = len(self.trees(i)) if right else 0
        x = x + step + (trees + 2) * STRAND if right else x - step - 2.5 * STRAND
        for row, said in enumerate(arrows(k)):
            self.words(x, y - 2 + 13 * row, 'rate', said, 'start' if right else 'end')

    def labels(self):
        """Rates at a link's lower end, if the box there has one or two; what waits, at the end that it waits at."""
        uplinks = {}
        for i, (k, ends) in enumerate(zip(self.view['links'], self.ends)):
            uplinks.setdefault(k['b'], []).append((ends[2], i))
        for links in uplinks.values():
            for place, (_, i) in enumerate(sorted(links) if len(links) <= 2 else ()):
                self.rates(i, 0.72 if len(links) == 1 else 0.82, place == 1)
        for k, (x1, y1, x2, y2) in zip(self.view['links'], self.ends):
            for bytes_, share in ((k['a_queue_bytes'], 0.12), (k['b_queue_bytes'], 0.9)):
                if bytes_:
                    self.pill(x1 + (x2 - x1) * share, y1 + (y2 - y1) * share, 'queue', number_bytes(bytes_))

    def second_line(self, n):
        if n['kind'] == 'host':
            ranks = [f"rank {g['rank_at'][n['name']]}" for g in self.view['groups'] if n['name'] in g['rank_at']]
            return ' · '.join(filter(None, ['' if ranks and n['state'] == 'idle' else n['state'], ranks[0] if len(set(ranks)) == 1 else '']))
        if n['state'] == 'silent':
            return 'no answer' if n['silent_s'] is None else f"no answer for {seconds(n['silent_s'])}"
        busy = '' if n['busy_percent'] is None else f"{n['busy_percent']:.0f} % busy"
        trees = '' if not n['groups'] else '1 tree' if n['groups'] == 1 else f"{n['groups']} trees"
        return ' · '.join(filter(None, [busy, trees]))

    def boxes(self):
        for n in self.view['nodes']:
            (x, y), (width, height) = self.layout.at[n['name']], BOX[n['kind']]
            blame = self.blamed.get(n['name'])
            classes = f"box {n['kind']} {'silent' if n['state'] in ('silent', 'dead', 'no switch') else ''} {'blamed' if blame else ''}"
            title = ', '.join([n['name'], *n['ips'], *([n['error']] if n.get('error') else [])])
            self.out.append(f'<g class="{classes}"><title>{text(title)}</title><rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" '
                            f'width="{width}" height="{height}" rx="6"/></g>')
            self.words(x, y - 3, 'name', n['name'])
            self.words(x, y + 13, 'small', self.second_line(n))
            if blame:
                said = f"{blame[0]} waits" if len(blame) == 1 else f'{len(blame)} trees wait'
                self.pill(x, y + height / 2 + 12, 'wait', said[:28])
            if n.get('drops_s'):
                self.pill(x + width / 2, y - height / 2, 'drop', f"{number(n['drops_s'])} drops/s")

    def svg(self):
        self.links()
        self.labels()
        self.boxes()
        # As wide as it is, or as the page: a picture of four boxes is not blown up.
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.layout.width:.0f}" '
                f'viewBox="0 0 {self.layout.width:.0f} {self.layout.height:.0f}" role="img">' + ''.join(self.out) + '</svg>')


def picture(view, colours):
    """colours: {(kind, name): number} of the trees that have one."""
    if len(view['nodes']) > MOST_NODES:
        return f"<p>{len(view['nodes'])} nodes: a picture has at most {MOST_NODES}.</p>"
    return Picture(view, colours).svg()
