# SPDX-License-Identifier: Apache-2.0
"""A whole training step as one graph: forward, backward and optimizer.

Stock `optimizer.step()` cuts the graph by design, so the optimizers here are torch's own functional
forms, called with the optimizer's own state: `state_dict`, schedulers and checkpoints go on
working, and plain `opt.step()` can be used in between.
"""

import inspect
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.adagrad import adagrad
from torch.optim.adam import adam
from torch.optim.rmsprop import rmsprop
from torch.optim.sgd import sgd

ZERO, COUNT = "zeros like the parameter", "a step count"


def _adam(group, params, grads, s):
    beta1, beta2 = group["betas"]
    adam(
        params, grads, s["exp_avg"], s["exp_avg_sq"], s.get("max_exp_avg_sq", []), s["step"],
        foreach=False, fused=False, capturable=False, differentiable=False, has_complex=False,
        grad_scale=None, found_inf=None, amsgrad=group["amsgrad"], beta1=beta1, beta2=beta2,
        lr=s["lr"], weight_decay=group["weight_decay"], eps=group["eps"],
        maximize=group["maximize"],
        decoupled_weight_decay=group.get("decoupled_weight_decay", False),
    )  # fmt: skip


def _sgd(group, params, grads, s):
    buffers = s.get("momentum_buffer", [None] * len(params))
    sgd(
        params, grads, buffers, foreach=False, fused=False, lr=s["lr"],
        weight_decay=group["weight_decay"], momentum=group["momentum"],
        dampening=group["dampening"], nesterov=group["nesterov"], maximize=group["maximize"],
    )  # fmt: skip


def _adagrad(group, params, grads, s):
    adagrad(
        params, grads, s["sum"], s["step"], foreach=False, fused=False, lr=s["lr"],
        weight_decay=group["weight_decay"], lr_decay=group["lr_decay"], eps=group["eps"],
        maximize=group["maximize"],
    )  # fmt: skip


def _rmsprop(group, params, grads, s):
    rmsprop(
        params, grads, s["square_avg"], s.get("grad_avg", []), s.get("momentum_buffer", []),
        s["step"], foreach=False, lr=s["lr"], alpha=group["alpha"], eps=group["eps"],
        weight_decay=group["weight_decay"], momentum=group["momentum"],
        centered=group["centered"], maximize=group["maximize"],
    )  # fmt: skip


def _adam_state(group):
    extra = {"max_exp_avg_sq": ZERO} if group["amsgrad"] else {}
    return {"step": COUNT, "exp_avg": ZERO, "exp_avg_sq": ZERO, **extra}


def _sgd_state(group):
    if group["momentum"] and group["dampening"]:
        raise ValueError("opentrn: compile_step takes SGD with momentum only without dampening")
    return {"momentum_buffer": ZERO} if group["momentum"] else {}


def _rmsprop_state(group):
    extra = {"momentum_buffer": ZERO} if group["momentum"] else {}
    extra |= {"grad_avg": ZERO} if group["centered"] else {}
    return {"step": COUNT, "square_avg": ZERO, **extra}


OPTIMIZERS = {  # class: (functional form, state of a group's parameters before the first step)
    torch.optim.AdamW: (_adam, _adam_state),
    torch.optim.Adam: (_adam, _adam_state),
    torch.optim.SGD: (_sgd, _sgd_state),
    torch.optim.Adagrad: (_adagrad, lambda group: {"step": COUNT, "sum": ZERO}),
    torch.optim.RMSprop: (_rmsprop, _rmsprop_state),
}


def _row(opt):
    for kind, row in OPTIMIZERS.items():
        if type(opt) is kind:
            return row
    names = ", ".join(k.__name__ for k in OPTIMIZERS)
    raise TypeError(
        f"opentrn: compile_step knows {names}; {type(opt).__name__} is none of them. Compile the two apart, which any optimizer takes: "
        'model = torch.compile(model, backend="opentrn"), then loss.backward() and opt.step()'
    )


