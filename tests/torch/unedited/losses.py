# SPDX-License-Identifier: Apache-2.0
"""Every loss of torch.nn, by a few steps on its input."""

import torch
from torch import nn

device = torch.accelerator.current_accelerator() or torch.device("cpu")
data = torch.Generator().manual_seed(1)
numbers, flags = torch.randn(4, 5, generator=data), torch.rand(4, 5, generator=data) > 0.5
signs, classes = flags * 2.0 - 1, torch.tensor([0, 4, 2, 1])
CASES = [
    (nn.L1Loss(), numbers),
    (nn.MSELoss(reduction="sum"), numbers),
    (nn.SmoothL1Loss(beta=0.5), numbers),
    (nn.HuberLoss(delta=0.7), numbers),
    (nn.PoissonNLLLoss(), numbers.abs()),
    (nn.CrossEntropyLoss(label_smoothing=0.1, weight=torch.tensor([1.0, 2, 1, 3, 1])), classes),
    (nn.CrossEntropyLoss(), numbers.softmax(1)),
    (nn.MultiMarginLoss(p=2, margin=0.8), classes),
    (nn.MultiLabelMarginLoss(), torch.tensor([[3, 0, -1, 1, 2], [2, -1, 4, 3, 1], [0, 1, 2, 3, 4], [-1, 0, 1, 2, 3]])),
    (nn.MultiLabelSoftMarginLoss(), flags.float()),
    (nn.BCEWithLogitsLoss(pos_weight=torch.full((5,), 2.0)), flags.float()),
    (nn.SoftMarginLoss(), signs),
    (nn.HingeEmbeddingLoss(), signs),
]


def others():
    scores = torch.randn(10, 4, 6, generator=data)
    yield nn.KLDivLoss(reduction="batchmean"), lambda x: (x.log_softmax(1), numbers.softmax(1).to(device))
    yield nn.NLLLoss(ignore_index=2), lambda x: (x.log_softmax(1), classes.to(device))
    yield nn.BCELoss(), lambda x: (x.sigmoid(), flags.float().to(device))
    yield nn.GaussianNLLLoss(), lambda x: (x, numbers.to(device), (x * x).detach() + 0.1)
    yield nn.MarginRankingLoss(0.2), lambda x: (x[0], x[1], signs[0].to(device))
    yield nn.CosineEmbeddingLoss(0.1), lambda x: (x, numbers.to(device), signs[:, 0].to(device))
    yield nn.TripletMarginLoss(), lambda x: (x, numbers.to(device), signs.to(device))
    yield nn.CTCLoss(), lambda x: ((scores.to(device) + x.sum()).log_softmax(2) * x.std(), flags.long() + 1, [10, 9, 8, 10], [5, 4, 3, 2])


losses = []
rows = [(f, lambda x, y=y: (x, y.to(device))) for f, y in CASES] + list(others())
for function, arguments in rows:
    function.to(device)
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(2)).to(device).requires_grad_()
    optimizer = torch.optim.SGD([x], lr=0.1)
    for _ in range(3):
        loss = function(*arguments(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print("device", device)
print("losses", losses)
