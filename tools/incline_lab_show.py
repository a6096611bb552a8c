# SPDX-License-Identifier: BSD-3-Clause
"""Topologies as text: what tools/lab list and graph print."""
import json
import os

from incline_fabric import addresses
from incline_planes import Planes, topology

FABRICS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'fabrics')


def list_fabrics(folder=FABRICS):
    """A line for each topology file of a folder: what it is, and what it says of itself."""
    rows = []
    for file in sorted(os.listdir(folder)):
        if file.endswith('.json'):
            path = os.path.join(folder, file)
            with open(path) as f:
                doc = json.load(f)
            topo = topology(doc)
            rows.append((os.path.relpath(path), f'{len(topo.switches)} switches, {len(topo.hosts)} hosts', doc.get('#', '')))
    widths = [max(len(r[i]) for r in rows) for i in (0, 1)] if rows else []
    return [f'{r[0]:{widths[0]}}  {r[1]:{widths[1]}}  {r[2]}'.rstrip() for r in rows]


def label(node, states):
    words = [node['name'], *addresses(node)]
    if node.get('nic', 'incline') != 'incline':
        words.append(node['nic'])
    if node['name'] in states:
        words.append(f"({states[node['name']]})")
    return ' '.join(words)


def below(topo, switch, indent, states):
    children, lines = topo.children(switch), []
    nodes = {n['name']: n for n in topo.switches + topo.hosts}
    for i, (name, is_host) in enumerate(children):
        last = i == len(children) - 1
        lines.append(indent + ('`-- ' if last else '|-- ') + label(nodes[name], states))
        if not is_host:
            lines += below(topo, name, indent + ('    ' if last else '|   '), states)
    return lines


def plane(topo, number, states):
    """Every T0 has a link to every T1 of its plane."""
    t1 = [topo.t(number, 1, i) for i in range(topo.n_t1)]
    lines = [f'plane {number}'] + ['|-- ' + label(s, states) for s in t1]
    for i in range(topo.n_t0):
        t0, last = topo.t(number, 0, i), i == topo.n_t0 - 1
        lines.append(('`-- ' if last else '|-- ') + label(t0, states))
        hosts = [p for p in topo.ports if p['switch'] == t0['name']]
        lines += [('    ' if last else '|   ') + ('`-- ' if p is hosts[-1] else '|-- ') + label(p, states) for p in hosts]
    return lines


def graph(topo, states):
    """Lines of a picture. states: of nodes, by name, {} if nothing is up."""
    if isinstance(topo, Planes):
        return [line for p in topo.planes for line in plane(topo, p, states)]
    root = next(s for s in topo.switches if not s.get('parent'))
    return [label(root, states), *below(topo, root['name'], '', states)]
