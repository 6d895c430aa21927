# SPDX-License-Identifier: Apache-2.0
"""The torch.compile backend: AOTAutograd's graphs, lowered and compiled for the device.

AOTAutograd and its partitioner bring half of Inductor and NetworkX along, so they are imported with the first graph.
"""

import contextlib
import functools
import os

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from opentrn.torch import decompositions, places, randomness, register, sizes, titles
from opentrn.torch.own_decompositions import attention, grouped_mm
from opentrn.torch.plan import Plan


_OPTIMIZERS = os.path.dirname(torch.optim.__file__) + os.sep


def _name(kind, module):
    """What a graph is called in reports. One without a backward may be an optimizer's step, or with
    its own gradients (compile_step) a whole one."""
    traces = [n.meta.get("stack_trace") or "" for n in module.graph.nodes]
    if kind != "inference" or not any(_OPTIMIZERS in t for t in traces):
        return f"torch.{kind}"
    return "torch.step" if any("autograd.grad(" in t for t in traces) else "torch.optimizer"


def _compile(kind, module, example_inputs):
    if kind != "backward":
        randomness.replace_random(module)
    plan = (sizes.Plans if sizes.changing(module) else Plan)(module, _name(kind, module))

    def run(args):
        return plan(args)

    run._boxed_call = True  # type: ignore[attr-defined]  # one list of arguments, ours to empty
    return run


def _partition(module, joint_inputs, **kwargs):
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    randomness.replace_random(module)
    return min_cut_rematerialization_partition(module, joint_inputs, **kwargs)


@contextlib.contextmanager
def plain_attention():
    """Attention is captured as products and a softmax, which the device knows; CPU kernels for the
    whole of it would only be a name to it."""
    with sdpa_kernel(SDPBackend.MATH):
        yield


# What a captured graph calls -> what it calls instead.
_INSTEAD = {"grouped_mm_fallback": grouped_mm, "scaled_dot_product_attention": attention}


def _instead(node):
    return _INSTEAD.get(getattr(node.target, "__name__", "").removesuffix(".default"))


def replace_calls(module):
    """In a captured graph, before its gradient is taken: attention of narrow types; and Transformers' experts, which come with an operator of its own, whose gradient asks
    for values that no trace has, wherever a graph is captured in fp32."""
    for part in module.modules():
        found = [n for n in part.graph.nodes if _instead(n)] if isinstance(part, torch.fx.GraphModule) else []
        for node in found:
            node.target = _instead(node)
        if found:
            part.recompile()


def _compilers(inference=None):
    return {
        "fw_compiler": functools.partial(_compile, "forward"),
        "bw_compiler": functools.partial(_compile, "backward"),
        "inference_compiler": inference or functools.partial(_compile, "inference"),
        "decompositions": decompositions.table(),
        "partition_fn": _partition,
        "keep_inference_input_mutations": True,
    }


def make(inference=None):
    """A Dynamo backend; inference: another compiler for graphs without a backward."""
    from torch._dynamo.backends.common import aot_autograd

    aot = aot_autograd(**_compilers(inference))

    def compile_captured(module, example_inputs, **_):
        replace_calls(module)
        places.keep(module)
        if any(isinstance(i, torch.SymInt) for i in example_inputs):
            register.leave_open(torch._guards.TracingContext.get().fake_mode)
        with sizes.no_collection(), plain_attention(), titles.captured(module):
            return aot(module, example_inputs)

    return compile_captured


def aot_function(function):
    """A function captured by AOTAutograd alone, without Dynamo; tests of single operators use
    it."""
    from torch._functorch.aot_autograd import aot_function as aot

    captured = aot(function, **_compilers())

    @functools.wraps(function)
    def call(*args):
        with plain_attention():
            return captured(*args)

    return call


@functools.cache
def _usual():
    """Made when it is first needed: gathering the decompositions takes a second."""
    return make()


def compile_graph(module, example_inputs, **given):
    if given.get("options"):
        raise ValueError(
            f"opentrn: torch.compile has no options for this backend ({', '.join(given['options'])}); "
            "OTRN_… variables set them, `otrn info options` lists them"
        )
    return _usual()(module, example_inputs)
