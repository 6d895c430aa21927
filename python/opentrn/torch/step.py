# SPDX-License-Identifier: Apache-2.0
"""A whole training step as one graph: forward, backward and optimizer.

Stock `optimizer.step()` cuts the graph by design. So the optimizer collects its state outside, as it would in a step of its own, and inside
the graph the body of its `step` is given these tensors and the gradients: `state_dict`, schedulers and checkpoints go on working, and plain
`opt.step()` can be used in between.
"""

import inspect
import types
from collections.abc import Callable
from typing import Any

import torch

# Names that torch gives to lists of counts and of what depends on nothing else: eager computes these in double precision, as numbers of Python.
_COUNTS = ("state_steps", "mus", "etas", "mu_products")


class _Nowhere:
    """Where SGD puts the buffers it has made: we take them from its list."""

    def __getitem__(self, parameter):
        return {}


class _Stand:
    """What an optimizer's own `step` sees as itself inside the graph: groups of numbers, and lists of tensors instead of gradients on parameters."""

    def __init__(self, groups, lists, counts):
        self.param_groups, self.lists, self.counts, self.used, self.state = groups, lists, counts, [], _Nowhere()

    def _init_group(self, group, *lists):
        for i, (mine, given) in enumerate(zip(lists, self.lists[len(self.used)], strict=True)):
            mine.extend([t.double() for t in given] if i in self.counts else given)
        self.used.append(lists)
        return group["found"]

    def settle(self):
        """Counts go back as what they are. Returned: (parameter, buffer) that SGD with dampening makes in its first step, of the gradient itself."""
        for given, used in zip(self.lists, self.used, strict=True):
            for i in self.counts:
                for old, new in zip(given[i], used[i], strict=True):
                    old.copy_(new)
        return [
            (p, new)
            for (_, _, *before), (params, _, *after) in zip(self.lists, self.used, strict=True) if len(before) == 1
            for p, old, new in zip(params, *before, *after, strict=False) if old is None
        ]  # fmt: skip

    def _accelerator_graph_capture_health_check(self):
        pass

    _cuda_graph_capture_health_check = _accelerator_graph_capture_health_check  # its name before torch 2.13


def _adafactor(stand):
    """torch.optim.Adafactor.step, whose own form asks tensors for numbers."""
    for group in stand.param_groups:
        params, grads, rows, columns, variances, steps = lists = [[] for _ in range(6)]
        stand._init_group(group, *lists)
        lr, decay, d = group["lr"], group["weight_decay"], group["d"]
        for p, g, row, column, variance, step in zip(params, grads, rows, columns, variances, steps, strict=True):
            g = -g if group["maximize"] else g
            least, eps = group["eps"]
            least = torch.finfo(p.dtype).eps if least is None else least
            size = lambda x: torch.linalg.vector_norm(x) / x.numel() ** 0.5
            step.add_(1)
            share = step ** group["beta2_decay"]
            rate = torch.clamp(size(p), min=eps) * torch.minimum(lr, step**-0.5)
            if decay:
                p.mul_(1 - lr * decay)
            if row is None:
                variance.lerp_(g * g, share.to(g.dtype))
                seen = variance
            else:
                row.lerp_((g * g).mean(-1, keepdim=True), share.to(g.dtype))
                column.lerp_((g * g).mean(-2, keepdim=True), share.to(g.dtype))
                seen = row @ column / row.mean(-2, keepdim=True).clamp(min=least)
            update = seen.clamp(min=least * least).rsqrt() * g
            p.sub_(update * (rate / torch.clamp(size(update) / d, min=1.0)).to(p.dtype))


# Of these the plain form asks tensors for numbers too; the one for graphs does not.
_CAPTURABLE = (torch.optim.ASGD, torch.optim.NAdam, torch.optim.RAdam)
_REFUSED = {
    torch.optim.LBFGS: "evaluates the loss as often as the data ask for, which one graph cannot",
    torch.optim.SparseAdam: "takes sparse gradients, whose sizes depend on data",
}


