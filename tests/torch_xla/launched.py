# SPDX-License-Identifier: Apache-2.0
"""Data parallelism by torch_xla.launch (or, with an argument, xmp.spawn), a loader for the device and a checkpoint; the losses are those of one process with the whole batch."""

import sys
import tempfile

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_multiprocessing as xmp
import torch_xla.runtime as xr


def train(index, folder):
    world, rank = xr.world_size(), xr.global_ordinal()
    assert rank == index
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(32, 10), torch.randn(32, 1))
    sampler = torch.utils.data.distributed.DistributedSampler(data, world, rank, shuffle=False)
    loader = pl.MpDeviceLoader(torch.utils.data.DataLoader(data, batch_size=16 // world, sampler=sampler), torch_xla.device())
    model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(torch_xla.device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            xm.optimizer_step(optimizer)  # the gradients' mean over the processes
            total = xm.all_reduce(xm.REDUCE_SUM, loss.detach(), scale=1.0 / world)
            xm.add_step_closure(lambda t: xm.master_print("loss", float(t)), args=(total,))
    xm.save(model.state_dict(), f"{folder}/model.pt")
    xm.rendezvous("saved")
    xm.master_print("loss", sum(float(v.abs().sum()) for v in torch.load(f"{folder}/model.pt").values()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            xmp.spawn(train, args=(folder,))
        else:
            torch_xla.launch(train, args=(folder,))
