# SPDX-License-Identifier: Apache-2.0
"""PyTorch on opentrn.

    import opentrn.torch
    model = torch.compile(model, backend="opentrn")

CPU tensors stay where they are: the device works on their memory. See docs/from-gpu.md.
"""

from opentrn.torch import settings
from opentrn.torch.register import register

register()

from opentrn.torch.backend import backend  # noqa: E402
from opentrn.torch.export import export_step  # noqa: E402
from opentrn.torch.forward import export_forward  # noqa: E402
from opentrn.torch.report import explain  # noqa: E402
from opentrn.torch.step import compile_step  # noqa: E402

__all__ = ["backend", "compile_step", "explain", "export_forward", "export_step", "settings"]
