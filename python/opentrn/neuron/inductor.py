# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(model)` without a backend means Inductor, which has no code for the device `neuron`: graphs with tensors there
become programs of ours, all others stay Inductor's."""

import functools

import torch


def _on_device(module):
    def there(value):
        return isinstance(value, torch.Tensor) and value.device.type == "neuron"

    seen = (node.meta.get("example_value") for node in module.graph.nodes)
    return any(there(v) for values in seen for v in torch.utils._pytree.tree_leaves(values))


def stand_before(compile_fx):
    """Called when Inductor has been imported, with its module."""
    usual = compile_fx.compile_fx

    @functools.wraps(usual)
    def call(module, inputs, *args, **kwargs):
        if isinstance(module, torch.fx.GraphModule) and _on_device(module):
            from opentrn.torch import capture

            return capture.compile_graph(module, inputs)
        return usual(module, inputs, *args, **kwargs)

    compile_fx.compile_fx = call
