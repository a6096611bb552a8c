# SPDX-License-Identifier: BSD-3-Clause
"""One AllReduce in the switch beside the same by a ring of the hosts: what each costs the hosts' ports."""
import json

WAYS = {'ring': 'a ring of the hosts', 'inc': 'in the switch'}
BYTES, ITERS, BAR = 4 << 20, 2, 40  # of a vector; timed runs; the longest bar
RUNS = 2 * (ITERS + 1)  # out of place and in place, and of each one more whose result is checked


def at_hosts(lab):
    """Bytes that hosts have sent to their switches, and received from them."""
    state = lab.state()
    hosts = {h['name'] for h in state['hosts']}
    ports = [p for s in state['switches'] for p in lab.ctl(s['name'], 'ports')['ports'] if p['name'] in hosts]
    return sum(p['rx_bytes'] for p in ports), sum(p['tx_bytes'] for p in ports)


def one(lab, way, run_ranks, timeout):
    """Bytes on a host's link, sent and received, per byte of the vector; None: it did not end well."""
    out, before = lab.path(f'{way}.out'), at_hosts(lab)
    argv = ['--algorithm', way, '-b', str(BYTES), '-e', str(BYTES), '-n', str(ITERS), '-w', '0']
    if not run_ranks(lab, 'incline-perf', lambda r: argv + (['--json', out] if r == 0 else []), 'group.json', timeout, show=False):
        return None
    with open(out) as f:
        rows = json.load(f)['allreduce']
    if len(rows) != 1 or rows[0]['wrong'] or rows[0]['algorithm'] != way:
        return None
    sent, received = (b - a for a, b in zip(before, at_hosts(lab)))
    vectors = BYTES * RUNS * len(lab.state()['hosts'])
    return {'algorithm': way, 'sent': sent / vectors, 'received': received / vectors, 'gbps': rows[0]['algbw_gbps']}


def picture(rows):
    """A line for each way: a bar as long as what a host sends is of the greatest."""
    most = max(r['sent'] for r in rows)
    return [f"{WAYS[r['algorithm']]:20} {'#' * round(BAR * r['sent'] / most):{BAR}} {r['sent']:.2f}" for r in rows]


def run(lab, run_ranks, say, timeout):
    """Rows of all ways; None: one did not end well."""
    say(f'the same sum of {BYTES >> 20} MB by a ring of the hosts and in the switch: bytes that a NIC sends per byte of the vector')
    rows = [one(lab, way, run_ranks, timeout) for way in WAYS]
    if None in rows:
        return None
    print('\n'.join(picture(rows)), flush=True)
    return rows
