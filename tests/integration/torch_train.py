#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Backend "incline" of torch.distributed on four hosts of tools/lab: every call; DistributedDataParallel, and training with
parameters in shards (reduce_scatter and all_gather, as FSDP does), beside gloo and beside one process that adds in the switch's
order; the commands of docs/python.md. Of tools/test --long, which installs python3-torch. Exit 77 without it."""
import os
import re
import subprocess
import sys
import tempfile
import warnings

sys.dont_write_bytecode = True
PATIENCE = 300  # seconds: hangs only
STEPS = 30
BATCH = 16


def exact_calls(torch, dist, rank, n):
    """Every call that CommLib takes, on numbers that are exact in any order; then what gloo does."""
    for dtype in 'float32 float64 float16 bfloat16 int8 uint8 int32 int64'.split():
        dtype = getattr(torch, dtype)
        data = [torch.randint(0, 4, (n * 50,), generator=torch.Generator().manual_seed(r)).to(dtype) for r in range(n)]
        total, mine = sum(data[1:], data[0]), data[rank]
        t = mine.clone()
        work = dist.all_reduce(t, async_op=True)
        assert work.wait() and work.is_completed() and work.is_success() and torch.equal(t, total), ('all_reduce', dtype)
        t = mine.clone()
        dist.all_reduce(t, dist.ReduceOp.MAX)
        assert torch.equal(t, torch.stack(data).max(0).values), ('all_reduce max', dtype)
        t = mine.clone()
        dist.reduce(t, 2)
        assert rank != 2 or torch.equal(t, total), ('reduce', dtype)
        t = mine.clone()
        dist.broadcast(t, 3)
        assert torch.equal(t, data[3]), ('broadcast', dtype)
        out = torch.empty(n, n * 50, dtype=dtype)
        dist.all_gather_into_tensor(out, mine)
        assert torch.equal(out, torch.stack(data)), ('all_gather_into_tensor', dtype)
        parts = [torch.empty_like(mine) for _ in data]
        dist.all_gather(parts, mine)
        assert all(map(torch.equal, parts, data)), ('all_gather', dtype)
        out = torch.empty(50, dtype=dtype)
        dist.reduce_scatter_tensor(out, mine)
        assert torch.equal(out, total[rank * 50:][:50]), ('reduce_scatter_tensor', dtype)
        out.zero_()
        dist.reduce_scatter(out, list(mine.chunk(n)))
        assert torch.equal(out, total[rank * 50:][:50]), ('reduce_scatter', dtype)
    dist.barrier()
    objects = [None] * n
    dist.all_gather_object(objects, {'rank': rank})
    assert objects == [{'rank': r} for r in range(n)]
    called_by_cpp(torch, dist, rank)
    for wrong in torch.zeros(4, 4).t(), torch.zeros(4).to_sparse():
        try:
            dist.all_reduce(wrong)
            raise AssertionError('taken')
        except ValueError as e:
            assert str(e).startswith(('tensor: is not contiguous (strides (1, 4) of shape (4, 4))', 'tensor: is not dense')), e


def called_by_cpp(torch, dist, rank):
    """It makes a call for each tensor, two at a time, and waits for the first when that has long ended."""
    group, many = dist.distributed_c10d._get_default_group(), [torch.full((100,), float(i + rank)) for i in range(20)]

    def late(*arguments):
        work = type(group).broadcast(group, *arguments)
        work.wait()
        return work
    group.broadcast = late
    dist._broadcast_coalesced(group, many, 400, 1)
    del group.broadcast
    assert all((t == i + 1).all() for i, t in enumerate(many)), 'broadcast_coalesced'


def others_calls(torch, dist, rank, n):
    """By gloo: a group of two ranks, messages, an operation that CommLib has not."""
    pair = dist.new_group([0, 1])
    t = torch.tensor([rank])
    if rank < 2:
        dist.all_reduce(t, group=pair)
        assert t.item() == 1
    everybody = dist.new_group()
    t = torch.tensor([rank])
    dist.all_reduce(t, group=everybody)
    assert t.item() == n * (n - 1) // 2
    if rank == 0:
        dist.send(torch.tensor([7]), 1)
    elif rank == 1:
        dist.recv(t, 0)
        assert t.item() == 7
    t = torch.tensor([1 << rank])
    dist.all_reduce(t, dist.ReduceOp.BOR)
    assert t.item() == (1 << n) - 1


def network(torch, seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))


def batch(torch, rank, step):
    g = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(BATCH, 64, generator=g), torch.randint(0, 10, (BATCH,), generator=g)


def gradients(torch, model, rank, step):
    """Forward and backward of one rank's batch."""
    model.zero_grad()
    x, y = batch(torch, rank, step)
    torch.nn.functional.cross_entropy(model(x), y).backward()


