# SPDX-License-Identifier: Apache-2.0
"""Operators that have no lowering and never will: PyTorch knows them, the device does not."""

import torch
from torch import library


@library.custom_op("opentrn_tests::gamma", mutates_args=())
def gamma(x: torch.Tensor) -> torch.Tensor:
    return torch.special.gammainc(torch.full_like(x, 2), x)


@library.custom_op("opentrn_tests::gamma_slope", mutates_args=())
def gamma_slope(x: torch.Tensor) -> torch.Tensor:
    return x * torch.exp(-x)


for op in (gamma, gamma_slope):
    op.register_fake(torch.empty_like)
gamma.register_autograd(
    lambda ctx, grad: grad * ctx.saved_tensors[0] * torch.exp(-ctx.saved_tensors[0]),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)
