#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schemas of our files: schemas.py SCHEMA... (switch.json, rnic.json, group.json, manager.json). What is shipped, and what our
page of group files has, is valid; the same changed in one place to what no program takes is not."""
import copy
import glob
import json
import os
import sys
import unittest

import jsonschema

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SCHEMAS = {}


def load(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as f:
        return json.load(f)


def shipped(kind):
    for path in sorted(glob.glob(os.path.join(TOP, 'pmd-configs', '*.json'))) + [os.path.join(TOP, 'deploy/switch.json')]:
        if os.path.basename(path).startswith('rnic-') == (kind == 'rnic'):
            yield path, load(path)


def group():
    """The example of docs/group-file.md."""
    with open(os.path.join(TOP, 'docs/group-file.md'), encoding='utf-8') as f:
        return json.loads(f.read().split('```json\n')[1].split('```')[0])


def errors(kind, document):
    return [e.message for e in SCHEMAS[kind].iter_errors(document)]


# A place in a file, what it is changed to; None: taken out.
BAD = {'switch': [(('nmae',), 'x'), (('name',), 7), (('name',), ''), (('ports',), None), (('ports',), []), (('ports', 0, 'type'), 'tup'),
                  (('ports', 0, 'type'), None), (('ports', 0, 'mtu'), 1), (('ports', 0, 'socket'), None), (('ports', 0, 'iface'), 'x'),
                  (('ports', 0, 'queue'), {'depth': 1}), (('idle',), 'doze'), (('workers',), 'many'), (('workers',), 17)],
       'rnic': [(('nmae',), 'x'), (('mtu',), 9601), (('port', 'type'), 'tup'), (('ip',), 'x'), (('ip',), ['10.0.0.1'] * 8),
                (('neighbors',), [{'ip': '10.0.0.1'}]), (('congestion',), {'cnp_dscp': 64})],
       'group': [(('nmae',), 'x'), (('ranks',), None), (('ranks',), []), (('mode',), 'IV'), (('W',), 0), (('resume',), 'yes'),
                 (('switches', 0, 'children', 0, 'port'), None), (('switches', 0, 'parent'), 7), (('multicast',), {})]}


def changed(document, place, value):
    out = copy.deepcopy(document)
    at = out
    *way, last = place
    for step in way:
        at = at[step]
    if value is None:
        at.pop(last, None)
    else:
        at[last] = value
    return out


class Schemas(unittest.TestCase):
    def test_they_are_schemas(self):
        self.assertEqual(set(SCHEMAS), {'switch', 'rnic', 'group', 'manager'})
        for validator in SCHEMAS.values():
            jsonschema.Draft202012Validator.check_schema(validator.schema)

    def test_what_is_shipped_is_valid(self):
        for kind in 'switch', 'rnic':
            files = list(shipped(kind))
            self.assertGreater(len(files), 3)
            for path, document in files:
                with self.subTest(path):
                    self.assertEqual(errors(kind, document), [])
        self.assertEqual(errors('group', group()), [])
        self.assertEqual(errors('manager', load('deploy/manager.json')), [])

    def test_one_mistake_is_seen(self):
        documents = {'switch': load('deploy/switch.json'), 'rnic': load('pmd-configs/rnic-memif.json'), 'group': group()}
        for kind, document in documents.items():
            for place, value in BAD[kind]:
                with self.subTest(kind=kind, place=place, value=value):
                    self.assertTrue(errors(kind, changed(document, place, value)))

    def test_a_type_goes_before_what_ports_have_in_common(self):
        document = load('deploy/switch.json')
        document['ports'] = [{'name': 't', 'type': 'tap', 'iface': 'i', 'mtu': 1500}]
        self.assertEqual(errors('switch', document), [])
        document['ports'][0]['mtu'] = 1501
        self.assertTrue(errors('switch', document))

    def test_defaults_are_of_their_type(self):
        def walk(schema):
            if isinstance(schema, dict):
                if isinstance(schema.get('default'), (str, int, float)) and 'description' in schema:
                    jsonschema.Draft202012Validator(schema).validate(schema['default'])
                for value in schema.values():
                    walk(value)
            elif isinstance(schema, list):
                for value in schema:
                    walk(value)
        for validator in SCHEMAS.values():
            walk(validator.schema)


if __name__ == '__main__':
    for schema_file in sys.argv[1:]:
        name = os.path.splitext(os.path.basename(schema_file))[0]
        SCHEMAS[name] = jsonschema.Draft202012Validator(load(os.path.abspath(schema_file)))
    unittest.main(argv=sys.argv[:1])
