# SPDX-License-Identifier: BSD-3-Clause
"""A multi-plane Clos on paper: planes of T0 and T1 switches that forward by micro-segments (docs/srv6.md), hosts with a port
in each. Nothing here starts or touches anything; incline_lab.py makes a fabric of it, as of a tree (incline_fabric.py).

The plan of SIDs is MRC's worked example (docs/mrc.md 8.4): uSID = plane:4, role:2, index:10, planes from 1 on, so that no uSID
is 0. An entropy value is plane << 8 | uplink. Addresses say where a node is: fd77::GROUP:DOWNLINK is a host, whichever plane,
fd77:0:0:PLANE::GROUP:DOWNLINK its port in a plane, GROUP the number of its T0 from 1 on; fd77:0:0:PLANE:ROLE+1::INDEX a switch."""
import incline_fabric
from incline_fabric import LabError, Topology, port_mac

T0, T1, LINK, OWN = range(4)  # roles; OWN: of the switch that the packet is at: 0 the end of tunnels, 1.. its uplinks
BLOCK = 'fcbb:bb00'
PLANE_SHIFT, ROLE_SHIFT, EV_PLANE, EV_UPLINK_BITS = 12, 10, 8, 8
OUTER = 64  # what a tunnel may add to a packet: IPv6, and SRH of one segment. A host's own, or its T0's around what it did not pack
LIMITS = {'count': (1, 15), 't0': (1, 31), 't1': (1, 31), 'hosts': (1, 961)}
# A round trip through processes that take turns on a few cores: with a time of the order of a fabric's every path would seem bad.
MRC = {'base_rtt_us': 20000, 'mbps': 1000}
MAX_PORTS = 32  # of a switch: as many as Debian's DPDK has


def sid(plane, role, index):
    """The uSID of a switch, of a link to a host, or of something of the switch itself."""
    return plane << PLANE_SHIFT | role << ROLE_SHIFT | index


def address(*usids):
    """That of a path: what a packet's destination is."""
    return ':'.join([BLOCK] + [f'{u:x}' for u in usids]) + ('::' if len(usids) < 6 else '')


def prefix(*usids):
    return f'{address(*usids)}/{32 + 16 * len(usids)}'


def host_ip(plane, group, downlink):
    """plane 0: whichever."""
    return f'fd77:0:0:{plane:x}::{group + 1:x}:{downlink:x}' if plane else f'fd77::{group + 1:x}:{downlink:x}'


def switch_ip(plane, role, index):
    return f'fd77:0:0:{plane:x}:{role + 1:x}::{index + 1:x}'


def row(dst, hops, copies):
    """Of a node's file: the template of the addresses of paths to the destinations behind one prefix (lib/srv6/paths.h)."""
    last = len(hops) - 1
    return {'prefix': dst, 'address': address(*hops), 'hops': len(hops),
            'copies': [{'from': EV_PLANE, 'width': 4, 'usid': i, 'shift': PLANE_SHIFT} for i in range(len(hops))] + copies,
            'downlink': {'from': 0, 'width': ROLE_SHIFT, 'usid': last, 'shift': 0}}


