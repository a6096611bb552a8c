#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A fabric of planes for test_planes: its switches' configurations with ring ports, what is at the other end of each, and the
hosts' files of paths. planes.py FABRIC.json"""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../tools'))
from incline_fabric import Folder  # noqa: E402
from incline_planes import topology  # noqa: E402

with open(sys.argv[1]) as f:
    topo = topology(json.load(f))
switches, far = [], {}
for s in topo.switches:
    config = topo.switch_config(Folder('/x'), s['name'])
    del config['control']
    config['memory_mb'] = 256
    for port in config['ports']:
        for key in 'role', 'socket':
            del port[key]
        port['type'] = 'ring'
    far[s['name']] = {port: name for port, name in topo.links(s['name'])}
    switches.append(config)
hosts = [{**p, 'paths': topo.paths(next(h for h in topo.hosts if h['name'] == p['host'])), 'nic': next(
    h['ip'] for h in topo.hosts if h['name'] == p['host'])} for p in topo.ports]
json.dump({'switches': switches, 'far': far, 'hosts': hosts}, sys.stdout, indent=1)
