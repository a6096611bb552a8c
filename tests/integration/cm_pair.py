# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of programs that find each other by RDMA-CM, on hosts of tools/lab."""
import os
import re
import sys
import time

from fabric_case import Fabric, build_dir

PATIENCE = 240  # seconds for a pair of programs: hangs only
ADDRESS = '10.77.0.10'
ADDRESS6 = 'fd77::10'
# A program without the preload library, and with the drop-in ones.
DROP_IN = ['env', '-u', 'LD_PRELOAD', 'LD_LIBRARY_PATH=' + os.path.join(build_dir(), 'lib/verbs/dropin')]
LISTENS = 'rdma_cm listens on port'  # INCLINE_VERBS_DEBUG


def read(path):
    with open(path) as f:
        return f.read()


class Pair(Fabric):
    def serve(self, argv):
        """A server on h0 as soon as it listens, and the file of what it says. A client that comes before is rejected,
        as on any host."""
        said = self.lab.path(f'server-{len(self.procs)}.out')
        with open(said, 'w') as out:
            server = self.lab.popen('h0', ['env', 'INCLINE_VERBS_DEBUG=1', *argv], stdout=out, stderr=out)
        self.procs.append(server)
        deadline = time.monotonic() + PATIENCE
        while LISTENS not in read(said):
            self.assertTrue(server.poll() is None and time.monotonic() < deadline,
                            f'{argv} does not listen, ended with {server.poll()}: {read(said)}')
            time.sleep(0.02)
        return server, said

    def once(self, server, client):
        """(exit status, output) of both."""
        s, said = self.serve(server)
        rc, out, err = self.finish([self.start('h1', client)], PATIENCE)[0]
        if rc:
            s.kill()
        return (rc, out + err), (s.wait(PATIENCE), read(said))

    def pair(self, server, client):
        """Outputs of both."""
        start = time.monotonic()
        c, s = self.once(server, client)
        self.assertEqual((c[0], s[0]), (0, 0), f'{client}: {c}\n{s}')
        print(f'  {" ".join(client)}: {time.monotonic() - start:.1f} s', file=sys.stderr)
        return s[1], c[1]

    def rping(self, address, count, *more):
        s, c = self.pair(['rping', '-s', '-a', address, '-C', str(count), '-v', '-V', *more],
                         ['rping', '-c', '-a', address, '-C', str(count), '-v', '-V', *more])
        self.assertEqual(len(re.findall('ping data: rdma-ping-', c)), count, c)

    def persistent(self, clients):
        """rping at a server that takes one client after another."""
        server, _ = self.serve(['rping', '-s', '-P', '-a', ADDRESS])
        for n in range(clients):
            rc, out, err = self.finish([self.start('h1', ['rping', '-c', '-a', ADDRESS, '-C', '3', '-v', '-V'])],
                                       PATIENCE)[0]
            self.assertTrue(rc == 0 and 'rdma-ping-2' in out,
                            f'client {n} ended with {rc}, the server with {server.poll()}: {out}{err}')
        self.assertIsNone(server.poll())
