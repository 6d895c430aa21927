# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer: fit with validation, accumulation, clipping and a schedule; --compile: the net by `torch.compile`;
--devices=2: data parallelism, by processes that Lightning starts."""

import logging
import sys
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
losses = []


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
        self.net = torch.compile(net, backend="neuron") if "--compile" in sys.argv else net

    def training_step(self, batch, number):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        losses.append(loss.item())
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, number):
        losses.append(nn.functional.cross_entropy(self.net(batch[0]), batch[1]).item())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


lightning.seed_everything(0)
data = DataLoader(TensorDataset(torch.randn(24, 8), torch.randint(0, 3, (24,))), batch_size=6)
trainer = lightning.Trainer(
    max_epochs=2, devices=2 if "--devices=2" in sys.argv else "auto", accumulate_grad_batches=2, gradient_clip_val=0.5, logger=False,
    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
)  # fmt: skip
trainer.fit(Module(), data, data)
if trainer.is_global_zero:
    print("device", trainer.strategy.root_device)
    print("losses", losses)
