# SPDX-License-Identifier: BSD-3-Clause
"""What a page of a fabric shows, of what its switches have answered: rates between two reads, trees of groups, who waits
for whom. No I/O and no clock: who asks (incline_web.py) says what time it is, in seconds.

A rate is as `inclinectl top` has it (apps/inclinectl_rates.c), None where it cannot be told."""

# What a switch is asked in one read: name, method, parameters, and the member of the result that is meant.
PARTS = (('status', 'status', {}, None), ('ports', 'port.list', {}, 'ports'), ('workers', 'worker.list', {}, 'workers'),
         ('queues', 'queue.list', {}, 'queues'), ('drops', 'drops.get', {'nonzero': True}, 'drops'),
         ('groups', 'group.list', {}, 'groups'), ('rings', 'ring.list', {}, 'rings'))
SHOWN = 16  # groups and rings that are looked into
MOST_CALLS = len(PARTS) + SHOWN  # of a read
TOO_LONG = 5  # seconds between two reads that say what goes on now
RANGE = 1 << 64
WORST = 'failed', 'draining', 'installed', 'active'


def read_switch(call, now):
    """call: [(method, parameters)] -> [result, or None if it was refused]."""
    results = call([(method, params) for _, method, params, _ in PARTS])
    read = {name: result[member] if member and result else result or []
            for (name, _, _, member), result in zip(PARTS, results)}
    if not read['status']:
        raise ValueError('it does not tell its status')
    rows = [(kind, row) for kind in ('group', 'ring') for row in read[kind + 's']]
    shown = call([(f'{kind}.show', {kind: row[kind]}) for kind, row in rows[:SHOWN]]) if rows else []
    # A number may be another's by now.
    read['shown'] = {(kind, row['name']): show for (kind, row), show in zip(rows, shown)
                     if show and all(show.get(k) == row.get(k) for k in ('name', 'generation'))}
    read['at'] = now
    return read


def read_manager(call, now):
    result = call([('job.list', {})])[0]
    return {'jobs': result['jobs'] if result else [], 'at': now}


