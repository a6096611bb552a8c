# SPDX-License-Identifier: BSD-3-Clause
"""A fabric on paper: the topology file, checked, and what follows from it, the configuration of every switch and
RNIC and the group files. Nothing here starts or touches anything; incline_lab.py makes a fabric of it."""
import ipaddress
import os

import incline_netns

MAX_PORTS = 16  # of a host


class LabError(Exception):
    pass


def addresses(node):
    return [node[key] for key in ('ip', 'ip6') if key in node]


class Topology:
    """The topology file, checked. Errors name the field."""
    KEYS = {'': {'name', 'mtu', 'switches', 'hosts', 'multicast', 'bridge'},
            'switches': {'name', 'ip', 'ip6', 'parent', 'workers'},
            'hosts': {'name', 'ip', 'ip6', 'switch', 'nic', 'ports', 'transport'}}
    namespaces = True  # hosts may have
    NICS = ('incline', 'soft-roce')  # the software RNIC in a process of ours; a virtual machine
    TRANSPORTS = ('roce', 'iwarp')  # of the software RNIC's queue pairs

    def __init__(self, doc):
        self.doc = doc
        self.check_keys(doc, '')
        self.name = self.text(doc, 'name', '')
        self.mtu = doc.get('mtu', 4200)
        if not isinstance(self.mtu, int) or not 576 <= self.mtu <= 9600:
            raise LabError(f'mtu: {self.mtu}, must be 576..9600')
        self.multicast = doc.get('multicast', [])  # groups; checked by the switches' table
        if not isinstance(self.multicast, list) or not all(isinstance(g, str) for g in self.multicast):
            raise LabError('multicast: must be a list of group addresses')
        self.bridge = doc.get('bridge', False)
        if not isinstance(self.bridge, bool):
            raise LabError('bridge: must be true or false')
        self.switches, self.hosts = doc.get('switches'), doc.get('hosts')
        for kind in ('switches', 'hosts'):
            rows = getattr(self, kind)
            if not isinstance(rows, list) or not rows:
                raise LabError(f'{kind}: must be a list with at least one entry')
            for row in rows:
                self.check_keys(row, kind)
                self.text(row, 'name', kind)
                for key in ('ip', 'ip6') if 'ip6' in row else ('ip',):
                    try:
                        ipaddress.ip_address(row.get(key))
                    except ValueError:
                        raise LabError(f"{kind}.{row['name']}.{key}: {row.get(key)!r} is no address") from None
        self.check_ports()
        self.check_tree()

    @staticmethod
    def text(row, key, where):
        value = row.get(key)
        if not isinstance(value, str) or not 0 < len(value) < 24 or not value.replace('-', '').isalnum():
            raise LabError(f'{where + "." if where else ""}{key}: {value!r}, must be 1..23 letters, digits and dashes')
        return value

    def check_keys(self, row, kind):
        if not isinstance(row, dict):
            raise LabError(f'{kind or "file"}: must be an object')
        for key in row:
            if not key.startswith('#') and key not in self.KEYS[kind]:
                raise LabError(f'{kind + "." if kind else ""}{key}: unknown field')

    def check_ports(self):
        """Makes self.ports: what a host's RNICs are to the switch. The first has the host's name and addresses;
        those after it have -1, -2 ... behind the name, and addresses 256 (IPv6: 65536) further each."""
        self.ports = []
        for i, h in enumerate(self.hosts):
            n = h.setdefault('ports', 1)
            if not isinstance(n, int) or not 1 <= n <= MAX_PORTS:
                raise LabError(f"hosts.{h['name']}.ports: {n!r}, must be 1..{MAX_PORTS}")
            if n > 1 and h.get('nic', 'incline') != 'incline':
                raise LabError(f"hosts.{h['name']}.ports: {n}, a virtual machine has one")
            transport = h.get('transport', 'roce')
            if transport not in self.TRANSPORTS:
                raise LabError(f"hosts.{h['name']}.transport: {transport!r} is none of {', '.join(self.TRANSPORTS)}")
            if transport == 'iwarp' and (n > 1 or h.get('nic', 'incline') != 'incline'):
                raise LabError(f"hosts.{h['name']}.transport: iwarp is for a software RNIC with one port")
            for k in range(n):
                row = {'name': f"{h['name']}-{k}" if k else h['name'], 'host': h['name'], 'switch': h.get('switch'),
                       'transport': transport,
                       'mac': f'02:00:02:{k:02x}:{i >> 8:02x}:{i & 255:02x}' if k else f'02:00:00:00:{i >> 8:02x}:{i & 255:02x}'}
                for key, step in ('ip', 8), ('ip6', 16):
                    if key in h:
                        row[key] = str(ipaddress.ip_address(h[key]) + (k << step))
                self.ports.append(row)

    def ports_of_host(self, name):
        return [p for p in self.ports if p['host'] == name]

    def check_tree(self):
        names = [n['name'] for n in self.switches + self.ports]
        ips = [a for n in self.switches + self.ports for a in addresses(n)]
        for what, values in (('name', names), ('ip', ips)):
            twice = {v for v in values if values.count(v) > 1}
            if twice:
                raise LabError(f'{what}: {twice.pop()} is used twice')
        self.switch = {s['name']: s for s in self.switches}
        roots = [s for s in self.switches if not s.get('parent')]
        if len(roots) != 1:
            raise LabError(f'switches.parent: {len(roots)} switches have none, must be exactly one')
        for s in self.switches:
            seen, at = set(), s
            while at.get('parent'):
                if at['name'] in seen or at['parent'] not in self.switch:
                    raise LabError(f"switches.{s['name']}.parent: {at['parent']!r} leads nowhere")
                seen.add(at['name'])
                at = self.switch[at['parent']]
        for h in self.hosts:
            if h.get('switch') not in self.switch:
                raise LabError(f"hosts.{h['name']}.switch: {h.get('switch')!r} is no switch")
            if h.setdefault('nic', 'incline') not in self.NICS:
                raise LabError(f"hosts.{h['name']}.nic: {h['nic']!r} is none of {', '.join(self.NICS)}")
        self.guests = [h for h in self.hosts if h['nic'] == 'soft-roce']
        if self.guests and len(self.guests) < len(self.hosts) and self.hosts[0] in self.guests:
            raise LabError('hosts: where only some have soft-roce, the first must not: the others meet there')

    def path(self, switch):
        """Names from a switch up to the root."""
        names = [switch]
        while self.switch[names[-1]].get('parent'):
            names.append(self.switch[names[-1]]['parent'])
        return names

    def children(self, switch):
        """(name, is host) of everything below a switch, in the file's order."""
        return [(s['name'], False) for s in self.switches if s.get('parent') == switch] + \
            [(h['name'], True) for h in self.hosts if h['switch'] == switch]

    def below(self, switch):
        """Names of everything below a switch that is wired to it: as children, with every port of a host."""
        return [s['name'] for s in self.switches if s.get('parent') == switch] + \
            [p['name'] for p in self.ports if p['switch'] == switch]

    # What a lab asks of any kind of fabric (incline_planes.py has the other):

    def switch_config(self, folder, name, impair=None):
        return switch_config(self, folder, name, impair)

    def devices(self, folder, host, netns=False):
        """(name, configuration) of a host's RNICs: one for each of its ports."""
        return [(p['name'], rnic_config(self, folder, p, netns)) for p in self.ports_of_host(host['name'])]

    def group_config(self, folder, name, bootstrap, reproducible, key='ip'):
        return group_config(self, folder, name, bootstrap, reproducible, key)

    def paths(self, host):
        """What a host knows of paths: here there is one to everything; None."""


