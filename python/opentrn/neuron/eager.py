# SPDX-License-Identifier: Apache-2.0
"""What an eager operator on the device means: a small compiled program, or the host.

device.cpp asks once for each operator with its types, sizes and other arguments. The operator is traced as a compiled
graph is (the same decompositions and lowerings), and becomes one program when all of it can be lowered. Numbers that
change from step to step (learning rates, bias corrections) are arguments of the program in the operators of LIFTED, so
that a new value is not a new program.
"""

import contextlib
import ctypes
import dataclasses
import itertools
import logging
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import make_fx

import opentrn.torch  # noqa: F401 (sets up Dynamo)
from opentrn.neuron import drawn, native
from opentrn.neuron.forms import form_of
from opentrn.neuron.lifted import LIFTED
from opentrn.torch import decompositions, indices, outside, randomness
from opentrn.torch.capture import plain_attention
from opentrn.torch.lower import NotLowered
from opentrn.torch.plan import Plan
from opentrn.torch.report import log

aten = torch.ops.aten

SCALAR_TYPES = {  # torch's numbers of its types
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
    torch.float64: 7, torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15,
    torch.float8_e5m2: 23, torch.float8_e4m3fn: 24, torch.uint16: 27, torch.uint32: 28, torch.uint64: 29,
}  # fmt: skip


# --- tracing --------------------------------------------------------------------------------------


def _values(op, args, kwargs):
    """All arguments in the schema's order, which is the order device.cpp counts tensors and numbers in."""
    rows = []
    for i, argument in enumerate(op._schema.arguments):
        given = args[i] if i < len(args) else kwargs.get(argument.name, argument.default_value)
        rows.append((argument, given))
    return rows


