# SPDX-License-Identifier: Apache-2.0
"""Makes the backend known to torch and sets what Dynamo must know before it captures anything."""

from typing import Any

import torch

from opentrn.torch import optimizer


class _Ignored(set[Any]):
    """Logging functions that do not cut a graph in two. Hugging Face adds `warning_once` to
    logging.Logger when it is imported, perhaps after us, so it is known by its name."""

    def __contains__(self, function):
        return super().__contains__(function) or getattr(function, "__name__", "") == "warning_once"


def _set_up_capture():
    config = torch._dynamo.config
    # nn.LSTM and nn.GRU are unrolled instead of left to the CPU without a word.
    config.allow_rnn = True
    config.ignore_logging_functions = _Ignored(config.ignore_logging_functions)
    # What the report tells of recompiles; Dynamo keeps 64 compilations unless told.
    torch._dynamo.utils.set_compilation_metrics_limit(10_000)


def _may_change(tensor):
    """Dimensions whose sizes are left open. Not height and width of images: tracing convolutions with them costs many times as much,
    and most models see one size."""
    fixed = getattr(tensor, "_dynamo_static_indices", ())  # by torch._dynamo.mark_static
    return [i for i in range(tensor.dim() if tensor.dim() < 4 else 1) if i not in fixed]


def leave_open(fake_mode):
    """Told of what traces a graph with such sizes. It keeps what operators gave, but what it kept for sizes that are not known it works out and
    checks anew each time, which takes longer than asking the operator."""
    fake_mode.cache_enabled = False


def _leave_sizes_open():
    """Dynamo takes sizes for constants until one changes, and then traces again. A trace for this backend leaves those of its arguments
    open from the start; what a model asks of them is guarded as ever. Weights, views' bases, tensors of other types, other backends and
    whoever says what is dynamic are left alone. Should torch have no such function any more, all are."""
    from torch._dynamo.variables import builder
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    config = torch._dynamo.config

    def is_open(e, tx, source, static_shapes):
        asked = not config.automatic_dynamic_shapes or not config.assume_static_by_default or getattr(config, "_shapes_spec", None)
        plain = type(e) is torch.Tensor and getattr(source, "member", None) != "_base"
        return plain and not static_shapes and not asked and optimizer.is_ours(tx.output.compiler_fn)

    def decide(e, tx, source, static_shapes, *args, **kwargs):
        context = usual(e, tx, source, static_shapes, *args, **kwargs)
        if is_open(e, tx, source, static_shapes):
            for i in _may_change(e):
                if context.dynamic_sizes[i] is DimDynamic.STATIC:
                    context.dynamic_sizes[i] = DimDynamic.DYNAMIC
                    leave_open(tx.output.fake_mode)
        return context

    if usual := getattr(builder, "_automatic_dynamic", None):
        builder._automatic_dynamic = decide


def register(backend):
    """Called when Dynamo has been imported."""
    from torch._dynamo.backends import registry

    _set_up_capture()
    _leave_sizes_open()
    optimizer.install()
    # When torch found our entry point, it is just loading this, and registers the result itself.
    for name in ("opentrn", "neuron"):
        if name not in getattr(registry, "_BACKENDS", ()):
            torch._dynamo.register_backend(backend, name=name)
