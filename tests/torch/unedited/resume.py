# SPDX-License-Identifier: Apache-2.0
"""Training that is saved, ended and taken up again: the second half is the same; loaders with workers and pinned memory."""

import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.accelerator.current_accelerator() or torch.device("cpu")


class Lines(Dataset):
    def __len__(self):
        return 22

    def __getitem__(self, i):
        return {"x": torch.randn(10, generator=torch.Generator().manual_seed(i)), "y": torch.tensor(i % 3)}


def make():
    torch.manual_seed(0)
    layers = nn.Linear(10, 32), nn.BatchNorm1d(32), nn.PReLU(), nn.Dropout(0.2), nn.Linear(32, 3)
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, amsgrad=True)
    return model, optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)


def epoch(model, optimizer, schedule):
    order = torch.Generator().manual_seed(4)
    loader = DataLoader(Lines(), batch_size=8, shuffle=True, num_workers=2, pin_memory=True, generator=order)
    weight = torch.tensor([1.0, 2.0, 0.5], device=device)
    losses = []
    for batch in loader:
        x, y = (batch[k].to(device, non_blocking=True) for k in ("x", "y"))
        loss = nn.functional.cross_entropy(model(x), y, weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    schedule.step(sum(losses))
    return losses


if __name__ == "__main__":
    parts = make()
    first = epoch(*parts)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "half.pt")
        torch.save({"parts": [p.state_dict() for p in parts], "random": torch.get_rng_state()}, path)
        second = epoch(*parts)
        parts = make()
        kept = torch.load(path, map_location=device, weights_only=True)
        for part, state in zip(parts, kept["parts"], strict=True):
            part.load_state_dict(state)
        torch.set_rng_state(kept["random"].cpu())
        assert epoch(*parts) == second
    print("device", device)
    print("losses", first + second)