class _Slots:
    """Tensors and lifted numbers among the arguments. order: (number, kind) of each argument of the program."""

    def __init__(self, lift):
        self.lift, self.tensors, self.numbers, self.order = lift, [], 0, []

    def _slot(self, number, kind):
        self.order.append((number, kind))
        return _Slot(len(self.order) - 1)

    def _tensor(self, value, kind):
        for i, (number, other) in enumerate(self.order):
            if other not in (LIFT, STATE) and self.tensors[number] is value:
                return _Slot(i)
        self.tensors.append(value)
        return self._slot(len(self.tensors) - 1, kind)

    def take(self, value, wants_tensor):
        """The value with a stand-in for everything the program is given."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, TENSOR)
        if isinstance(value, (list, tuple)):
            return type(value)(self.take(v, wants_tensor) for v in value)
        if wants_tensor and isinstance(value, (bool, int, float, complex)):  # a tensor that torch made of a number
            return self._tensor(torch.tensor(value, dtype=_NUMBER[type(value)]), NUMBER)
        if self.lift and isinstance(value, float):
            self.numbers += 1
            return self._slot(self.numbers - 1, LIFT)
        return value


@dataclasses.dataclass(frozen=True)
class _Slot:
    number: int


TENSOR, NUMBER, LIFT, STATE = "a tensor", "a number torch made a tensor of", "a number that may change", "the generator's state"
KINDS = {TENSOR: 0, NUMBER: 0, LIFT: 1, STATE: 2}  # device.cpp's numbers
_NUMBER = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


def _fill(value, given):
    if isinstance(value, _Slot):
        return given[value.number]
    if isinstance(value, (list, tuple)):
        return type(value)(_fill(v, given) for v in value)
    return value


def _as_number(tensor, others):
    """A plain number among tensors: it takes their type, or the default one of its kind."""
    kinds = [t.dtype for t in others]
    if not kinds:
        return tensor
    widest = kinds[0]
    for kind in kinds[1:]:
        widest = torch.promote_types(widest, kind)
    if widest.is_complex or (tensor.dtype.is_floating_point and widest.is_floating_point):
        narrow = widest in (torch.float16, torch.bfloat16)
        return tensor.to(torch.float32 if narrow and any(t.dim() for t in others) else widest)
    if tensor.dtype.is_floating_point:
        return tensor.to(torch.get_default_dtype())
    return tensor if widest == torch.bool else tensor.to(widest)


def _written(op):
    """For each result the number of the argument that it is, or None."""
    names = {}
    for i, argument in enumerate(op._schema.arguments):
        if argument.alias_info and argument.alias_info.is_write:
            for name in argument.alias_info.before_set:
                names[name] = i
    rows = []
    for result in op._schema.returns:
        alias = result.alias_info
        rows.append(next((names[n] for n in alias.before_set if n in names), None) if alias else None)
    return rows


def _without_out(op):
    """Of an operator that takes each element by itself the form that makes its result: `add.Tensor` of `add.out`."""
    signature = lambda f: [(a.name, str(a.type)) for a in f._schema.arguments if not a.is_out]
    packet = getattr(aten, op._schema.name.removeprefix("aten::"), None)
    forms = [getattr(packet, name) for name in packet.overloads()] if packet else []
    return next((f for f in forms if f is not op and torch.Tag.pointwise in f.tags and signature(f) == signature(op) and len(f._schema.arguments) < len(op._schema.arguments)), None)


def _leaves(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


class _Traced:
    """The graph of one call, its results those that are not arguments."""

    def __init__(self, op, rows):
        self.slots = slots = _Slots(op in LIFTED)
        draws = torch.Tag.nondeterministic_seeded in op.tags
        if draws:
            slots.order.append((0, STATE))
        given = [(a, slots.take(v, "Tensor" in str(a.type))) for a, v in rows]
        function, written = (drawn.form_of(op, rows) if draws else LIFTED.get(op) or form_of(op) or op), _written(op)

        def call(*tensors):
            plain = [t for (_, kind), t in zip(slots.order, tensors) if kind == TENSOR]
            inputs = [_as_number(t, plain) if kind == NUMBER else t for (_, kind), t in zip(slots.order, tensors)]
            values = [(a, _fill(v, inputs)) for a, v in given]
            out = function(
                *inputs[:draws], *[v for a, v in values if not a.kwarg_only], **{a.name: v for a, v in values if a.kwarg_only}
            )
            outs = out if len(written) > 1 else [out]
            return [t for at, o in zip(written, outs) if at is None for t in _leaves(o)]

        with FakeTensorMode(allow_fallback_kernels=False), plain_attention():
            self.resized = self._sizes_of_out(op, given)
            trace = make_fx(torch.func.functionalize(call), decomposition_table=decompositions.table())
            self.module = trace(*map(self._fake, slots.order))

    def _sizes_of_out(self, op, given):
        """{number of an out= argument without elements: (sizes, strides) that it will be given}. Raises when torch refuses its type."""
        tensor = lambda i: self.slots.tensors[self.slots.order[i][0]]
        out = [v.number for a, v in given if a.is_out and isinstance(v, _Slot)]
        others = [t for i, (_, kind) in enumerate(self.slots.order) if kind == TENSOR and i not in out for t in [tensor(i)]]
        known = all(_kept_in(tensor(i), others) for i in out)
        out = [i for i in out if not tensor(i).numel()]
        self.resized = {}
        if not out and known:
            return {}
        fakes = list(map(self._fake, self.slots.order))
        values = [(a, _fill(v, fakes)) for a, v in given]
        op(*[v for a, v in values if not a.kwarg_only], **{a.name: v for a, v in values if a.kwarg_only})
        if (plain := _without_out(op)) and out:  # its result is in the order of its operands; what a trace resizes is not
            fakes[out[0]] = plain(*[v for a, v in values if not a.kwarg_only], **{a.name: v for a, v in values if a.kwarg_only and not a.is_out})
        return {self.slots.order[i][0]: (tuple(fakes[i].shape), fakes[i].stride()) for i in out if fakes[i].numel()}

    def _fake(self, slot):
        number, kind = slot
        if kind == LIFT:
            return torch.empty((), dtype=torch.float64)
        if kind == STATE:
            return torch.empty(randomness.WORDS, dtype=torch.int64)
        t = self.slots.tensors[number]
        return torch.empty_strided(*self.resized.get(number, (t.shape, t.stride())), dtype=t.dtype)


# --- rows for device.cpp --------------------------------------------------------------------------


def _returns(op, rows, slots, picks):
    """Rows of results: length of a list or -1, then (is argument, number) of each tensor, -1 for none. A list of new tensors takes
    all that are left: no operator gives two."""
    out, fresh = [len(op._schema.returns)], iter(picks)
    number = {id(t): i for i, t in enumerate(slots.tensors)}
    arguments = [[number[id(v)] for v in _leaves(value) if id(v) in number] for _, value in rows]
    for result, at in zip(op._schema.returns, _written(op)):
        is_list = str(result.type) != "Tensor"
        if at is not None:
            values = [(1, n) for n in arguments[at]]
        else:
            values = [(0, n) for n in (fresh if is_list else [next(fresh)])]
        out.append(len(values) if is_list else -1)
        out += itertools.chain.from_iterable(values)
    return out


def _row(step, inputs, returns, slots, resized):
    row = [len(resized)]
    for number, (sizes, strides) in resized.items():
        row += [number, len(sizes), *sizes, *strides]
    row.append(len(inputs))
    for number, port in zip(inputs, step.program.inputs):
        index, kind = slots.order[number]
        row += [index, KINDS[kind], int(port.dense)]
    row.append(len(step.program.outputs))
    for port, (alias, shape, strides, dtype) in zip(step.program.outputs, step._outs):
        copy_to = -1
        if alias is None and port.wanted_alias is not None:
            copy_to = slots.order[inputs[port.wanted_alias]][0]
        row += [-1 if alias is None else alias, copy_to, SCALAR_TYPES[dtype], len(shape), *shape, *strides]
    return row + returns


class Counted:
    """Something device.cpp runs and counts."""

    def __init__(self, name, entry):
        self.name, self.entry = name, entry

    @property
    def runs(self):
        return native.load().neuron_runs(self.entry)


class EagerProgram(Counted):
    """A program of one operator, for the report."""

    eager, group = True, None

    def __init__(self, name, executable, entry):
        super().__init__(name, entry)
        self.executable = executable

    @property
    def title(self):
        return self.name


class HostOperator(Counted):
    """An operator that runs on the CPU's kernels, why, and the user's line that was the first to call it so."""

    def __init__(self, name, reason, entry, place):
        super().__init__(name, entry)
        self.reason, self.place = reason, place


HOST: list[HostOperator] = log.host
PROGRAMS: list[EagerProgram] = []  # what device.cpp has pointers to


def _shapes(slots):
    return " ".join("x".join(map(str, t.shape)) or "()" for t in slots.tensors[:4])


class OtherDevices(RuntimeError):
    """Tensors of the CPU beside the device's, where every device refuses that."""


