# SPDX-License-Identifier: Apache-2.0
"""timm: a small vision transformer and a ConvNeXt, with timm's own optimizer factory."""

import timm
import torch
from timm.optim import create_optimizer_v2

device = torch.accelerator.current_accelerator() or torch.device("cpu")
losses = []
for name, given in (
    ("vit_tiny_patch16_224", {"img_size": 32, "depth": 2, "embed_dim": 24, "num_heads": 2}),
    ("convnext_atto", {"depths": (1, 1, 1, 1), "dims": (8, 8, 16, 16)}),
):
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=5, **given).to(device)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    data = torch.Generator().manual_seed(1)
    for _ in range(3):
        x, y = torch.randn(4, 3, 32, 32, generator=data).to(device), torch.randint(0, 5, (4,), generator=data).to(device)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print("device", device)
print("losses", losses)