class Planes:
    """The topology file, checked; offers what incline_fabric.Topology does, but for groups, which need a tree. Errors name
    the field. A plane's T0s have the same hosts at the same downlinks as those of the other planes."""
    KEYS = {'': {'name', 'mtu', 'planes'}, 'planes': set(LIMITS)}
    guests = ()  # hosts that are virtual machines
    namespaces = False

    check_keys, text, ports_of_host = Topology.check_keys, staticmethod(Topology.text), Topology.ports_of_host

    def __init__(self, doc):
        self.doc = doc
        self.check_keys(doc, '')
        self.name = self.text(doc, 'name', '')
        self.mtu = doc.get('mtu', 4200)
        if not isinstance(self.mtu, int) or not 1280 <= self.mtu <= 9600 - 2 * OUTER:
            raise LabError(f'mtu: {self.mtu}, must be 1280..{9600 - 2 * OUTER}')
        planes = doc.get('planes')
        self.check_keys(planes, 'planes')
        for key, (low, high) in LIMITS.items():
            if not isinstance(planes.get(key), int) or not low <= planes[key] <= high:
                raise LabError(f'planes.{key}: {planes.get(key)!r}, must be {low}..{high}')
        self.n_t0, self.n_t1, self.planes = planes['t0'], planes['t1'], range(1, planes['count'] + 1)
        if planes['hosts'] % self.n_t0:
            raise LabError(f"planes.hosts: {planes['hosts']}, must be a multiple of the {self.n_t0} T0s of a plane")
        self.downlinks = planes['hosts'] // self.n_t0
        if self.downlinks + self.n_t1 > MAX_PORTS:
            raise LabError(f'planes: a T0 would have {self.downlinks + self.n_t1} ports, at most {MAX_PORTS}')
        self.make_nodes(planes['hosts'])

    def make_nodes(self, hosts):
        self.switches = [{'name': f'p{p}-{("t0", "t1")[role]}-{i}', 'ip': switch_ip(p, role, i), 'plane': p, 'role': role, 'index': i}
                         for role, n in ((T0, self.n_t0), (T1, self.n_t1)) for p in self.planes for i in range(n)]
        self.switch = {s['name']: s for s in self.switches}
        self.hosts, self.ports = [], []
        for i in range(hosts):
            group, downlink = divmod(i, self.downlinks)
            self.hosts.append({'name': f'h{i}', 'ip': host_ip(0, group, downlink), 'switch': self.t(self.planes[0], T0, group)['name'],
                               'nic': 'incline', 'group': group, 'downlink': downlink})
            self.ports += [{'name': f'h{i}-p{p}', 'host': f'h{i}', 'switch': self.t(p, T0, group)['name'], 'downlink': downlink,
                            'mac': f'02:00:00:{p:02x}:{i >> 8:02x}:{i & 255:02x}', 'ip': host_ip(p, group, downlink)}
                           for p in self.planes]

    def t(self, plane, role, index):
        return self.switch[f'p{plane}-{("t0", "t1")[role]}-{index}']

    def path(self, switch):
        """Names from a switch up: T0s are the servers of their links to T1s, which then may come and go."""
        return [switch] if self.switch[switch]['role'] == T0 else [switch, '']

    def links(self, name):
        """(port, name of what is there) of a switch, in the order of its ports."""
        s = self.switch[name]
        if s['role'] == T1:
            return [(f't0-{i}', self.t(s['plane'], T0, i)['name']) for i in range(self.n_t0)]
        return [(p['host'], p['name']) for p in self.ports if p['switch'] == name] + \
            [(f't1-{i}', self.t(s['plane'], T1, i)['name']) for i in range(self.n_t1)]

    def far_mac(self, name, far):
        for p in self.ports:
            if p['name'] == far:
                return p['mac']
        return port_mac(self.switches.index(self.switch[far]), [f for _, f in self.links(far)].index(name))

    def switch_ports(self, folder, name, impair):
        me = self.switches.index(self.switch[name])
        ports = []
        for i, (port, far) in enumerate(self.links(name)):
            server = self.switch[name]['role'] == T0
            config = {'name': port, 'type': 'memif', 'role': 'server' if server else 'client', 'mtu': self.mtu + 2 * OUTER,
                      'socket': folder.link_socket(*((name, far) if server else (far, name))), 'mac': port_mac(me, i),
                      'rxd': 256, 'txd': 256, 'queue': {'trim_bytes': 152}}
            if far in self.switch:  # congestion on the last hop is the receiver's, not the path's: no marks there
                config['queue'].update(mark_min_kb=32, mark_max_kb=128)
            else:
                config['queue']['last_hop'] = config['proxy_arp'] = True
            if impair:
                config['impair'] = {**impair, 'seed': impair.get('seed', 1) + 100 * me + i}
            ports.append(config)
        return ports

    def tunnel(self, plane, group, downlink):
        """Of a host that does not pack by itself, to one of another T0: over a T1 that its number gives, to the T0's end."""
        return address(sid(plane, T1, downlink % self.n_t1), sid(plane, T0, group), sid(plane, OWN, 0))

    def switch_tables(self, name):
        s, rows = self.switch[name], {'neigh': [], 'local_sid': [], 'route6': []}

        def add(table, action, data, **key):
            rows[table].append({'key': key, 'action': action, **({'data': data} if data else {})})

        plane, up = s['plane'], T0 if s['role'] == T1 else T1
        add('local_sid', 'un', {}, sid=prefix(sid(plane, s['role'], s['index'])))
        for port, far in self.links(name):
            if far in self.switch:
                ip, usid = self.switch[far]['ip'], sid(plane, up, self.switch[far]['index'])
            else:
                at = next(p for p in self.ports if p['name'] == far)
                ip, usid = at['ip'], sid(plane, LINK, at['downlink'])
            add('neigh', 'rewrite', {'port': port, 'mac': self.far_mac(name, far)}, ip=ip)
            add('route6', 'via', {'nexthop': ip}, dst=prefix(usid))
        if s['role'] == T0:
            add('local_sid', 'dt46', {'outer_dscp': True}, sid=prefix(sid(plane, T0, s['index']), sid(plane, OWN, 0)))
            for i in range(self.n_t1):
                add('local_sid', 'ua', {'nexthop': switch_ip(plane, T1, i)}, sid=prefix(sid(plane, OWN, 1 + i)))
            for h in self.hosts if self.n_t1 else ():
                if h['group'] != s['index']:
                    add('route6', 'encap', {'src': s['ip'], 'sid1': self.tunnel(plane, h['group'], h['downlink'])},
                        dst=host_ip(plane, h['group'], h['downlink']) + '/128')
        return rows

    def switch_config(self, folder, name, impair=None):
        return {'name': name, 'addresses': [self.switch[name]['ip']], 'ports': self.switch_ports(folder, name, impair),
                'idle': 'sleep', 'memory_mb': 96, 'arena_kb': 64, 'control': folder.control_socket(name),
                'tables': self.switch_tables(name)}

    def devices(self, folder, host, _netns=False):
        """One RNIC, with a port in every plane, all of which have the host's address beside their own; its T0s are the routers
        of what it packs."""
        ports = [incline_fabric.rnic_config(self, folder, p) for p in self.ports_of_host(host['name'])]
        for config, p in zip(ports, self.ports_of_host(host['name'])):
            plane = self.switch[p['switch']]['plane']
            config.update(ip=[p['ip'], host['ip']], mtu=self.mtu + OUTER, via=self.switch[p['switch']]['ip'],
                          sid=address(sid(plane, LINK, p['downlink'])))
            config['port']['mtu'] = config['mtu']
            del config['idle']
        return [(host['name'], {'ports': ports, 'idle': 'sleep', 'mrc': MRC})]

    def group_config(self, *_):
        """There is no tree of switches that sum; None."""

    def paths(self, host):
        """A host's file of paths: its ports by plane, and a row for the hosts of each T0 (docs/srv6.md)."""
        own = sid(0, T0, host['group'])
        uplink = [{'from': 0, 'width': EV_UPLINK_BITS, 'usid': 1, 'shift': 0}]
        near = row(host_ip(0, host['group'], 0) + '/112', [own, sid(0, LINK, 0)], [])
        far = [row(host_ip(0, i, 0) + '/112', [own, sid(0, T1, 0), sid(0, T0, i), sid(0, LINK, 0)], uplink)
               for i in range(self.n_t0) if i != host['group']]
        return {'name': host['name'], 'address': host['ip'],
                'planes': [{'plane': p, 'port': port['name']} for p, port in zip(self.planes, self.ports_of_host(host['name']))],
                'plane_shift': EV_PLANE, 'uplinks': self.n_t1, 'rows': [near, *far]}


def topology(doc):
    """Of a topology file, whichever kind."""
    return Planes(doc) if isinstance(doc, dict) and 'planes' in doc else Topology(doc)