_OF_ONE_DEVICE = {
    "mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution_overrideable", "embedding", "cat", "gather", "scatter", "scatter_add",
    "index_select", "nll_loss_forward", "nll_loss2d_forward", "native_layer_norm", "native_group_norm", "native_batch_norm",
}  # fmt: skip


def _needs_one_device(op):
    name = op._schema.name.removeprefix("aten::").removesuffix("_")
    packet = getattr(aten, name, None)
    return name in _OF_ONE_DEVICE or (packet is not None and any(torch.Tag.pointwise in getattr(packet, o).tags for o in packet.overloads()))


def _check_devices(op, rows):
    """A number (a tensor without dimensions) may be anywhere, and so may indices, but not what is written."""
    tensors = [t for _, v in rows for t in _leaves(v) if isinstance(t, torch.Tensor)]
    own = next((t.device for t in tensors if t.is_neuron), None)
    out = own is not None and any(a.is_out and isinstance(v, torch.Tensor) and not v.is_neuron for a, v in rows)
    if not out and not any(not t.is_neuron and t.dim() for t in tensors):
        return
    if out or (own is not None and _needs_one_device(op)):
        raise OtherDevices(f"Expected all tensors to be on the same device, but found at least two devices, {own} and cpu! (in {op})")
    raise NotLowered("tensors of the CPU")


