# SPDX-License-Identifier: Apache-2.0
"""Compiled optimizer steps whose learning rate may change.

Dynamo compiles a plain number into the graph, so a schedule would mean a program per step. While a
compiled step runs, each learning rate that is a number is replaced by a tensor that holds it,
always the same tensor; afterwards the number is back, and neither schedulers nor checkpoints see a
difference. The replacement is done by torch's own hooks around every optimizer step.
"""

import importlib
import weakref
from collections.abc import Hashable
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

_Optimizers = weakref.WeakKeyDictionary[torch.optim.Optimizer, Any]
_rates: _Optimizers = weakref.WeakKeyDictionary()  # {group number: tensor}
_serials: _Optimizers = weakref.WeakKeyDictionary()
_steps: dict[Hashable, int] = {}  # of each serial number: an optimizer may be gone when somebody asks
_numbers: _Optimizers = weakref.WeakKeyDictionary()  # [(group, key, number)] while a step runs


def is_ours(step):
    """step: Dynamo's callback. True when it ends in this backend, whatever name it was asked for by."""
    backend = importlib.import_module("opentrn.torch").backend
    while step is not None and not isinstance(step, bool):
        if backend in (step, getattr(step, "compiler_fn", None)):
            return True
        step = getattr(step, "_torchdynamo_orig_backend", None)
    return False


def _compiling_for_us():
    """True inside a region that torch.compile runs with this backend."""
    return is_ours(torch._C._dynamo.eval_frame.get_eval_frame_callback())


def _before(optimizer, args, kwargs):
    restore(optimizer)  # what a step that failed left behind
    if not _compiling_for_us():
        return
    optimizer._opt_called = True  # for schedulers, which ask whether a step came first
    tensors = _rates.setdefault(optimizer, {})
    kept = _numbers[optimizer] = []  # known before anything is replaced, should Ctrl-C come now
    for i, group in enumerate(optimizer.param_groups):
        rate = group.get("lr")
        if isinstance(rate, float) and not group.get("fused"):
            if i not in tensors:
                tensors[i] = torch.zeros((), dtype=torch.float64)
            tensors[i].fill_(rate)
            kept.append((group, "lr", rate))
            group["lr"] = tensors[i]
            if group.get("foreach"):  # wants numbers; one graph of single tensors is the same work
                kept.append((group, "foreach", group["foreach"]))
                group["foreach"] = False


def restore(optimizer):
    for group, key, value in _numbers.pop(optimizer, ()):
        group[key] = value


def _after(optimizer, args, kwargs):
    restore(optimizer)
    serial = _serials.setdefault(optimizer, len(_steps))
    _steps[serial] = _steps.get(serial, 0) + 1


def steps():
    """How many steps each optimizer has made; for opentrn.profile()."""
    return dict(_steps)


def install():
    for function in (_after, restore, _compiling_for_us, is_ours):
        torch._dynamo.eval_frame.skip_code(function.__code__)  # nothing here is for a graph
    register_optimizer_step_pre_hook(torch._dynamo.disable(_before, recursive=False))
    register_optimizer_step_post_hook(torch._dynamo.disable(_after, recursive=False))