def flat(torch, tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def ddp(torch, group=None):
    """Weights after STEPS steps of DistributedDataParallel, in several buckets."""
    rank = torch.distributed.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(network(torch, 1 + rank), process_group=group, bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        gradients(torch, model, rank, step)
        optimizer.step()
    return flat(torch, model.parameters())


def one_process(torch, n, order):
    """The same in one process; order(gradients of all ranks) adds them."""
    model = network(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(STEPS):
        given = []
        for rank in range(n):
            gradients(torch, model, rank, step)
            given.append(flat(torch, (p.grad for p in model.parameters())) / n)
        total, at = order(given), 0
        for p in model.parameters():
            p.grad.copy_(total[at:at + p.numel()].view_as(p))
            at += p.numel()
        optimizer.step()
    return flat(torch, model.parameters())


def in_shards(torch, gather, reduce_scatter, rank, n):
    """Each rank keeps a part of the weights, and of the optimizer's state: gathered before, gradients scattered after."""
    model = network(torch)
    whole = flat(torch, model.parameters())
    size, part = whole.numel(), -(-whole.numel() // n)
    whole = torch.nn.functional.pad(whole, (0, part * n - size))
    own = torch.nn.Parameter(whole[rank * part:][:part].clone())
    optimizer = torch.optim.SGD([own], lr=0.05, momentum=0.9)
    for step in range(STEPS):
        gather(whole, own.detach())
        torch.nn.utils.vector_to_parameters(whole[:size], model.parameters())
        gradients(torch, model, rank, step)
        grad = torch.nn.functional.pad(flat(torch, (p.grad for p in model.parameters())), (0, part * n - size))
        own.grad = torch.empty_like(own)
        reduce_scatter(own.grad, grad / n)
        optimizer.step()
    gather(whole, own.detach())
    return whole[:size].clone()


def ascending(given):
    """As a switch with reproducible sums adds."""
    total = given[0].clone()
    for g in given[1:]:
        total += g
    return total


def own_last(torch):
    """As the ranks do who get a block each: the switch's sum of all others, and their own."""
    def add(given):
        n, size = len(given), given[0].numel()
        part = -(-size // n)
        blocks = []
        for root in range(n):
            others = [g[root * part:][:part] for r, g in enumerate(given) if r != root]
            blocks.append(ascending(others) + given[root][root * part:][:part])
        return torch.cat(blocks)
    return add


def main():
    import torch
    import torch.distributed as dist

    import incline
    import incline.torch
    warnings.simplefilter('error', ResourceWarning)
    torch.set_num_threads(1)
    dist.init_process_group('incline')
    rank, n = dist.get_rank(), dist.get_world_size()
    assert dist.get_backend() == 'incline'
    exact_calls(torch, dist, rank, n)
    here, elsewhere = incline.torch.calls()
    assert not elsewhere and sum(here.values()) > 60, (here, elsewhere)
    others_calls(torch, dist, rank, n)
    gloo = dist.new_group(backend='gloo')

    def gloo_scatter(out, whole):  # of torch 1.13 gloo has no reduce_scatter
        whole = whole.clone()
        dist.all_reduce(whole, group=gloo)
        out.copy_(whole[rank * out.numel():][:out.numel()])

    def gloo_gather(whole, own):
        dist.all_gather(list(whole.chunk(n)), own, group=gloo)
    before = incline.torch.calls()[1]
    got = {'ddp': ddp(torch), 'shards': in_shards(torch, dist.all_gather_into_tensor, dist.reduce_scatter_tensor, rank, n)}
    assert incline.torch.calls()[1] == before, 'training went elsewhere'
    beside = {'ddp': ddp(torch, gloo), 'shards': in_shards(torch, gloo_gather, gloo_scatter, rank, n)}
    alone = {'ddp': one_process(torch, n, ascending), 'shards': one_process(torch, n, own_last(torch))}
    for name, weights in got.items():
        every = torch.empty(n, weights.numel())
        dist.all_gather_into_tensor(every, weights)
        assert all(torch.equal(w, weights) for w in every), f'{name}: ranks differ'
        assert (weights - flat(torch, network(torch).parameters())).abs().max() > 0.01, f'{name}: nothing was learnt'
        differs = (weights - alone[name]).abs().max().item()
        assert differs == 0, f'{name}: differs by {differs} from one process'
        off = ((weights - beside[name]).abs().max() / weights.abs().max()).item()
        assert off < 1e-5, f'{name}: differs by {off} of the largest weight from gloo'
        if rank == 0:
            print(f'{name}: {weights.numel()} weights after {STEPS} steps, identical on {n} ranks and to one process; '
                  f'from gloo {off:.1e} of the largest, {(weights != beside[name]).float().mean():.0%} of them differ')
    try:
        dist.all_reduce(torch.zeros(2 + (rank == 1)))
        raise AssertionError('ranks that disagree are not told')
    except incline.CommunicatorError as e:
        assert 'ctrl_mismatch' in str(e), e
    dist.destroy_process_group()


if __name__ == '__main__' and sys.argv[1:] == ['rank']:
    main()
    sys.exit(0)

import unittest  # noqa: E402

from fabric_case import TOP, Fabric, build_dir, run_tests  # noqa: E402
from incline_lab import free_port  # noqa: E402

PACKAGE = {'PYTHONPATH': os.path.join(TOP, 'python'), 'PYTHONDONTWRITEBYTECODE': '1',
           'INCLINE_CCL_LIBRARY': os.path.join(build_dir(), 'lib/ccl/libincline-ccl.so')}


class Training(Fabric):
    def test_four_ranks(self):
        env = {**PACKAGE, 'WORLD_SIZE': '4', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(free_port()), 'GLOO_SOCKET_IFNAME': 'lo',
               'INCLINE_GROUP': self.lab.path('group-reproducible.json')}
        ends = self.finish([self.start(f'h{r}', ['env', *(f'{k}={v}' for k, v in env.items()), f'RANK={r}', sys.executable,
                                                 os.path.abspath(__file__), 'rank']) for r in range(4)], PATIENCE)
        for rank, (rc, out, err) in enumerate(ends):
            self.assertEqual(rc, 0, f'rank {rank}: {err}')
            print(out, end='', file=sys.stderr)


class Documentation(unittest.TestCase):
    def test_commands(self):
        with open(os.path.join(TOP, 'docs/python.md')) as f:
            script = re.search(r'^```sh\n# checked by tests/integration/torch_train.py\n(.*?)^```', f.read(), re.S | re.M)[1]
        with tempfile.TemporaryDirectory(prefix='incline-') as d:
            env = dict(os.environ, INCLINE_LAB=os.path.join(d, 'lab'), INCLINE_BUILD=build_dir())
            script = script.replace('build/lib/', build_dir() + '/lib/').replace('29500', str(free_port()))
            said = os.path.join(d, 'said')
            try:
                with open(said, 'w') as out:  # what a block leaves running would hold a pipe open
                    status = subprocess.run(['bash', '-euo', 'pipefail', '-c', script], cwd=TOP, env=env, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=subprocess.STDOUT, timeout=PATIENCE).returncode
            finally:
                subprocess.run(['tools/lab', 'down'], cwd=TOP, env=env, capture_output=True)
            with open(said) as out:
                said = out.read()
        self.assertEqual(status, 0, said)
        self.assertEqual(len(re.findall(r'rank \d: 1\d\d calls in the network, 0 elsewhere', said)), 4, said)
        losses = [float(x) for x in re.findall(r'loss ([\d.]+)', said)]
        self.assertLess(losses[-1], losses[0] / 2, said)


del Fabric

if __name__ == '__main__':
    if subprocess.run([sys.executable, '-c', 'import torch'], capture_output=True).returncode:
        print('skipped: python3-torch is not installed (tools/test --long does)')
        sys.exit(77)
    run_tests(verbosity=2)