_OF_ONE_TYPE = {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "vdot", "convolution_overrideable"}


def _check_types(op, rows):
    """Traced, they would be taken as they come; the host's kernels refuse them."""
    name = op._schema.name.removeprefix("aten::").removesuffix("_")
    if name in _OF_ONE_TYPE and len({v.dtype for _, v in rows if isinstance(v, torch.Tensor)}) > 1:
        raise NotLowered("operands of several types")


def _kept_in(out, others):
    """May an out= argument of that type hold what the others give? Where it may not, torch's own rules are asked."""
    rank = lambda kind: (kind.is_complex, kind.is_complex or kind.is_floating_point, kind != torch.bool)
    return all(rank(t.dtype) <= rank(out.dtype) for t in others)


# --- what the CPU refuses -------------------------------------------------------------------------

_LOOKED_AT = 1 << 24  # bytes of a call; larger ones are taken at their word


class _Copies:
    """Arguments on the CPU, in copies that share memory where the arguments do."""

    def __init__(self):
        self.tensors, self.memory = {}, {}

    def _memory(self, t):
        storage = t.untyped_storage()
        if storage._cdata not in self.memory:
            whole = torch.empty(0, dtype=torch.uint8, device=t.device).set_(storage)
            whole = torch.ops.opentrn.host_view(whole) if t.is_neuron else whole
            self.memory[storage._cdata] = whole.clone().untyped_storage()
        return self.memory[storage._cdata]

    def take(self, value):
        if isinstance(value, torch.Tensor):
            if id(value) not in self.tensors:
                copy = torch.empty(0, dtype=value.dtype).set_(self._memory(value), value.storage_offset(), value.shape, value.stride())
                self.tensors[id(value)] = copy
            return self.tensors[id(value)]
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.take, value))
        if isinstance(value, torch.device):
            return torch.device("cpu")
        return torch.Generator() if isinstance(value, torch.Generator) else value


def _refuse(op, rows):
    """Raises what the CPU says to a call that it refuses: types or sizes that do not fit, memory written under two names. A trace
    knows of some of that only. What the CPU has no kernel for, it does not refuse."""
    tensors = [t for _, v in rows for t in _leaves(v) if isinstance(t, torch.Tensor)]
    draws = torch.Tag.nondeterministic_seeded in op.tags and not any("Generator" in str(a.type) for a, _ in rows)
    plain = all(t.layout == torch.strided and (t.is_neuron or not t.dim()) and not t.is_quantized and not torch._C._is_cow_tensor(t) for t in tensors)
    if draws or not plain or sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}.values()) > _LOOKED_AT:
        return
    copies = _Copies()

    def copy(argument, value):
        if value is None and argument.name == "generator":
            return torch.Generator()
        if "Tensor" in str(argument.type) and type(value) in _NUMBER:
            return _as_number(torch.tensor(value, dtype=_NUMBER[type(value)]), tensors)
        return copies.take(value)

    values = [(a, copy(a, v)) for a, v in rows]
    with torch.no_grad(), torch.autocast("cpu", enabled=False), contextlib.suppress(NotImplementedError):
        op(*[v for a, v in values if not a.kwarg_only], **{a.name: v for a, v in values if a.kwarg_only})


