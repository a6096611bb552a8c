# SPDX-License-Identifier: BSD-3-Clause
"""What a page of a fabric is about, on paper: its nodes by tier, the links between their ports, and at which sockets its
switches and its manager answer. Of a lab (incline_lab.py) or of a manager's configuration."""
import json
import os

from incline_fabric import LabError, addresses
from incline_planes import Planes, T1, topology

MOST_SWITCHES = 128  # each is asked in a thread of its own


class Wiring:
    """nodes: {name, kind, tier (0: the top), ips}; links: {a, a_port, b, b_port}, a the upper one; sockets: {switch: path}."""

    def __init__(self, name, nodes, links, sockets, manager=None):
        if len(sockets) > MOST_SWITCHES:
            raise LabError(f'{len(sockets)} switches: a page shows at most {MOST_SWITCHES}')
        self.name, self.nodes, self.links, self.sockets, self.manager = name, nodes, links, sockets, manager
        self.node = {n['name']: n for n in nodes}
        self.at_ip = {ip: n['name'] for n in nodes for ip in n['ips']}
        self.at_port = {}  # (switch, port): (number of the link, node at the other end)
        for i, link in enumerate(links):
            self.at_port[link['a'], link['a_port']] = i, link['b']
            self.at_port[link['b'], link['b_port']] = i, link['a']

    def between(self, switch, node):
        """The number of a link between the two, or None."""
        return next((i for i, k in enumerate(self.links) if {k['a'], k['b']} == {switch, node}), None)


def node(name, kind, tier, ips):
    return {'name': name, 'kind': kind, 'tier': tier, 'ips': ips}


def of_topology(topo, folder, manager=None):
    if isinstance(topo, Planes):
        tiers = {s['name']: 0 if s['role'] == T1 else 1 for s in topo.switches}
        links = [{'a': far, 'a_port': f"t0-{s['index']}", 'b': s['name'], 'b_port': port} if far in topo.switch else
                 {'a': s['name'], 'a_port': port, 'b': port, 'b_port': far}
                 for s in topo.switches if s['role'] != T1 for port, far in topo.links(s['name'])]
    else:
        host = {p['name']: p['host'] for p in topo.ports}
        tiers = {s['name']: len(topo.path(s['name'])) - 1 for s in topo.switches}
        links = [{'a': s['name'], 'a_port': port, 'b': host.get(port, port), 'b_port': port if port in host else 'up'}
                 for s in topo.switches for port in topo.below(s['name'])]
    nodes = [node(s['name'], 'switch', tiers[s['name']], addresses(s)) for s in topo.switches]
    for h in topo.hosts:
        ips = [a for p in topo.ports_of_host(h['name']) for a in addresses(p)]
        nodes.append(node(h['name'], 'host', max(tiers.values()) + 1, list(dict.fromkeys(addresses(h) + ips))))
    return Wiring(topo.name, nodes, links, {s['name']: folder.control_socket(s['name']) for s in topo.switches}, manager)


def unix_path(socket):
    """None if it is none."""
    return None if socket.startswith('tcp:') else socket.removeprefix('unix:')


def heights(hosts, links):
    """{switch: links down to the next host}, as far as any is below or beside it."""
    height, near, distance = {}, set(hosts), 1
    while near:
        near = {end for k in links for end, other in ((k['a'], k['b']), (k['b'], k['a']))
                if other in near and end not in height and end not in hosts}
        height.update(dict.fromkeys(near, distance))
        distance += 1
    return height


def check(doc):
    """What cannot be drawn; the manager's words for a link."""
    names = {n['name'] for n in doc['switches'] + doc['hosts']}
    if not doc['switches']:
        raise LabError('switches: has none')
    for i, k in enumerate(doc['links']):
        for end in 'a', 'b':
            if k[end] not in names:
                raise LabError(f'links[{i}].{end}: {k[end]} is neither a switch nor a host')


def of_file(path):
    try:
        with open(path) as f:
            return of_manager(json.load(f))
    except (ValueError, LabError) as e:
        raise LabError(f'{path}: {e}') from None


def of_manager(doc, name='fabric'):
    """Of the configuration of incline-manager."""
    try:
        check(doc)
        hosts = {h['name'] for h in doc['hosts']}
        height = heights(hosts, doc['links'])
        top = max(height.values(), default=1)
        nodes = [node(s['name'], 'switch', top - height.get(s['name'], top), [s['ip']]) for s in doc['switches']]
        nodes += [node(h['name'], 'host', top, [h['ip']]) for h in doc['hosts']]
        links = []
        for k in doc['links']:
            a, b = (k['a'], k['a_port']), (k['b'], k.get('b_port', 'nic'))
            if k['b'] not in hosts and height.get(k['b'], 0) > height.get(k['a'], 0):
                a, b = b, a
            links.append({'a': a[0], 'a_port': a[1], 'b': b[0], 'b_port': b[1]})
        sockets = {s['name']: unix_path(s['control']) for s in doc['switches']}
        return Wiring(name, nodes, links, sockets, unix_path(doc.get('listen', '/run/incline/manager.sock')))
    except (KeyError, TypeError, AttributeError) as e:
        raise LabError('no configuration of incline-manager: ' + (f'{e} is missing' if isinstance(e, KeyError) else str(e))) from None


def of_lab(lab):
    """Of what is up: a topology file, or a fabric with a manager that finds the trees."""
    state = lab.state()
    if os.path.exists(lab.path('topology.json')):
        return of_topology(topology(lab.topology_doc()), lab)
    with open(lab.path('manager.json')) as f:
        return of_manager(json.load(f), state['name'])