class Folder:
    """Where a fabric's files are."""
    def __init__(self, directory):
        self.dir = directory

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def link_socket(self, upper, lower):
        return self.path(f'{upper}-{lower}.sock')

    def control_socket(self, switch):
        return self.path(f'{switch}.ctl')


def port_mac(switch, port):
    """Of a switch's port, both by number."""
    return f'02:00:01:{switch:02x}:{port >> 8:02x}:{port & 255:02x}'


def ports_of(topo, name):
    """Port names of a switch in order: one per child, named for it, then the one to the parent."""
    return topo.below(name) + (['up'] if topo.switch[name].get('parent') else [])


def mac_toward(topo, name, port):
    """The MAC at the other end of a switch's port."""
    index = {s['name']: i for i, s in enumerate(topo.switches)}
    parent = topo.switch[name].get('parent')
    if port == 'up':
        return port_mac(index[parent], ports_of(topo, parent).index(name))
    for p in topo.ports:
        if p['name'] == port:
            return p['mac']
    return port_mac(index[port], ports_of(topo, port).index('up'))


def switch_ports(topo, folder, name, impair):
    index = [s['name'] for s in topo.switches].index(name)
    ports = []
    for i, port in enumerate(ports_of(topo, name)):
        up = port == 'up'
        link = (topo.switch[name]['parent'], name) if up else (name, port)
        config = {'name': port, 'mtu': topo.mtu, 'mac': port_mac(index, i), 'socket': folder.link_socket(*link)}
        config.update({'bridge': [0]} if topo.bridge else {'proxy_arp': True})
        if any(h['name'] == port for h in topo.guests):
            config.update({'type': 'vhost'})
        else:
            config.update({'type': 'memif', 'role': 'client' if up else 'server'})
        if topo.multicast and any(h['name'] == port for h in topo.ports):
            config['mcast_learn'] = True
        if impair:
            config['impair'] = {**impair, 'seed': impair.get('seed', 1) + 100 * index + i}
        ports.append(config)
    return ports


