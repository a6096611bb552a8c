# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI on the hosts of a lab, a rank each, over UCX and the software RNIC, or over TCP: the columns beside the modes of tools/demo
--matrix and --paper."""
import os
import shlex
import shutil
import subprocess

import incline_netns
from incline_lab import TOP

LAB = os.path.join(TOP, 'tools/lab')

# UCX's own budgets are 7 times a second, and 30 s, which a host that does not get the CPU for so long does not keep.
PATIENT = {'UCX_TLS': 'rc,self', 'UCX_RC_VERBS_TIMEOUT': '4s', 'UCX_UD_VERBS_TIMEOUT': '300s', 'UCX_LOG_LEVEL': 'error'}


def why_not():
    """Why there is none, or ''."""
    missing = [p for p in ('mpirun', 'mpicc', 'ucx_info') if not shutil.which(p)]
    return f"{', '.join(missing)} not installed (tools/setup does)" if missing else ''


def program(directory):
    path = os.path.join(directory, 'collectives_mpi')
    subprocess.run(['mpicc', '-O2', '-o', path, os.path.join(TOP, 'tests/bench/collectives_mpi.c')], check=True, timeout=300)
    return path


def launcher(n_ranks, *more):
    as_root = ['--allow-run-as-root'] if os.geteuid() == 0 else []
    return ['mpirun', *as_root, '-np', str(n_ranks), '--bind-to', 'none', '--mca', 'mpi_yield_when_idle', '1', *more]


def over_rdma(hosts, argv):
    """All of mpirun's processes begin on this machine; each becomes its host's."""
    on_host = f'set -- {" ".join(hosts)} "$@"; shift $OMPI_COMM_WORLD_RANK; host=$1; exec {shlex.quote(LAB)} exec $host -- {shlex.join(argv)}'
    return launcher(len(hosts), '--oversubscribe', '--mca', 'pml', 'ucx', '--mca', 'btl', '^vader,openib', 'sh', '-c', on_host, 'sh')


def over_tcp(hosts, argv):
    """On hosts with network namespaces: mpirun on the first, its daemons on the others, all of it over their interfaces."""
    interfaces = [w for layer in ('oob', 'btl') for w in ('--mca', f'{layer}_tcp_if_include', incline_netns.INTERFACE)]
    return [LAB, 'exec', hosts[0], '--', *launcher(len(hosts), '--host', ','.join(hosts), '--mca', 'plm_rsh_agent', LAB + ' rsh', *interfaces,
                                                   '--mca', 'pml', 'ob1', '--mca', 'btl', 'self,tcp'), *argv]


RDMA, TCP = over_rdma, over_tcp


def end(process):
    process.terminate()  # mpirun ends its ranks
    try:
        process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def run(lab, path, hosts, collective, size, times, timeout, transport=RDMA):
    """(time in us, wrong elements), or (None, None) and what was said."""
    process = subprocess.Popen(transport(hosts, [path, collective, str(size), str(times)]), env={**os.environ, **PATIENT, 'INCLINE_LAB': lab.dir},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end(process)
        return None, None, 'no end'
    except BaseException:  # a signal has ended this program
        end(process)
        raise
    words = out.split()
    if len(words) != 2:
        return None, None, (err or out).strip()
    return float(words[0]), int(words[1]), ''
