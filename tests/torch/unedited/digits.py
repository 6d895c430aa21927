# SPDX-License-Identifier: Apache-2.0
"""A classifier of small images as tutorials write it: DataLoader, dropout, Adadelta, a schedule, an evaluation."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 8, 3)
        self.drop1, self.drop2 = nn.Dropout2d(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(8 * 4 * 4, 16), nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        x = self.drop2(F.relu(self.fc1(torch.flatten(self.drop1(x), 1))))
        return F.log_softmax(self.fc2(x), dim=1)


def main():
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(48, 1, 12, 12), torch.randint(0, 10, (48,)))
    train, test = DataLoader(data, batch_size=16, shuffle=True), DataLoader(data, batch_size=20)
    model = Net().to(device)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    losses = []
    for _ in range(2):
        model.train()
        for x, y in train:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            total = sum(F.nll_loss(model(x.to(device)), y.to(device), reduction="sum").item() for x, y in test)
        losses.append(total / len(data))
        scheduler.step()
    print("device", device)
    print("losses", losses)


if __name__ == "__main__":
    main()
