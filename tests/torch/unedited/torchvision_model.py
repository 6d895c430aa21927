# SPDX-License-Identifier: Apache-2.0
"""torchvision's models: SqueezeNet and a vision transformer."""

import torch
from torchvision import models

device = torch.accelerator.current_accelerator() or torch.device("cpu")
losses = []
for make in (
    lambda: models.squeezenet1_1(num_classes=5, dropout=0.0),
    lambda: models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5),
):
    torch.manual_seed(0)
    model = make().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    data = torch.Generator().manual_seed(1)
    for _ in range(2):
        x, y = torch.randn(2, 3, 32, 32, generator=data).to(device), torch.randint(0, 5, (2,), generator=data).to(device)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print("device", device)
print("losses", losses)