def _check(model, opt, loss_fn):
    """What people mix up, told in one line."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"opentrn: the first argument is the model, a torch.nn.Module, not {type(model).__name__}")
    if not isinstance(opt, torch.optim.Optimizer):
        raise TypeError(f"opentrn: the second argument is the optimizer, a torch.optim.Optimizer, not {type(opt).__name__}")
    if loss_fn is not None and not callable(loss_fn):
        raise TypeError(f"opentrn: loss_fn is a function, a module or None, not {type(loss_fn).__name__}")
    parts = [model, loss_fn] if isinstance(loss_fn, torch.nn.Module) else [model]
    own = {id(p) for part in parts for p in part.parameters()}
    if not any(id(p) in own for group in opt.param_groups for p in group["params"]):
        raise ValueError("opentrn: the optimizer has none of this model's parameters: make it with model.parameters()")


def _fill_state(opt, wanted):
    """State as the optimizer itself would make it in its first step."""
    for group in opt.param_groups:
        rows = wanted(group)
        for p in group["params"]:
            state = opt.state[p]
            for key, what in rows.items():
                if state.get(key) is None:
                    zeros = torch.zeros((), dtype=torch.float32) if what is COUNT else None
                    state[key] = torch.zeros_like(p) if zeros is None else zeros


_P = inspect.Parameter
_MODEL_NAMES = ("model", "net", "network", "module")  # tell where both forms of a loss function fit


def _signature(loss_fn):
    try:
        return inspect.signature(loss_fn.forward if isinstance(loss_fn, torch.nn.Module) else loss_fn)
    except (TypeError, ValueError):  # torch's own, written in C++
        return None


class _Form:
    """How a function takes `count` values and some names: fits; needs: values it cannot do without; keywords: names of
    the last values, which it takes only by name."""

    def __init__(self, signature, count, named):
        free = [p for p in signature.parameters.values() if p.name not in named]
        kinds = {p.kind for p in free}
        places = [p for p in free if p.kind in (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD)]
        self.keywords = tuple(p.name for p in free if p.kind is _P.KEYWORD_ONLY and p.default is _P.empty)
        least = sum(p.default is _P.empty for p in places)
        by_place = count - len(self.keywords)
        self.needs = least + len(self.keywords)
        self.fits = (
            (_P.VAR_KEYWORD in kinds or all(n in signature.parameters for n in named))
            and least <= by_place
            and (by_place <= len(places) or _P.VAR_POSITIONAL in kinds)
        )


def loss_form(loss_fn, count, named):
    """("whole", …) for loss_fn(model, *batch), ("pair", …) for loss_fn(prediction, target), by what its parameters
    take, whatever their names. Second: names of the last values.

    count: positional values of the batch; named: names of the others, which a pair leaves to the model."""
    if loss_fn is None:
        return "given", ()
    signature = _signature(loss_fn)
    if signature is None:
        return "pair", ()
    whole, pair = _Form(signature, 1 + count, named), _Form(signature, 2, ())
    pair.fits = pair.fits and count >= 1 and count + len(named) >= 2  # something for the model, and a target
    if not whole.fits and not pair.fits:
        raise TypeError(
            f"opentrn: loss_fn{signature} fits neither loss_fn(model, *batch) with {1 + count} values nor "
            "loss_fn(prediction, target): give it one of these forms"
        )
    if whole.fits and pair.fits:  # F.cross_entropy needs two of its values, a function of (net, x, y) three
        first = next(iter(signature.parameters.values()))
        named_so = first.name in _MODEL_NAMES or first.annotation is torch.nn.Module
        pair.fits = not named_so and whole.needs != 1 + count and pair.needs != 1  # (m, *batch)
    return ("pair", pair.keywords) if pair.fits else ("whole", whole.keywords)


def loss_of(model, loss_fn, form, batch, named):
    kind, keywords = form
    if kind == "given":
        out = model(*batch, **named)
        return out if isinstance(out, torch.Tensor) else out.loss
    values = (model, *batch) if kind == "whole" else (model(*batch[:-1], **named), batch[-1])
    named = dict(named) if kind == "whole" else {}
    places = len(values) - len(keywords)
    return loss_fn(*values[:places], **dict(zip(keywords, values[places:])), **named)


def _clipped(grads, max_norm):
    """As torch.nn.utils.clip_grad_norm_ has it: by the norm of all of them."""
    used = [g for g in grads if g is not None]
    if max_norm is None or not used:
        return grads
    norm = torch.nn.utils.get_total_norm(used, foreach=False)
    scale = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    return [None if g is None else g * scale.to(g.dtype) for g in grads]


class Step:
    """`step(*batch) -> loss`; parameters and state change in place."""

    def __init__(
        self,
        model: torch.nn.Module,
        opt: torch.optim.Optimizer,
        loss_fn: Callable[..., Any] | None = None,
        backend: str = "opentrn",
        max_norm: float | None = None,
        dynamic: bool | None = None,
    ) -> None:
        _check(model, opt, loss_fn)
        if max_norm is not None and not max_norm > 0:
            raise ValueError(f"opentrn: max_norm={max_norm}: gradients are clipped to a norm above 0; None does not clip")
        self.model, self.opt, self.loss_fn, self.max_norm = model, opt, loss_fn, max_norm
        self._function, self._wanted = _row(opt)
        self._rates = [torch.zeros((), dtype=torch.float64) for _ in opt.param_groups]
        # Code of its own: Dynamo gives up on code that it has compiled eight times, whatever model and optimizer it was for
        own = types.FunctionType(Step._whole.__code__.replace(), Step._whole.__globals__, "_whole")
        self._compiled = torch.compile(types.MethodType(own, self), backend=backend, fullgraph=True, dynamic=dynamic)

    def _whole(self, batch, named, params, states):
        loss = loss_of(self.model, self.loss_fn, self._form, batch, named)
        flat = [p for group in params for p in group]
        grads = list(torch.autograd.grad(loss, flat, allow_unused=True))
        with torch.no_grad():
            grads = _clipped(grads, self.max_norm)
            for group, own, state in zip(self._constants, params, states, strict=True):
                mine, grads = grads[: len(own)], grads[len(own) :]
                used = [i for i, g in enumerate(mine) if g is not None]
                picked = {k: v if k == "lr" else [v[i] for i in used] for k, v in state.items()}
                self._function(group, [own[i] for i in used], [mine[i] for i in used], picked)
        return loss.detach()

    def _arguments(self):
        _fill_state(self.opt, self._wanted)
        params, states = [], []
        for group, rate in zip(self.opt.param_groups, self._rates, strict=True):
            own = [p for p in group["params"] if p.requires_grad]
            rate.fill_(float(group["lr"]))
            state = {k: [self.opt.state[p][k] for p in own] for k in self._wanted(group)}
            params.append(own)
            states.append({**state, "lr": rate})
        self._constants = [
            {k: v for k, v in g.items() if k not in ("params", "lr", "initial_lr")}
            for g in self.opt.param_groups
        ]
        return params, states

    def __call__(self, *batch: Any, **named: Any) -> torch.Tensor:
        params, states = self._arguments()
        self._form = loss_form(self.loss_fn, len(batch), tuple(named))
        self.opt._opt_called = True  # type: ignore[attr-defined]  # for schedulers, which ask whether a step came first
        with torch._dynamo.config.patch(trace_autograd_ops=True):
            return self._compiled(batch, named, params, states)


def compile_step(
    model: torch.nn.Module,
    opt: torch.optim.Optimizer,
    loss_fn: Callable[..., Any] | None = None,
    max_norm: float | None = None,
) -> Step:
    """One graph per training step.

    loss_fn: None when the model gives its loss, a function of (model, *batch), or one of
    (prediction, target) such as F.cross_entropy; which of them, its parameters tell. Learning rates may change
    between steps. max_norm: gradients are clipped as torch.nn.utils.clip_grad_norm_ does.
    """
    return Step(model, opt, loss_fn, max_norm=max_norm)