def switch_tables(topo, name):
    """Neighbours are what the switch is wired to; to everything else there is a route over one of them."""
    parent = topo.switch[name].get('parent')
    neigh, route4, route6 = [], [], []

    def neighbour(ip, port):
        neigh.append({'key': {'ip': ip}, 'action': 'rewrite',
                      'data': {'port': port, 'mac': mac_toward(topo, name, port)}})

    def route(ip, via):
        table, bits = (route6, 128) if ':' in ip else (route4, 32)
        table.append({'key': {'dst': f'{ip}/{bits}'}, 'action': 'via', 'data': {'nexthop': via}})

    for child in topo.below(name):
        for ip in addresses(next(n for n in topo.ports + topo.switches if n['name'] == child)):
            neighbour(ip, child)
    for ip in addresses(topo.switch[parent]) if parent else ():
        neighbour(ip, 'up')
    near = {e['key']['ip'] for e in neigh}
    for node in topo.ports + topo.switches:
        if node['ip'] in near or node['name'] == name:
            continue
        above = topo.path(node.get('switch') or node['name'])
        down = name in above and above.index(name) > 0
        via = above[above.index(name) - 1] if down else parent
        for ip, nexthop in zip(addresses(node), addresses(topo.switch[via])) if via else ():
            route(ip, nexthop)
    tables = {'neigh': neigh}
    # Members among hosts are learnt; between switches a group's packets go everywhere.
    links = [p for p in ports_of(topo, name) if p == 'up' or p in topo.switch]
    if topo.multicast and links:
        tables['mcast_group'] = [{'key': {'group': g, 'port': p}, 'action': 'member'}
                                 for g in topo.multicast for p in links]
    if route4:
        tables['route4'] = route4
    if route6:
        tables['route6'] = route6
    return tables


def switch_config(topo, folder, name, impair=None):
    config = {'name': name, 'addresses': addresses(topo.switch[name]), 'ports': switch_ports(topo, folder, name, impair),
              'idle': 'sleep', 'arena_kb': 16384, 'control': folder.control_socket(name), 'tables': switch_tables(topo, name)}
    if 'workers' in topo.switch[name]:
        config['workers'] = topo.switch[name]['workers']  # the switch says what it may be
    if topo.guests:
        config['control_tcp'] = '127.0.0.1:0'
    return config


def rnic_config(topo, folder, port, netns=False):
    """Of one of topo.ports. netns: its host has a network namespace, with an interface on its first port."""
    config = {'mac': port['mac'], 'ip': addresses(port), 'mtu': topo.mtu, 'idle': 'sleep',
              'port': {'name': port['name'], 'type': 'memif', 'role': 'client', 'mtu': topo.mtu,
                       'socket': folder.link_socket(port['switch'], port['name'])}}
    if port.get('transport', 'roce') != 'roce':
        config['transport'] = port['transport']
    if netns and port['name'] == port['host']:
        config['netdev'] = {'name': incline_netns.INTERFACE, 'prefix4': incline_netns.PREFIX4,
                            'prefix6': incline_netns.PREFIX6}
    return config


def group_config(topo, folder, name, bootstrap, reproducible, key='ip'):
    """key: ip or ip6, which of the nodes' addresses the group uses. bootstrap: where rank 0 listens."""
    rank = {h['name']: i for i, h in enumerate(topo.hosts)}
    flags = {'reproducible': reproducible}
    switches = []
    for s in topo.switches:
        row = {'name': s['name'], 'socket': folder.control_socket(s['name']), 'ip': s[key],
               'parent': s.get('parent'),
               'children': [{'rank': rank[c], 'port': c} if host else {'switch': c, 'port': c}
                            for c, host in topo.children(s['name'])]}
        if s.get('parent'):
            row['parent_port'] = 'up'
        switches.append(row)
    return {'name': name, 'bootstrap': bootstrap, 'mtu': 4096, 'M': 4,
            'W': 16, 'timeout_ms': 10000, 'flags': flags,
            'ranks': [{'ip': h[key]} for h in topo.hosts], 'switches': switches}
