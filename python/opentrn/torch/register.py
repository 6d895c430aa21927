# SPDX-License-Identifier: Apache-2.0
"""Makes the backend known to torch and sets what Dynamo must know before it captures anything."""

from typing import Any

import torch
import torch._dynamo

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


def register(backend):
    """Called when Dynamo has been imported."""
    from torch._dynamo.backends import registry

    _set_up_capture()
    optimizer.install()
    # When torch found our entry point, it is just loading this, and registers the result itself.
    for name in ("opentrn", "neuron"):
        if name not in getattr(registry, "_BACKENDS", ()):
            torch._dynamo.register_backend(backend, name=name)
