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


def await_server(lab, server, process, wait):
    """A guest's kernel tells who listens. Of ours one only knows when it rejects."""
    if lab.host(server)['nic'] != 'soft-roce':
        time.sleep(wait)
        return
    deadline = time.monotonic() + PATIENCE
    while 'LISTEN' not in lab.guest(server).run('rdma resource show cm_id')[1]:
        if process.poll() is not None or time.monotonic() > deadline:
            raise OSError(f'{server}: the server does not listen: {process.communicate(PATIENCE)}')
        time.sleep(0.1)


def pair(lab, server, client, server_argv, client_argv):
    """Outputs of both. A client that comes before its server listens is rejected: both are then started anew, with
    more time in between."""
    wait = 3
    while True:
        s = start(lab, server, server_argv)
        await_server(lab, server, s, wait)
        c = finish([start(lab, client, client_argv)])[0]
        if c[0] == 0:
            s = finish([s])[0]
            if s[0] == 0:
                return s[1], c[1]
        else:
            s.kill()
            s = finish([s])[0]
        wait *= 2
        if wait > 24 or not re.search('REJECTED|UNREACHABLE|ADDR_ERROR', c[1]):
            raise OSError(f'{client_argv}: exit status {c[0]}: {c[1]}\nserver: exit status {s[0]}: {s[1]}')


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
    from incline_lab import Lab, Topology
    why_not = incline_guest.why_not()
    if why_not:
        print('SKIP: ' + why_not)
        return 77
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
