# SPDX-License-Identifier: BSD-3-Clause
"""AllGather and Broadcast by multicast among hosts some or all of which have the kernel's own multicast (rdma_rxe, and
Linux's IGMP and MLD): called by `run`. mcast_job says how each rank came by its chunks."""
import json
import os
import subprocess

import checks
from incline_fabric import LabError

GROUPS = {'ip': '239.129.0.1', 'ip6': 'ff0e::129:1'}
BYTES, TIMES, CHAINS = 20000, 3, 2
LIMIT = 200  # seconds, for hangs only: guests may be emulated


def job(lab, topo, build, key):
    """What each rank says: mcast_job.c."""
    name = f'multicast-{key}'
    with open(lab.path('group.json'), 'w') as f:
        json.dump(lab.group_config(topo, name, False, key), f)
    procs = [lab.popen(h['name'], [os.path.join(build, 'tests/integration/mcast_job'), lab.path('group.json'), str(rank),
                                   GROUPS[key], str(BYTES), str(TIMES), str(CHAINS)], limit=LIMIT, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, **({} if h in topo.guests else {'text': True}))
             for rank, h in enumerate(topo.hosts)]
    ends = [checks.end(p, LIMIT + 10) for p in procs]
    if any(rc for rc, _, _ in ends):
        raise LabError('\n'.join(f'rank {i}: exit status {rc}: {err.strip()}' for i, (rc, _, err) in enumerate(ends)))
    return [json.loads(out) for _, out, _ in ends]


def check(lab, topo, build, key):
    """Every byte right (mcast_job looks), most chunks by multicast, none of them from who is not a rank."""
    reports = job(lab, topo, build, key)
    n = len(reports)
    blocks = TIMES * n * 2  # AllGathers, then Broadcasts, of all roots each
    for rank, r in enumerate(reports):
        expected = blocks // n * (n - 1) * -(-BYTES // r['mtu'])
        wrong = {k: r[k] for k in ('forged', 'range', 'length', 'bad_message') if r[k]}
        if wrong or r['taken'] + r['fetched'] != expected:
            raise LabError(f'rank {rank}: of {expected} chunks {r}')
        if r['taken'] < expected // 2:  # before the switch has its report, a member gets none
            raise LabError(f"rank {rank}: {r['taken']} of {expected} chunks by multicast")
    return f"{sum(r['taken'] for r in reports)} chunks by multicast, {sum(r['fetched'] for r in reports)} fetched"