def grown(before, after, *fields):
    """What the sum of these counters has grown by, or None. One of 64 bits that passes its end goes on, one that goes back
    began anew."""
    if before is None:
        return None
    steps = [(int(after[f]) - int(before[f])) % RANGE for f in fields]
    return None if any(step > RANGE // 2 for step in steps) else sum(steps)


class Rates:
    """Between two reads of one switch; before may be None."""

    def __init__(self, before, after):
        self.after = after
        self.seconds = after['at'] - before['at'] if before else 0
        if not 0 < self.seconds <= TOO_LONG or self.restarted(before, after):
            before = None
        self.before = before or {}

    def restarted(self, before, after):
        up = [int(read['status']['uptime_s']) for read in (before, after)]
        return up[1] < up[0] or up[1] - up[0] + 2 < self.seconds

    def was(self, part, row, *keys):
        return next((r for r in self.before.get(part, ()) if all(r.get(k) == row.get(k) for k in keys)), None)

    def per_second(self, before, after, *fields):
        by = grown(before, after, *fields)
        return None if by is None else by / self.seconds

    def port(self, row):
        was = self.was('ports', row, 'name')
        queues = [q for q in self.after['queues'] if q['port'] == row['name']]
        bits = [self.per_second(was, row, f) for f in ('rx_bytes', 'tx_bytes')]
        return {'link': row['link'], 'rx_bits_s': bits[0] and bits[0] * 8, 'tx_bits_s': bits[1] and bits[1] * 8,
                'rx_packets_s': self.per_second(was, row, 'rx_packets'), 'tx_packets_s': self.per_second(was, row, 'tx_packets'),
                'lost_s': self.per_second(was, row, 'tx_drops', 'rx_missed', 'rx_errors', 'rx_nombuf'),
                'queue_bytes': sum(int(q['bytes']) for q in queues), 'queue_peak': max((int(q['peak_bytes']) for q in queues), default=0),
                'queue_limit': max((int(q['limit_bytes']) for q in queues), default=0),
                **{f: sum(int(q[f]) for q in queues) for f in ('queued', 'marked', 'trimmed', 'full', 'stale')}}

    def busy(self):
        """Per cent of the busiest worker's time."""
        shares = []
        for w in self.after['workers']:
            was = self.was('workers', w, 'worker')
            busy, idle = grown(was, w, 'busy_cycles'), grown(was, w, 'idle_cycles')
            if busy is not None and idle is not None and busy + idle:
                shares.append(100 * busy / (busy + idle))
        return max(shares, default=None)

    def drops(self):
        """A reason that was not listed had not occurred; one that counts less was cleared."""
        rows = []
        for row in self.after['drops']:
            by = None
            if self.before:
                by = grown(self.was('drops', row, 'reason') or {'count': 0}, row, 'count')
                by = int(row['count']) if by is None else by
            rows.append({'reason': row['reason'], 'count': int(row['count']), 'help': row['help'],
                         'per_s': None if by is None else by / self.seconds})
        return rows

    def group(self, kind, row):
        """What is done: collectives of groups, packets of rings."""
        done = 'operations' if kind == 'group' else 'completed'
        was = self.was(kind + 's', row, kind, 'name', 'generation')
        show = self.after['shown'].get((kind, row['name']))
        by = grown(was, row, done)
        out = {'kind': kind, 'name': str(row['name']), 'state': str(row['state']), 'ranks': int(row['ranks']),
               'mode': row.get('mode', 'NetReduce'), 'does': row.get('primitive') or row.get('kind', ''), 'done': int(row[done]),
               'done_s': None if by is None else by / self.seconds, 'fail': row.get('failure') or row.get('fail_reason'),
               'ends': [], 'waiting': None}
        if show:
            out['ends'] = group_ends(show) if kind == 'group' else ring_ends(show)
            before = self.before.get('shown', {}).get((kind, row['name'])) if by == 0 else None
            out['waiting'] = waiting(kind, show, before, out['ends'])
        return out

    def digest(self):
        status, drops = self.after['status'], self.drops()
        rates = [d['per_s'] for d in drops]
        return {'ports': {p['name']: self.port(p) for p in self.after['ports']}, 'busy_percent': self.busy(), 'drops': drops,
                'drops_s': sum(rates) if self.before and None not in rates else None, 'lost': int(status['drops']),
                'uptime_s': int(status['uptime_s']), 'arena_bytes': int(status['arena_bytes']),
                'arena_used_bytes': int(status['arena_used_bytes']),
                'groups': [self.group(kind, row) for kind in ('group', 'ring') for row in self.after[kind + 's']]}


def end(port, role, ranks, ip):
    return {'port': port if port is None else str(port), 'role': str(role), 'ranks': [int(r) for r in ranks], 'ip': str(ip)}


def group_ends(show):
    return [end(e['port'], e['role'], e['ranks'], e['remote_ip']) for e in show['endpoints']]


def ring_ends(show):
    ends = [end(None, i['kind'], i['ranks'], i['src']) for i in show['inputs']]
    if 'parent' in show:
        ends.append(end(None, 'parent', [], show['parent']['ip']))
    return ends


def waiting(kind, show, before, ends):
    """Of the oldest packet that is not complete: the ends that have not come, and whether it was the same one before."""
    wait = show.get('waiting')
    if not wait:
        return None
    ranks = {int(r) for r in wait['missing_ranks']}
    at = [int(i) for i in wait['missing'] if int(i) < len(ends)] if kind == 'group' else [i for i, e in enumerate(ends) if ranks & set(e['ranks'])]
    same = ('psn',) if kind == 'group' else ('message', 'packet')
    was = before.get('waiting') if before else None
    return {'ends': at, 'ranks': sorted(ranks), 'stuck': bool(was) and all(was[k] == wait[k] for k in same)}


def job(row):
    return {'job': str(row['job']), 'phase': str(row['phase']), 'ranks': int(row['ranks']), 'mode': str(row.get('mode', '')),
            'bytes': int(row['bytes']) if 'bytes' in row else None, 'switches': [str(s) for s in row.get('switches', ())],
            'tenant': str(row.get('tenant', ''))}


class Source:
    """What one switch, or the manager, has said last."""

    def __init__(self):
        self.read, self.digest, self.error, self.silent_since = None, None, 'has not answered yet', None

    def take(self, read):
        """Raises if it makes no sense."""
        digest = Rates(self.read, read).digest() if 'status' in read else {'jobs': [job(row) for row in read['jobs']]}
        self.read, self.digest, self.error, self.silent_since = read, digest, None, None

    def fail(self, error, now):
        self.error = error
        if self.silent_since is None:
            self.silent_since = now


class Trees:
    """Groups of all switches, put together by name."""

    def __init__(self, wiring, digests):
        self.wiring, self.parts = wiring, {}
        for switch, digest in digests.items():
            for group in digest['groups']:
                self.parts.setdefault((group['kind'], group['name']), {})[switch] = group

    def far(self, switch, end):
        """(number of the link or None, node) of an end of a group; without a port, by its address."""
        if end['port'] is not None:
            return self.wiring.at_port.get((switch, end['port']), (None, None))
        node = self.wiring.at_ip.get(end['ip'])
        return self.wiring.between(switch, node), node

    def tree(self, parts):
        """{switch: [what is below it]}, the roots first."""
        roots = [s for s, g in parts.items() if not any(e['role'] == 'parent' for e in g['ends'])]
        below = {s: [self.far(s, e)[1] or e['ip'] for e in g['ends'] if e['role'] != 'parent'] for s, g in parts.items()}
        return {s: below[s] for s in roots + [s for s in parts if s not in roots]}

    def culprits(self, parts, switch, seen):
        """Paths from a switch that waits to who keeps it waiting: [[switch, ..., node]]."""
        group = parts[switch]
        paths = []
        for i in group['waiting']['ends'] if group['waiting'] else ():
            node = self.far(switch, group['ends'][i])[1] or group['ends'][i]['ip']
            if node in seen:
                continue
            further = self.culprits(parts, node, seen | {node}) if node in parts else []
            paths += [[switch, *path] for path in further] or [[switch, node]]
        return paths

    def waits(self, parts):
        """Who waits, and for whom in the end: of several paths to the same end the longest."""
        paths = [p for s in parts for p in self.culprits(parts, s, {s})]
        longest = {}
        for path in paths:
            if len(path) > len(longest.get(path[-1], ())):
                longest[path[-1]] = path
        return list(longest.values())

    def rank_of(self, parts):
        return {self.far(s, e)[1]: e['ranks'][0] for s, g in parts.items() for e in g['ends'] if e['role'] == 'host' and e['ranks']}

    def rows(self):
        rows = []
        for (kind, name), parts in sorted(self.parts.items()):
            groups = list(parts.values())
            rates = [g['done_s'] for g in groups if g['done_s'] is not None]
            ranks = self.rank_of(parts)
            waits = self.waits(parts)
            rows.append({
                'kind': kind, 'name': name, 'mode': groups[0]['mode'], 'does': groups[0]['does'], 'ranks': groups[0]['ranks'],
                'state': min((g['state'] for g in groups), key=lambda s: WORST.index(s) if s in WORST else 0),
                'done': max(g['done'] for g in groups), 'done_s': max(rates, default=None),
                'fail': next((g['fail'] for g in groups if g['fail']), None), 'tree': self.tree(parts),
                'rank_at': {node: rank for node, rank in ranks.items() if node},
                'waits': [{'path': path, 'rank': ranks.get(path[-1])} for path in waits],
                'stuck': bool(waits) and any(g['waiting'] and g['waiting']['stuck'] for g in groups),
                'links': sorted({i for s, g in parts.items() for e in g['ends'] for i in [self.far(s, e)[0]] if i is not None}),
                'waited_links': sorted({i for path in waits for i in map(self.wiring.between, path, path[1:]) if i is not None})})
        return rows


def link_state(ends, unplugged):
    """unplugged: a host's, whose RNIC is there while a program has it: in a lab."""
    if not ends:
        return 'unknown'
    return 'up' if all(end['link'] == 'up' for end in ends) else 'unplugged' if unplugged else 'down'


def link_row(digests, link, unplugged):
    """Rates from the end of the upper switch, or else of the lower one; queues from both."""
    a, b = (digests.get(link[end], {'ports': {}})['ports'].get(link[end + '_port']) for end in ('a', 'b'))
    down = (a['tx_bits_s'] if a else b['rx_bits_s'] if b else None)
    up = (a['rx_bits_s'] if a else b['tx_bits_s'] if b else None)
    lost = [end['lost_s'] for end in (a, b) if end and end['lost_s'] is not None]
    return {**link, 'state': link_state([end for end in (a, b) if end], unplugged), 'down_bits_s': down, 'up_bits_s': up,
            'lost_s': sum(lost) if lost else None, 'a_queue_bytes': a['queue_bytes'] if a else 0,
            'b_queue_bytes': b['queue_bytes'] if b else 0}


def view(wiring, sources, manager, states, now, time):
    """All that the page shows, as JSON has it. sources: {switch: Source}; manager: a Source or None; states: {host: as
    tools/lab status has it}; time: for people."""
    digests = {name: s.digest for name, s in sources.items() if s.digest and s.error is None}
    trees = Trees(wiring, digests).rows()
    nodes = []
    for n in wiring.nodes:
        row = dict(n)
        if n['kind'] == 'switch':
            source, digest = sources[n['name']], digests.get(n['name'])
            row['state'] = 'up' if digest else 'silent'
            row['error'] = source.error
            row['silent_s'] = None if source.silent_since is None else now - source.silent_since
            if digest:
                row.update({k: digest[k] for k in ('busy_percent', 'drops_s', 'lost', 'uptime_s', 'arena_bytes', 'arena_used_bytes')})
                row['groups'] = len(digest['groups'])
        else:
            row['state'] = states.get(n['name'], '')
        nodes.append(row)
    drops = [{'switch': s, **row} for s, d in digests.items() for row in d['drops']]
    ports = [{'switch': s, 'port': p, 'far': wiring.at_port.get((s, p), (None, ''))[1], **row}
             for s, d in digests.items() for p, row in d['ports'].items()]
    idle = {name for name, state in states.items() if state == 'idle'}
    for p in ports:
        p['unplugged'] = p['link'] != 'up' and p['far'] in idle
    rates = [d['drops_s'] for d in digests.values()]
    return {'name': wiring.name, 'time': time, 'nodes': nodes, 'links': [link_row(digests, k, k['b'] in idle) for k in wiring.links],
            'groups': trees, 'drops': sorted(drops, key=lambda d: (-(d['per_s'] or 0), -d['count'])), 'ports': ports,
            'drops_s': sum(rates) if rates and None not in rates else None,
            'manager': None if manager is None else {'error': manager.error, 'jobs': (manager.digest or {'jobs': []})['jobs']}}
