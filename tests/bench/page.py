#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the page of tools/lab web costs a switch: tools/bench page [--quick] [--seconds N] [--json FILE].

A switch of a lab without traffic, with one group and with more than a page looks into. It is read as the page does, once a
second, and for as long not at all; the CPU time of its control thread, as the kernel counts it in nanoseconds, is
taken of both: the difference is the page's. Workers have threads of their own. Beside it the same reads one after the other,
when the processor's caches still have everything."""
import argparse
import json
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, 'tools'))
from incline_fabric import Topology  # noqa: E402
from incline_lab import Lab  # noqa: E402
from incline_processes import end_on_signals  # noqa: E402
from incline_web import EVERY, Client  # noqa: E402
from incline_web_model import read_switch  # noqa: E402

GROUPS = 1, 21
BURST = 200  # reads without a pause
HOSTS = [{'name': f'h{i}', 'ip': f'10.77.0.1{i}', 'switch': 's0'} for i in range(4)]
TOPOLOGY = {'name': 'page', 'switches': [{'name': 's0', 'ip': '10.77.255.1'}], 'hosts': HOSTS}


class Switch:
    def __init__(self, lab, row):
        self.client, self.pid, self.groups = Client(lab.control_socket(row['name'])), row['pid'], 0

    def have(self, groups):
        """So many groups of four ranks, which do nothing."""
        for i in range(self.groups, groups):
            ends = [{'ip': h['ip'], 'qpn': 1000 + i, 'port': h['name'], 'ranks': [r]} for r, h in enumerate(HOSTS)]
            group = {'name': f'g{i}', 'mode': 'II', 'kind': 'mixed', 'mtu': 1024, 'M': 4, 'W': 4, 'ranks': len(HOSTS), 'endpoints': ends}
            made = self.client.read(lambda call, _: call([('group.create', group)]))[0]
            if not made:
                sys.exit(f"error: bench page: group {i} was refused")
        self.groups = groups

    def cpu_ms(self):
        """Of the thread that answers, which is the first."""
        with open(f'/proc/{self.pid}/task/{self.pid}/schedstat', encoding='ascii') as f:
            return int(f.read().split()[0]) * 1e-6

    def read(self, reads, pause):
        """(calls, ms of CPU time) of one read, and of the pause after it."""
        calls, before = 0, self.cpu_ms()

        def counted(call, now):
            def counting(questions):
                nonlocal calls
                calls += len(questions)
                return call(questions)
            return read_switch(counting, now)
        for _ in range(reads):
            self.client.read(counted)
            time.sleep(pause)
        return calls / reads, (self.cpu_ms() - before) / reads

    def idle(self, pauses):
        before = self.cpu_ms()
        for _ in range(pauses):
            time.sleep(EVERY)
        return (self.cpu_ms() - before) / pauses

    def row(self, groups, seconds):
        self.have(groups)
        self.read(3, 0)
        idle = self.idle(seconds)
        calls, looked_at = self.read(seconds, EVERY)
        return {'groups': groups, 'calls': calls, 'idle_ms_s': idle, 'looked_at_ms_s': looked_at, 'page_ms_s': looked_at - idle,
                'burst_ms': self.read(BURST, 0)[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='5 seconds')
    parser.add_argument('--seconds', type=int, default=30, metavar='N', help='of each measurement (%(default)s)')
    parser.add_argument('--json', metavar='FILE')
    args = parser.parse_args()
    seconds = 5 if args.quick else max(args.seconds, 1)
    end_on_signals()
    with tempfile.TemporaryDirectory(prefix='incline-') as d:
        lab = Lab(os.path.join(d, 'lab'))
        state = lab.up(Topology(TOPOLOGY))
        try:
            switch = Switch(lab, state['switches'][0])
            print(f'# ms of CPU time of the control thread; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {seconds} s each')
            print('groups  calls  idle/s  looked at/s  page/s  % of a core  a read in a burst')
            rows = []
            for groups in GROUPS:
                rows.append(r := switch.row(groups, seconds))
                print(f"{r['groups']:6} {r['calls']:6.0f} {r['idle_ms_s']:7.2f} {r['looked_at_ms_s']:12.2f} {r['page_ms_s']:7.2f}"
                      f" {r['page_ms_s'] / 10:12.3f} {r['burst_ms']:18.2f}", flush=True)
        finally:
            lab.down()
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump({'bench': 'page', 'seconds': seconds, 'rows': rows}, f, indent=1)
    return 0


if __name__ == '__main__':
    sys.exit(main())
