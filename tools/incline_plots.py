# SPDX-License-Identifier: BSD-3-Clause
"""What of each bench's result is drawn: rows of the file that tools/bench NAME --json FILE writes, as charts."""
from dataclasses import dataclass

from incline_plot_draw import Bars, Lines


@dataclass(frozen=True)
class Panel:
    """rows: where the file has them, with dots, a list or an object whose keys become their `name`. names: fields that a row
    is told by; over: one that is the axis of lines, else there are bars. values: {field: what it is called}, or the field of an
    object whose members are stacked. by: a field that tells bars of one row, or lines, apart. each: a chart for each of its values."""
    title: str
    unit: str
    rows: str
    values: object
    names: tuple = ()
    over: str = ''
    by: str = ''
    each: str = ''
    log: bool = False


NS = 'ns'
LATENCY = {'p50_us': 'p50', 'p99_us': 'p99', 'p99.9_us': 'p99.9', 'p99.99_us': 'p99.99'}
PATHS = 'path', 'mode', 'acks', 'groups', 'payload'
LOADS = 'operation', 'bytes', 'mtu', 'qps'
STORES, QPS, SCENARIOS = ('store', 'groups'), ('mrc', 'bytes', 'mtu'), ('scenario', 'hosts')
MPI = {'': 'incline', 'mpi_packets_': 'Open MPI on TCP', 'mpi_tso_': 'Open MPI on TCP with TSO', 'mpi_shm_': 'Open MPI in shared memory'}
SOCKETS = 'incline', 'veth', 'kernel'
CYCLES = 'cycles per packet'
# By "bench" of the file. What tools/bench stream makes without --cost or --redis is a figure (tools/plot).
PANELS = {
    'inc': [Panel('AllReduce on one core', 'Gb/s', 'results', {'gbps': 'measured', 'limit_gbps': 'limit'}, PATHS),
            Panel('where the time goes', CYCLES, 'results', 'cycles_per_packet', PATHS),
            Panel('a replica', NS, 'replicas', {'ns_per_replica': NS}, ('payload',))],
    'inc_workers': [Panel('workers of one switch, a CPU each', 'Gb/s', 'results', {'all_gbps': 'all at once', 'one_gbps': 'one alone'}, ('workers', 'payload'))],
    'manager': [Panel('groups installed', 'per second', 'results', {'installs_per_second': 'per second', 'installs_per_core_second': 'per second of a core'}, STORES),
                Panel('an install', 'ms', 'results', {'median_ms': 'median', 'p99_ms': '99 %', 'max_ms': 'longest'}, STORES),
                Panel('memory', 'MB', 'results', {'empty_mb': 'without groups', 'full_mb': 'with them'}, STORES),
                Panel('CPU of a second in which nothing happens', 's', 'results', {'quiet_second_core_seconds': 's'}, STORES),
                Panel('look-ups', 'per second of a core', 'results', {'lookups_per_core_second': 'look-ups'}, STORES),
                Panel('beginning again', 's', 'results', {'load_seconds': 'reading what is stored', 'restart_seconds': 'all of it'}, STORES)],
    'mrc': [Panel('a packet', NS, 'results', {'rc_ns.median': 'RC', 'mrc_ns.median': 'MRC'}, QPS),
            Panel('MRC beside RC', 'times as long', 'results', {'ratio.best': 'best', 'ratio.median': 'median', 'ratio.worst': 'worst'}, QPS),
            Panel('state of a queue pair', 'bytes', 'state.parts', {'evs_128': '128 EVs', 'evs_256': '256 EVs'}, ('part',))],
    'multicast': [Panel('a chunk of 4096 bytes received', 'instructions', 'results', {'handler': 'handler', 'locks': 'locks', 'device': 'device', 'paper': 'all, in the paper'}, ('transport',)),
                  Panel('receive workers, a thread each', 'Gb/s', 'workers', {'gbps': 'all at once', 'gbps_by_cpu': 'by CPU time'}, ('transport',), over='workers'),
                  Panel('short chunks by CPU time', 'million per second', 'workers', {'short_mpps': 'short'}, ('transport',), over='workers')],
    'page': [Panel("the switch's control thread", 'ms of CPU a second', 'rows', {'idle_ms_s': 'alone', 'page_ms_s': 'for a page', 'looked_at_ms_s': 'both'}, ('groups',)),
             Panel('one read of many', 'ms of CPU', 'rows', {'burst_ms': 'a read'}, ('groups',))],
    'reduce': [Panel('reduction', 'GB/s', 'results', {'gbytes_per_s': '', 'limit_gbytes_per_s': 'limit'}, ('form', 'op', 'dtype'), by='isa', each='memory')],
    'rnic': [Panel('two RNICs on one core', 'Gb/s', 'results', {'gbps': 'measured', 'limit_gbps': 'limit'}, LOADS),
             Panel('messages', 'per second', 'results', {'messages_per_s': 'messages'}, LOADS, log=True),
             Panel('through a switch', 'Gb/s', 'through_switch', {'gbps': 'Gb/s'}, ('name',)),
             Panel('SEND through a switch, half a round trip', 'us', 'through_switch', LATENCY, ('name',), log=True),
             Panel('WRITE', 'us', 'through_switch', {f'write.{k}': v for k, v in LATENCY.items()}, ('name',), log=True),
             Panel('SEND by events', 'us', 'through_switch', {f'events.{k}': v for k, v in LATENCY.items()}, ('name',), log=True)],
    'sim': [Panel('simulator', 'packet-hops per second of a core', 'results', {'hops_per_second': 'hops'}, SCENARIOS),
            Panel('simulator, memory so far', 'KB', 'results', {'max_rss_kb': 'KB'}, SCENARIOS)],
    'srv6': [Panel('uN on one worker, 128 bytes', 'million packets per second', 'results', {f'{n}.mpps.median': n for n in ('incline', 'testpmd', 'ovs')}, ('routes',)),
             Panel('ours beside theirs', 'times as many', 'results', {f'{n}.ratio.median': n for n in ('testpmd', 'ovs')}, ('routes',)),
             Panel('by kind', CYCLES, 'kinds', 'cycles_per_packet', ('kind',))],
    'allreduce': [Panel('AllReduce of four ranks', 'Gb/s', 'results', {f'{k}gbps': v for k, v in MPI.items()}, over='bytes', log=True),
                  Panel('AllReduce of four ranks; 0 bytes: a barrier', 'us', 'results', {f'{k}us': v for k, v in MPI.items()}, over='bytes', log=True)],
    'stream-cost': [Panel('one flow', 'Gb/s', 'rows', {'gbps': 'measured', 'paper.gbps': 'paper'}, ('way',)),
                    Panel('CPU of both ends', 's per GB', 'rows', 'both', ('way',)),
                    Panel('CPU of the receiver', 's per GB', 'rows', 'receiver', ('way',)),
                    Panel('long flows beside a short one', 'Gb/s', 'flows', {'gbps': 'all long ones'}, over='long'),
                    Panel('the short one, a round trip', 'us', 'flows', {'p50_us': 'p50', 'p99_us': 'p99'}, over='long'),
                    Panel('placing a packet', NS, 'placing', {'list_ns': 'by its list', 'receive_ns': "an RNIC's receive", 'write_ns': 'a WRITE'}, over='bytes')],
    'stream-redis': [Panel('SET', 'requests per second', 'rows', {f'{w}.requests_per_s': w for w in SOCKETS}, over='bytes', log=True),
                     Panel('CPU', 's per GB', 'rows', {f'{w}.cpu_s_per_gb': w for w in SOCKETS}, over='bytes', log=True)],
    'compare': [Panel('new beside old', 'times', 'rows', {'ratio': 'new/old'}, ('what',))],
}


