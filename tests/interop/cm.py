#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""RDMA-CM between a software RNIC and Linux Soft-RoCE, from either side, with rdma-core's own programs; called by `run`
for a fabric that has both, or by hand: tests/interop/cm.py."""
import os
import re
import subprocess
import sys
import tempfile
import time

PATIENCE = 120  # seconds, for hangs only: guests may be emulated
LISTENS = 'rdma_cm listens on port'  # INCLINE_VERBS_DEBUG


def finish(procs):
    """(exit status, output) of each."""
    ends = []
    for p in procs:
        out, err = p.communicate(timeout=PATIENCE + 10)
        ends.append((p.returncode, (out or '') + (err or '')))
    return ends


def start(lab, host, argv):
    guest = lab.host(host)['nic'] == 'soft-roce'
    return lab.popen(host, argv, limit=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     **({} if guest else {'text': True}))


def said_by(path):
    with open(path) as f:
        return f.read()


def serve(lab, server, argv):
    """A server that listens, and the file of what it says if it is no guest. A guest's kernel tells who listens,
    our library says it. A client that comes before is rejected."""
    said = None
    if lab.host(server)['nic'] == 'soft-roce':
        process = start(lab, server, argv)
    else:
        said = lab.path('cm-server.out')
        with open(said, 'w') as out:
            process = lab.popen(server, ['env', 'INCLINE_VERBS_DEBUG=1', *argv], stdout=out, stderr=out)
    deadline = time.monotonic() + PATIENCE
    while not (LISTENS in said_by(said) if said else
               'LISTEN' in lab.guest(server).run('rdma resource show cm_id')[1]):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise OSError(f'{server}: the server does not listen: {said_by(said) if said else finish([process])}')
        time.sleep(0.02 if said else 0.1)
    return process, said


def ended(host, status, said):
    """Well. When rping is done it closes its channel and returns from main(); its thread for events, if it is just
    then on its way to the next one, finds the channel closed and ends the process with -1. All was said by then."""
    if status == 255 and 'DISCONNECT EVENT' in said and said.rstrip().endswith('rdma_get_cm_event: Bad file descriptor'):
        print(f'{host}: 255 of rping, whose thread for events found the channel closed, taken for good')
        return True
    return status == 0


def pair(lab, server, client, server_argv, client_argv):
    """Outputs of both."""
    process, said = serve(lab, server, server_argv)
    c = finish([start(lab, client, client_argv)])[0]
    fine = ended(client, *c)
    if not fine:
        process.kill()
    s = (process.wait(PATIENCE), said_by(said)) if said else finish([process])[0]
    if not fine or not ended(server, *s):
        raise OSError(f'{client_argv}: exit status {c[0]}: {c[1]}\nserver: exit status {s[0]}: {s[1]}')
    return s[1], c[1]


def rping(lab, server, client, address, count=5):
    words = ['-a', address, '-C', str(count), '-v', '-V']
    _, out = pair(lab, server, client, ['rping', '-s', *words], ['rping', '-c', *words])
    got = len(re.findall('ping data: rdma-ping-', out))
    if got != count:
        raise OSError(f'{got} of {count} pings: {out}')


def check(lab, ours, guest):
    """ours, guest: (host, IPv4 address, IPv6 address)."""
    done = []
    for server, client in ((guest, ours), (ours, guest)):
        for address in server[1:]:
            rping(lab, server[0], client[0], address)
        done.append(f'{client[0]} to {server[0]}')
    return f"rping over IPv4 and IPv6: {', '.join(done)}"


def main():
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, os.path.join(top, 'tools'))
    import incline_guest
    from incline_fabric import Topology
    from incline_lab import Lab
    from incline_processes import end_on_signals
    why_not = incline_guest.why_not()
    if why_not:
        print('SKIP: ' + why_not)
        return 77
    end_on_signals()
    lab = Lab(tempfile.mkdtemp(prefix='incline-'))
    lab.up(Topology({'name': 'cm2', 'mtu': 4200, 'switches': [{'name': 's0', 'ip': '10.77.255.1', 'ip6': 'fd77::ff:1'}],
                     'hosts': [{'name': 'h0', 'ip': '10.77.0.10', 'ip6': 'fd77::10', 'switch': 's0'},
                               {'name': 'h1', 'ip': '10.77.0.11', 'ip6': 'fd77::11', 'switch': 's0',
                                'nic': 'soft-roce'}]}))
    try:
        print(check(lab, ('h0', '10.77.0.10', 'fd77::10'), ('h1', '10.77.0.11', 'fd77::11')))
    finally:
        lab.down()
    return 0


if __name__ == '__main__':
    sys.exit(main())
