#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What incline-sim writes: outputs.py INCLINE_SIM. Captures as tshark reads them, series, pictures."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SCENARIO = os.path.join(TOP, 'tools', 'scenarios', 'trace.json')
with open(SCENARIO, encoding='utf-8') as scenario:
    RATE_GBPS = json.load(scenario)['link']['mbps'] / 1000


def curves(sim_json, svg, *options):
    subprocess.run([os.path.join(TOP, 'tools', 'plot'), *options, sim_json, svg], check=True)
    root = ET.parse(svg).getroot()
    texts = root.findall('{http://www.w3.org/2000/svg}text')
    ticks = [float(t.text) for t in texts if t.get('text-anchor') == 'end']
    assert ticks[0] == 0 and len(ticks) > 2, ticks
    assert f'{ticks[1]:.2e}'[:4] in ('1.00', '2.00', '2.50', '5.00'), ticks  # people count in these
    if options:
        assert 'virtual us' in [t.text for t in texts]
    return root.findall('{http://www.w3.org/2000/svg}polyline')


def check_figure(out, svg):
    """A figure whose curves have long names, most of which they share; with least and most."""
    names = [f'cubic rto_min {ms} ms, and what else there is to say' for ms in (200, 5)]
    rows = [{'at': at, 'solution': name, 'ours': ours, 'paper': None, 'least': ours - 1, 'most': ours + 15}
            for name in names for at, ours in (('0 %', 90), ('1 %', 45))]
    with open(out, 'w') as f:
        json.dump({'figure': 13, 'title': 'drops', 'unit': 'Gb/s', 'rows': rows}, f)
    assert len(curves(out, svg)) == 2
    root = ET.parse(svg).getroot()
    texts = root.findall('{http://www.w3.org/2000/svg}text')
    assert 'Figure 13: drops (Gb/s)' in [t.text for t in texts]
    legend = [t for t in texts if (t.text or '').startswith('cubic')]
    assert [t.text for t in legend] == [f'{name}, ours' for name in names]
    for t in legend:  # twelve points high, a letter is some six wide
        assert float(t.get('x')) + 6.5 * len(t.text) < float(root.get('width')), t.text
    bars = [p.get('d') for p in root.findall('{http://www.w3.org/2000/svg}path') if 'V' in p.get('d')]
    assert len(bars) == len(rows) and len(set(bars)) == 2, bars
    assert all(float(bar.split('V')[1]) > 0 for bar in bars)  # the most is in the picture


def check_series(doc):
    series = doc['series']
    samples = len(series['at_ns'])
    assert samples > 3 and series['every_ns'] == 100000
    assert set(series['links']) == set(doc['links'])
    for name, values in series['links'].items():
        assert len(values) == samples
        assert sum(values) == doc['links'][name]['bytes'], name
        # No more than the rate, but for times in whole nanoseconds.
        assert max(values[:-1]) * 8 <= series['every_ns'] * RATE_GBPS * 1.02, (name, max(values))
    assert [sum(f['bytes']) for f in series['flows']] == [400000, 400000, 200000, 1000000]
    late = series['flows'][3]['bytes']
    assert late[0] == late[1] == 0  # it begins after 300 us


def check_capture(doc, path):
    fields = ['frame.interface_name', 'frame.time_epoch', 'frame.len']
    out = subprocess.run(['tshark', '-r', path, '-T', 'fields', *[a for f in fields for a in ('-e', f)]],
                         check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [line.split('\t') for line in out]
    assert len(rows) == doc['hops'], (len(rows), doc['hops'])
    frames = {}
    for name, _, _ in rows:
        frames[name] = frames.get(name, 0) + 1
    assert frames == {name: link['frames'] for name, link in doc['links'].items()}
    assert rows[0][1].startswith('0.001000000')  # virtual time begins at a millisecond
    ns = [int(row[1].replace('.', '')[:10]) for row in rows]
    assert ns == sorted(ns) and any(t % 1000 for t in ns)


def capture():
    if not shutil.which('tshark'):
        print('tshark is not installed (tools/setup --interop)')
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        out, pcap = os.path.join(tmp, 'o.json'), os.path.join(tmp, 'o.pcapng')
        subprocess.run([sys.argv[1], 'run', SCENARIO, '--json', out, '--pcap', pcap], check=True, stdout=subprocess.DEVNULL)
        with open(out) as f:
            check_capture(json.load(f), pcap)
    return 0


def main():
    with tempfile.TemporaryDirectory() as tmp:
        out, svg = (os.path.join(tmp, name) for name in ('o.json', 'o.svg'))
        subprocess.run([sys.argv[1], 'run', SCENARIO, '--series', '100', '--json', out],
                       check=True, stdout=subprocess.DEVNULL)
        with open(out) as f:
            doc = json.load(f)
        check_series(doc)
        assert doc['links']['s0>h0']['trimmed'] > 0
        assert len(curves(out, svg, '--links')) == 5
        assert len(curves(out, svg, '--flows')) == 4
        assert len(curves(out, svg)) == 1
        subprocess.run([sys.argv[1], 'epic-table', '25', '--max-bytes', '16384', '--json', out],
                       check=True, stdout=subprocess.DEVNULL)
        assert len(curves(out, svg)) == 6
        check_figure(out, svg)
        foreign = 'is not of incline-sim'
        for text, why in (('', 'Expecting value'), ('{"matrix": []}', foreign), ('[]', foreign),
                          ('{"machine": {}, "rows": [{"bytes": 4096}]}', foreign),  # incline-perf, tools/bench
                          ('{"topology": "t", "runs": [{"bytes": 4096}]}', foreign)):
            with open(out, 'w') as f:
                f.write(text)
            p = subprocess.run([os.path.join(TOP, 'tools', 'plot'), out, svg], capture_output=True, text=True)
            assert p.returncode == 1 and p.stderr.startswith(f'plot: {out}: {why}'), p.stderr
        with open(out, 'w') as f:
            json.dump(doc, f)
        p = subprocess.run([os.path.join(TOP, 'tools', 'plot'), out, os.path.join(tmp, 'no', 'o.svg')],
                           capture_output=True, text=True)
        assert p.returncode == 1 and p.stderr.startswith('plot: [Errno 2]'), p.stderr
    return 0


if __name__ == '__main__':
    sys.exit(capture() if sys.argv[2:] == ['capture'] else main())