def _update(opt):
    """The optimizer's step as a function of a _Stand."""
    kind = type(opt)
    if kind is getattr(torch.optim, "Adafactor", None):
        return _adafactor
    own = inspect.unwrap(kind.step)
    if kind not in _REFUSED and hasattr(kind, "_init_group") and own.__module__.startswith("torch.optim."):
        return own
    raise TypeError(
        f"opentrn: compile_step takes the optimizers of torch.optim; {kind.__name__} {_REFUSED.get(kind, 'is none of them')}. Compile the two "
        'apart, which any optimizer takes: model = torch.compile(model, backend="opentrn"), then loss.backward() and opt.step()'
    )


def _lists(opt, group, params):
    """What the optimizer itself collects of a group in its step, behind parameters and gradients; it makes what is not there yet. Second: what
    it says of them. SGD makes its buffers of the first gradients; zeros are the same, unless these count less."""
    if type(opt) is torch.optim.SGD and group["momentum"] and not group["dampening"]:
        for p in params:
            if opt.state[p].get("momentum_buffer") is None:
                opt.state[p]["momentum_buffer"] = torch.zeros_like(p)
    lists: list[list[Any]] = [[] for _ in inspect.signature(opt._init_group).parameters]
    had = [p.grad for p in group["params"]]
    try:
        for p in group["params"]:
            p.grad = torch.zeros((), dtype=p.dtype, device=p.device).expand(p.shape) if p.requires_grad else None
        found = opt._init_group(group, *lists[1:])
    finally:
        for p, grad in zip(group["params"], had, strict=True):
            p.grad = grad
    return lists[3:], found


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
        self._update = _update(opt)
        self._counts = [i for i, name in enumerate(list(inspect.signature(opt._init_group).parameters)[1:]) if name in _COUNTS]
        self._rates = [torch.zeros((), dtype=torch.float64) for _ in opt.param_groups]
        # Code of its own: Dynamo gives up on code that it has compiled eight times, whatever model and optimizer it was for
        own = types.FunctionType(Step._whole.__code__.replace(), Step._whole.__globals__, "_whole")
        self._compiled = torch.compile(types.MethodType(own, self), backend=backend, fullgraph=True, dynamic=dynamic)

    def _whole(self, batch, named, params, lists):
        loss = loss_of(self.model, self.loss_fn, self._form, batch, named)
        flat = [p for group in params for p in group]
        grads = list(torch.autograd.grad(loss, flat, allow_unused=True))
        with torch.no_grad():
            grads = _clipped(grads, self.max_norm)
            given = []
            for own, (_, *state) in zip(params, lists, strict=True):
                mine, grads = grads[: len(own)], grads[len(own) :]
                used = [i for i, g in enumerate(mine) if g is not None]
                given.append([[values[i] for i in used] if values else [] for values in (own, mine, *state)])
            stand = _Stand([{**group, "lr": rate} for group, (rate, *_) in zip(self._constants, lists, strict=True)], given, self._counts)
            self._update(stand)
            return loss.detach(), stand.settle()

    def _arguments(self):
        params, lists, self._constants = [], [], []
        for group, rate in zip(self.opt.param_groups, self._rates, strict=True):
            own = [p for p in group["params"] if p.requires_grad]
            rate.fill_(float(group["lr"]))
            state, found = _lists(self.opt, group, own)
            params.append(own)
            lists.append([rate, *state])
            numbers = {k: v for k, v in group.items() if k not in ("params", "lr", "initial_lr")}
            plain = {"foreach": False, "fused": False, "differentiable": False, "capturable": type(self.opt) in _CAPTURABLE}
            self._constants.append({**numbers, **plain, "found": found})
        return params, lists

    def __call__(self, *batch: Any, **named: Any) -> torch.Tensor:
        params, lists = self._arguments()
        self._form = loss_form(self.loss_fn, len(batch), tuple(named))
        self.opt._opt_called = True  # type: ignore[attr-defined]  # for schedulers, which ask whether a step came first
        with torch._dynamo.config.patch(trace_autograd_ops=True):
            loss, made = self._compiled(batch, named, params, lists)
        for p, buffer in made:
            self.opt.state[p]["momentum_buffer"] = buffer
        return loss


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
