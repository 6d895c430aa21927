# SPDX-License-Identifier: Apache-2.0
"""PyTorch on opentrn.

    import opentrn.torch
    model = torch.compile(model, backend="opentrn")

CPU tensors stay where they are: the device works on their memory. See docs/from-gpu.md.

Dynamo and the lowerings take a second to import, so importing this does not: they come with the first graph, and whoever
imports Dynamo gets it with this backend in it.
"""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch  # before anything of ours: it loads the device, which needs the modules below whole

from opentrn import _groups, _imports, _launcher, _profile
from opentrn.torch import settings

if TYPE_CHECKING:
    from opentrn.torch.export import export_step
    from opentrn.torch.forward import export_forward
    from opentrn.torch.report import explain
    from opentrn.torch.step import compile_step

__all__ = ["backend", "compile_step", "explain", "export_forward", "export_step", "settings"]
_LATE = {"compile_step": "step", "explain": "report", "export_forward": "forward", "export_step": "export"}


def _late(module):
    return importlib.import_module(f"opentrn.torch.{module}")


def __getattr__(name):
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_late(_LATE[name]), name)


def backend(module: torch.fx.GraphModule, example_inputs: list[torch.Tensor], **given: Any) -> Callable[..., Any]:
    """`torch.compile(model, backend="opentrn")`"""
    return _late("capture").compile_graph(module, example_inputs, **given)


def _set_up():
    _groups.register()
    _launcher.adopt()
    _imports.when_imported("torch._dynamo", lambda _: _late("register").register(backend))
    _profile.SOURCES.append(_profile.later(lambda: _late("report").source))
    if settings.report_file:  # operators are looked at from now on
        _late("report")


_set_up()
