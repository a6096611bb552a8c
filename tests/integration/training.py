#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trainings by incline-train as processes, every mode: both networks, their gradients by AllReduce or their weights in
shards, sums in fixed point, so that the weights have to be the same bits in all modes. Prints what docs/training.md has."""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
from fabric_case import Fabric, TOP, app, run_tests  # noqa: E402

MODES = 'I', 'II', 'III', 'netreduce', 'ring'


def start(case, group, *args, ranks=4):
    return [case.start(f'h{r}', [app('incline-train'), '--group', group, '--rank', str(r), '--timeout', '20000',
                                 '--data', os.path.join(TOP, 'tests/data/digits.csv.gz'), *args]) for r in range(ranks)]


def training(case, group, *args):
    """What rank 0 reports."""
    out = os.path.join(case.dir, 'train.out')
    case.all_ok(start(case, group, *args, '--json', out), 120)
    with open(out) as f:
        report = json.load(f)['training']
    os.remove(out)
    return report


class Training(Fabric):
    epochs = '5'

    def bytes(self):
        """Of h0's port, both ways."""
        port = next(p for p in self.rpc('s0', 'port.list')['result']['ports'] if p['name'] == 'h0')
        return port['rx_bytes'] + port['tx_bytes']

    def one(self, mode, model, *how):
        before = self.bytes()
        group = self.variant(mode=mode, fallback=False, kind='auto' if mode in ('netreduce', 'ring') else 'mixed')
        t = training(self, group, '--model', model, '--fixed', '--epochs', self.epochs, *how)
        os.remove(group)
        self.assertEqual((t['model'], t['sharded'], t['verified'], t['ranks_agree'], t['max_weight_diff']),
                         (model, '--shard' in how, True, True, 0))
        print(f"{model:4} {mode:10} {'shards' if how else '':7} {t['step_us']:8.0f} {t['network_us']:8.0f} "
              f"{(self.bytes() - before) / t['steps'] / 1e3:8.1f}", flush=True)
        return t

    def test_all_modes(self):
        print(f"\n{'':23} {'us/step':>8} {'network':>8} {'h0, KB':>8}")
        for model in 'mlp', 'cnn':
            found = [self.one(mode, model, *how) for how in ((), ('--shard',)) for mode in MODES
                     if not (how and mode == 'netreduce')]
            self.assertEqual(len({t['weights_crc32'] for t in found}), 1, found)
            self.assertGreater(found[0]['accuracy'], 0.85)

    def test_who_cannot_is_told(self):
        group = self.variant(mode='netreduce', fallback=False)
        for rc, _, err in self.finish(start(self, group, '--shard'), 60):
            self.assertEqual(rc, 1)
            self.assertIn('--shard needs reduce_scatter and allgather, which this group does not do', err)
        os.remove(group)


if __name__ == '__main__':
    run_tests(verbosity=2)
