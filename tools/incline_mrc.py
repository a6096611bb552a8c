# SPDX-License-Identifier: BSD-3-Clause
"""What tools/demo --mrc runs: writes over all paths of two planes, while a plane is pulled and a switch stops forwarding; every
message is checked. Throughput per plane is read from the senders' first switches."""
import json
import os
import signal
import subprocess
import time

from incline_lab import LabError, TOP, build_dir, free_port, listening
from incline_planes import topology

FABRIC, PAIRS, SIZE, ROUND = 'planes-2x2x2', (('h0', 'h2'), ('h1', 'h3')), 65536, 100
PATIENCE, SAMPLE, BAR = 120, 1.0, 24  # seconds: hangs only; between two looks; characters of the longest bar
DEAD = 'p1-t1-0'  # what stops forwarding


def bars(sample, planes, most):
    """One line: a bar for each plane, as long as its rate is of the greatest."""
    text = '  '.join(f"plane {p} {'#' * round(BAR * sample['mbps'][p] / most) if most else '':<{BAR}} {sample['mbps'][p]:6.0f}"
                     for p in planes)
    return f"{sample['at']:5.0f} s  {text}  Mb/s  {sample['phase']}"


class Spray:
    """Pairs of hosts that write until they are told to end, and the phases of what fails meanwhile."""
    def __init__(self, lab, seconds):
        self.lab, self.seconds, self.procs, self.samples, self.away = lab, seconds, [], [], ()
        with open(os.path.join(TOP, 'tools/fabrics', FABRIC + '.json')) as f:
            self.topo = topology(json.load(f))

    def ctl(self, switch, *words):
        done = subprocess.run([os.path.join(build_dir(), 'apps/inclinectl'), '-s', self.lab.control_socket(switch), '--json', *words],
                              capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            raise LabError(f'{switch}: {done.stderr}')
        return json.loads(done.stdout)

    def perf(self, host, port, *args):
        argv = [os.path.join(build_dir(), 'apps/incline-mrcperf'), '-p', str(port), '--paths', self.lab.path(f'{host}.paths.json'), *args]
        with open(self.lab.path(f'{host}.mrcperf.log'), 'w') as out:
            self.procs.append((host, self.lab.popen(host, argv, stdout=out, stderr=out)))
        return self.procs[-1][1]

    def start(self):
        for sender, receiver in PAIRS:
            port, deadline = free_port(), time.monotonic() + PATIENCE
            server = self.perf(receiver, port)
            while not listening(port):
                if server.poll() is not None or time.monotonic() > deadline:
                    raise LabError(f'{receiver}: ' + self.said(receiver))
                time.sleep(0.02)
            self.perf(sender, port, '--imm', '-s', str(SIZE), '-n', str(ROUND), '-t', '8', '--seconds', '86400',
                      '--json', self.lab.path(f'{sender}.mrcperf.json'), '127.0.0.1')

    def said(self, host):
        with open(self.lab.path(f'{host}.mrcperf.log')) as f:
            return f.read()

    def alive(self):
        for host, p in self.procs:
            if p.poll() not in (None, 0):
                raise LabError(f'{host}: ' + self.said(host))

    def received(self):
        """Bytes that the first switches have from the senders, by plane; a plane that is away has none."""
        total = {}
        for plane in self.topo.planes:
            name = self.topo.t(plane, 0, 0)['name']
            if name not in self.away:
                ports = self.ctl(name, 'ports')['ports']
                total[plane] = sum(p['rx_bytes'] for p in ports if p['name'] in [s for s, _ in PAIRS])
        return total

    def watch(self, phase, seconds, say):
        """Looks on; a plane that is away counts as 0."""
        say(phase)
        before, at = self.received(), time.monotonic()
        for _ in range(max(1, round(seconds / SAMPLE))):
            time.sleep(SAMPLE)
            self.alive()
            now, after = time.monotonic(), self.received()
            mbps = {p: 8e-6 * max(0, after.get(p, 0) - before.get(p, 0)) / (now - at) for p in self.topo.planes}
            self.samples.append({'at': now - self.begun, 'phase': phase, 'mbps': mbps})
            before, at = after, now

    def plane(self, number, number_of_signal):
        """Its switches take and give nothing any more, or go on; links stay up meanwhile, and nobody is told."""
        for row in self.lab.state()['switches']:
            if self.topo.switch[row['name']]['plane'] == number:
                self.lab.signal(row, number_of_signal)

    def run(self, say):
        step = self.seconds / 5  # there are five phases
        self.start()
        deadline = time.monotonic() + PATIENCE
        while not all(b > SIZE for b in self.received().values()):
            self.alive()
            if time.monotonic() > deadline:
                raise LabError('a plane carries nothing')
            time.sleep(0.1)
        self.begun = time.monotonic()
        self.watch('all paths', step, say)
        say(f'plane 2 is pulled: its {len(self.topo.switches) // 2} switches are stopped')
        self.away = tuple(s['name'] for s in self.topo.switches if s['plane'] == 2)
        self.plane(2, signal.SIGSTOP)
        try:
            self.watch('plane 2 is away', step, say)
        finally:
            self.plane(2, signal.SIGCONT)
        self.away = ()
        self.watch('plane 2 is back', step, say)
        sid = next(e['key']['sid'] for e in self.ctl(DEAD, 'table', 'read', 'local_sid')['entries'] if e['action'] == 'un')
        self.ctl(DEAD, 'table', 'delete', 'local_sid', 'sid=' + sid)
        say(f"{DEAD} forwards nothing any more; it still answers: it is {self.ctl(DEAD, 'status')['name']}")
        self.watch(f'{DEAD} is dead', step, say)
        self.ctl(DEAD, 'table', 'insert', 'local_sid', 'sid=' + sid, 'un')
        self.watch(f'{DEAD} is back', step, say)
        return self.finish()

    def finish(self):
        deadline = time.monotonic() + PATIENCE
        for sender, _ in PAIRS:
            next(p for host, p in self.procs if host == sender).send_signal(signal.SIGINT)
        for host, p in self.procs:
            try:
                p.wait(max(1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise LabError(f'{host} does not end: ' + self.said(host)) from None
        self.alive()
        rows = []
        for sender, receiver in PAIRS:
            with open(self.lab.path(f'{sender}.mrcperf.json')) as f:
                result = json.load(f)
            rows += [{'from': sender, 'to': receiver, 'srv6_paths': result['srv6_paths'], **r} for r in result['rows']]
        return rows

    def kill(self):
        for _, p in self.procs:
            if p.poll() is None:
                p.kill()
            p.wait()


def run(lab, say, seconds):
    """(rows of the pairs, samples)."""
    spray = Spray(lab, seconds)
    say(f'starting {len(spray.topo.switches)} switches, two planes of two T0 and two T1, and {len(spray.topo.hosts)} hosts')
    lab.up(spray.topo)
    try:
        rows = spray.run(say)
    finally:
        spray.kill()
        most = max((max(s['mbps'].values()) for s in spray.samples), default=0)
        for s in spray.samples:
            print(bars(s, spray.topo.planes, most), flush=True)
    return rows, spray.samples
