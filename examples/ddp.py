# SPDX-License-Identifier: BSD-3-Clause
"""Data-parallel training whose gradients are summed in the network:

    INCLINE_GROUP=group.json torchrun --nproc-per-node 1 --nnodes 4 ... ddp.py

or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set for each process."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import incline.torch

torch.set_num_threads(1)
dist.init_process_group('incline')
rank = dist.get_rank()
torch.manual_seed(1)
target = nn.Linear(20, 5)
model = DistributedDataParallel(nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(2 + rank)  # each rank has samples of its own
for step in range(100):
    x = torch.randn(32, 20)
    loss = nn.functional.mse_loss(model(x), target(x).detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 33 == 0:
        loss = loss.detach()
        dist.all_reduce(loss)
        if rank == 0:
            print(f'step {step:2}  loss {loss.item() / dist.get_world_size():.4f}')
here, elsewhere = incline.torch.calls()
print(f'rank {rank}: {sum(here.values())} calls in the network, {sum(elsewhere.values())} elsewhere')
dist.destroy_process_group()