def _compile(library, op, rows):
    _check_devices(op, rows)
    if torch.Tag.dynamic_output_shape in op.tags:
        raise NotLowered("its size depends on values")
    if library.neuron_overlapping():
        raise NotLowered("it writes memory that has several names in the call")
    if op in (aten.max.default, aten.min.default) and not rows[0][1].numel():
        raise NotLowered("the largest of nothing")  # which the host refuses
    _check_types(op, rows)
    traced = _Traced(op, rows)
    slots = traced.slots
    plan = Plan(traced.module, f"{op} {_shapes(slots)}".strip(), whole=True)
    if plan.fast is None:
        raise NotLowered("nothing to compute")
    step, inputs, picks = plan.fast
    if any(kind != "node" and pick != ("is", None) for pick in picks for kind in pick[:1]):
        raise NotLowered("a result that is an argument")
    returns = _returns(op, rows, slots, [-1 if kind == "is" else number for kind, number in picks])
    row = _row(step, inputs, returns, slots, traced.resized)
    entry = library.neuron_program(step.executable._handle, (ctypes.c_int64 * len(row))(*row))
    PROGRAMS.append(EagerProgram(step.graph.name, step.executable, entry))
    log.replace_graph(step.graph, PROGRAMS[-1])


def _nothing(op):
    """Values of the types that an operator returns: device.cpp throws them away."""
    kinds = {"Tensor": None, "bool": False, "float": 0.0, "number": 0, "Scalar": 0, "int": 0}
    values: list[Any] = [kinds.get(str(r.type), []) for r in op._schema.returns]
    return tuple(values) if len(values) > 1 else values[0] if values else None


def _gives_nothing(op, rows):
    """Have all results of a call no elements? Then nobody computes anything."""
    with FakeTensorMode(allow_fallback_kernels=False, allow_non_fake_inputs=True) as mode, contextlib.suppress(Exception):
        slots = _Slots(False)
        given = [(a, slots.take(v, False)) for a, v in rows]
        fakes = [mode.from_tensor(t) for t in slots.tensors]
        values = [(a, _fill(v, fakes)) for a, v in given]
        out = op(*[v for a, v in values if not a.kwarg_only], **{a.name: v for a, v in values if a.kwarg_only})
        return not any(t.numel() for t in torch.utils._pytree.tree_leaves(out))
    return False


@contextlib.contextmanager
def _outermost():
    """As if nobody were around the call: a tensor subclass (DTensor) that hands an operator down has switched off what
    tracing is made of."""
    include, exclude = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    for name in ("Functionalize", "FuncTorchDynamicLayerFrontMode", "FuncTorchDynamicLayerBackMode", "PythonTLSSnapshot"):
        exclude = exclude.remove(getattr(torch._C.DispatchKey, name))
    with unset_fake_temporarily(), torch._C._ForceDispatchKeyGuard(include, exclude):
        yield


@contextlib.contextmanager
def _no_traceback():
    """Of a call that torch cannot trace: the host runs it, and says what is wrong if something is."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    was, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was


@torch._disable_dynamo
@outside.hidden()
def prepare(op, *args, **kwargs):
    """Called by device.cpp through the dispatcher; tells it what the call means. With OTRN_TORCH_INDEX also before each run, to look at
    its indices."""
    library = native.load()
    if library.neuron_looking():
        indices.check_call(op, args, kwargs)
        return _nothing(op)
    rows = _values(op, args, kwargs)
    with _outermost():
        _refuse(op, rows)
    try:
        with _outermost(), _no_traceback():
            _compile(library, op, rows)
    except (KeyboardInterrupt, OtherDevices):
        raise
    except Exception as why:  # whatever keeps it from the device, the host can do
        reason = str(why).splitlines()[0] if str(why) else type(why).__name__
        entry = library.neuron_host()
        with _outermost(), _no_traceback():
            if not _gives_nothing(op, rows):
                HOST.append(HostOperator(str(op), reason, entry, outside.user_line()))
    return _nothing(op)