def get(row, path):
    """A field, one of an object in it after a dot; names may have dots themselves. None: not there, or no number."""
    if not isinstance(row, dict):
        return None
    if path in row:
        return row[path]
    head, _, rest = path.partition('.')
    return get(row.get(head), rest) if rest else None


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def rows_of(doc, path):
    found = get(doc, path)
    if isinstance(found, dict):
        found = [{'name': name, **row} for name, row in found.items()]
    return found or []


def label(row, names):
    """What is said of itself: words, numbers with what they are, and what is so."""
    said = []
    for name in names:
        value = row.get(name)
        if isinstance(value, bool) or value is None:
            said += [name] if value else []
        else:
            said.append(value if isinstance(value, str) else f'{name} {value}')
    return ', '.join(said)


def values_of(panel, row):
    """{name: number}"""
    if isinstance(panel.values, str):
        return {k: v for k, v in (get(row, panel.values) or {}).items() if is_number(v)}
    return {name: v for field, name in panel.values.items() if is_number(v := get(row, field))}


def gather(panel, rows):
    """[(label, {name: number})]; rows that only `by` tells apart are one."""
    found = {}
    for row in rows:
        more = row.get(panel.by, '') if panel.by else ''
        for name, value in values_of(panel, row).items():
            found.setdefault(label(row, panel.names), {})[', '.join(filter(None, [more, name]))] = value
    return list(found.items())


def line_chart(panel, title, rows):
    curves = {}
    for row in rows:
        for name, value in values_of(panel, row).items():
            curve = ', '.join(filter(None, [label(row, panel.names), name]))
            curves.setdefault(curve, {})[str(row[panel.over])] = value
    labels = list(dict.fromkeys(str(row[panel.over]) for row in rows))
    firsts = {c.split(',')[0]: c for c in reversed(curves)}
    drawn = [(c, firsts[c.split(',')[0]] != c, values) for c, values in curves.items()]  # the second of a colour is dashed
    return [Lines(title, panel.unit, panel.over, labels, drawn, log=panel.log)] if drawn else []


def bar_chart(panel, title, rows):
    gathered = gather(panel, rows)
    names = list(dict.fromkeys(name for _, values in gathered for name in values))
    return [Bars(title, panel.unit, names, gathered, isinstance(panel.values, str), panel.log)] if gathered else []


def charts_of(doc):
    """Of a bench's result, of whatever rows are there; []: it is none."""
    out = []
    for panel in PANELS.get('compare' if 'compare' in doc else doc.get('bench'), []):
        rows = rows_of(doc, panel.rows)
        for kind in dict.fromkeys(row.get(panel.each) for row in rows):
            title = panel.title if kind is None else f'{panel.title}, {kind}'
            out += (line_chart if panel.over else bar_chart)(panel, title, [r for r in rows if r.get(panel.each) == kind])
    return out
