# SPDX-License-Identifier: BSD-3-Clause
"""A network namespace for each host of a fabric, with a tap device eth0 that lies on the port of the host's
software RNIC: so that ping, ssh or the TCP connections of a job run over the same fabric as its RoCE traffic.
Needs root and iproute2."""
import os
import shutil
import subprocess
import zlib

INTERFACE = 'eth0'
PREFIX4, PREFIX6 = 16, 64  # one prefix for all: the switch answers ARP and ND for whoever is behind another port
HOSTS_DIR = '/etc/netns'   # from where "ip netns exec" takes a namespace's own /etc/hosts
RUN_DIR = '/run/netns'


class NetnsError(Exception):
    pass


def why_not():
    """Why hosts cannot have network namespaces here, or None."""
    if os.geteuid() != 0:
        return 'network namespaces need root'
    if not shutil.which('ip'):
        return 'ip is not installed (iproute2)'
    if not os.path.exists('/dev/net/tun'):
        return 'there is no /dev/net/tun'
    return None


def why_no_other_root():
    """Why there cannot be a root of its own, over this machine's, with a network of its own (package.py), or None."""
    if os.geteuid() != 0:
        return 'another root takes root'
    missing = [name for name in ('ip', 'unshare', 'chroot') if not shutil.which(name)]
    return f"no {' and no '.join(missing)}" if missing else None


def ip(commands, netns=None):
    """Several commands of ip(8)."""
    argv = ['ip', *(['-n', netns] if netns else []), '-batch', '-']
    done = subprocess.run(argv, input='\n'.join(commands) + '\n', capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise NetnsError(f'{netns or "ip"}: {done.stderr.strip()}')


def why_no_next_csid():
    """Why a kernel in a network namespace cannot be a hop of a path of uSIDs here, or None."""
    why = why_not()
    if why:
        return why
    netns = f'incline-probe-{os.getpid()}'
    try:
        ip([f'netns add {netns}'])
        ip(['link set lo up', 'route add fcbb:bb00:1::/48 encap seg6local action End flavors next-csid lblen 32 nflen 16 '
            'dev lo'], netns)
    except NetnsError as e:
        return f'the kernel or iproute2 knows no next-csid: {e}'
    finally:
        subprocess.run(['ip', 'netns', 'del', netns], stderr=subprocess.DEVNULL, timeout=60)
    return None


def within(netns, host, argv):
    """The command that runs this one in a network namespace, with the host's name for the machine's."""
    return ['ip', 'netns', 'exec', netns, 'unshare', '--uts', 'sh', '-c', 'hostname "$0" && exec "$@"', host, *argv]


class Netns:
    """The namespaces of the fabric in a directory. Their names follow from it, so that they are found again."""

    def __init__(self, directory):
        self.prefix = f'incline-{zlib.crc32(os.path.abspath(directory).encode()):08x}-'

    def name(self, host):
        return self.prefix + host

    def make(self, topo):
        self.remove()
        hosts = ['127.0.0.1 localhost', '::1 localhost']
        hosts += [f"{node[key]} {node['name']}" for node in topo.ports + topo.switches for key in ('ip', 'ip6')
                  if key in node]
        mine = [p for p in topo.ports if p['name'] == p['host']
                and not any(g['name'] == p['name'] for g in topo.guests)]
        ip([f"netns add {self.name(p['name'])}" for p in mine])
        for p in mine:
            netns = self.name(p['name'])
            os.makedirs(os.path.join(HOSTS_DIR, netns))
            with open(os.path.join(HOSTS_DIR, netns, 'hosts'), 'w') as f:
                f.write('\n'.join(hosts) + '\n')
            # The RNIC would do the same: but so the interface is there before a program runs.
            lines = ['link set lo up', f'tuntap add dev {INTERFACE} mode tap',
                     f"link set {INTERFACE} address {p['mac']} mtu {topo.mtu}", f'link set {INTERFACE} up',
                     f"addr add {p['ip']}/{PREFIX4} dev {INTERFACE}"]
            if 'ip6' in p:
                lines.append(f"addr add {p['ip6']}/{PREFIX6} dev {INTERFACE} nodad")
            ip(lines, netns)

    def remove(self):
        """All of this fabric, whoever made them and whatever became of him."""
        for directory in RUN_DIR, HOSTS_DIR:
            for name in os.listdir(directory) if os.path.isdir(directory) else ():
                if not name.startswith(self.prefix):
                    continue
                if directory == RUN_DIR:
                    subprocess.run(['ip', 'netns', 'del', name], capture_output=True, timeout=60)
                else:
                    shutil.rmtree(os.path.join(directory, name), ignore_errors=True)
