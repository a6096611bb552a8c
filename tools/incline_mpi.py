# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI on the hosts of a lab, a rank each, over UCX and the software RNIC: the column beside the modes of tools/demo --matrix."""
import os
import shutil
import subprocess

from incline_lab import TOP

# UCX's own budgets are 7 times a second, which a host that does not get the CPU for so long does not keep.
PATIENT = {'UCX_TLS': 'rc,self', 'UCX_RC_VERBS_TIMEOUT': '4s', 'UCX_LOG_LEVEL': 'error'}


def why_not():
    """Why there is none, or ''."""
    missing = [p for p in ('mpirun', 'mpicc', 'ucx_info') if not shutil.which(p)]
    return f"{', '.join(missing)} not installed (tools/setup does)" if missing else ''


def program(directory):
    path = os.path.join(directory, 'collectives_mpi')
    subprocess.run(['mpicc', '-O2', '-o', path, os.path.join(TOP, 'tests/bench/collectives_mpi.c')], check=True, timeout=300)
    return path


def command(path, hosts, collective, size, times):
    """All of mpirun's processes begin on this machine; each becomes its host's."""
    lab = os.path.join(TOP, 'tools/lab')
    on_host = f'set -- {" ".join(hosts)} "$@"; shift $OMPI_COMM_WORLD_RANK; host=$1; exec {lab} exec $host -- {path} {collective} {size} {times}'
    argv = ['mpirun', '-np', str(len(hosts)), '--oversubscribe', '--bind-to', 'none', '--mca', 'pml', 'ucx', '--mca', 'btl', '^vader,openib',
            '--mca', 'mpi_yield_when_idle', '1', 'sh', '-c', on_host, 'sh']
    if os.geteuid() == 0:
        argv.insert(1, '--allow-run-as-root')
    return argv


def run(lab, path, hosts, collective, size, times, timeout):
    """(time in us, wrong elements), or (None, None) and what was said."""
    process = subprocess.Popen(command(path, hosts, collective, size, times), env={**os.environ, **PATIENT, 'INCLINE_LAB': lab.dir},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.terminate()  # mpirun ends its ranks
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        return None, None, 'no end'
    words = out.split()
    if len(words) != 2:
        return None, None, (err or out).strip()
    return float(words[0]), int(words[1]), ''
