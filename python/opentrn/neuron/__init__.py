# SPDX-License-Identifier: Apache-2.0
"""torch.neuron: the device `neuron` of PyTorch on opentrn, with what torch, Accelerate and Transformers ask a device's
module for.

    x = torch.ones(2, device="neuron")
    model = torch.compile(model.to("neuron"), backend="neuron")
"""

import contextlib
import os
import sys
import types

import torch
from torch import library as torch_library

from opentrn import _groups, _imports
from opentrn.neuron import composed, draws, inductor, lifted, native, sized, sparse

_loaded = _used = False
_kernels: list[torch_library.Library] = []  # they undo what they did when they go
_guards: list[object] = []  # torch has their addresses


def _prepare(op, *args, **kwargs):
    from opentrn.neuron import eager  # brings Dynamo and the lowerings, a second

    return eager.prepare(op, *args, **kwargs)


def _lazy_init():
    """Called by torch before the device is first used."""
    global _used
    _load()
    import opentrn.torch  # noqa: F401 (OTRN_TORCH_REPORT looks from here on: inside of an operator it would see nothing)

    _used = True


def _load():
    global _loaded
    if _loaded:
        return
    lifted.install(native.load())
    _loaded = True
    _kernels.append(torch_library.Library("_", "IMPL"))
    _kernels[0].fallback(_prepare, "PrivateUse2")
    _kernels.append(sized.install())
    _kernels.append(composed.install())
    _kernels.append(sparse.install())


def _register():
    torch.utils.rename_privateuse1_backend("neuron")
    torch._register_device_module("neuron", sys.modules[__name__])
    sys.modules["torch.neuron"] = sys.modules[__name__]
    torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True, for_storage=True)
    _groups.register()
    _imports.when_imported("torch._inductor.compile_fx", inductor.stand_before)
    _imports.when_imported("torch.distributed.tensor._random", draws.install)
    if not _load_now():
        _hold_place()


def _load_now():
    """Loads the device when torch is imported: where it is built, and where several are asked for, because autograd counts them once
    and what holds their place counts as one."""
    several = int(os.environ.get("OPENTRN_DEVICES") or 1) > 1 and native.can_build()
    if not several and not native.path().exists():
        return False
    with contextlib.suppress(RuntimeError):  # told again when the device is used
        _load()
    return _loaded


def _hold_place():
    """A device guard until there is ours: autograd counts devices once, at its first backward pass, and one on the CPU may come
    before the device is built. It counts as one device. And an answer to who asks for the accelerator's name, as every
    torch.distributed.barrier() does: torch asks the part that is built."""

    class Guard(torch._C._acc.DeviceGuard):
        def type_(self):
            return torch._C._autograd.DeviceType.PrivateUse1

    _guards.append(Guard())
    torch._C._acc.register_python_privateuseone_device_guard(_guards[0])
    named = torch._C._get_accelerator
    torch._C._get_accelerator = lambda check=None: named(check) if _loaded else torch.device("neuron")


# --- devices --------------------------------------------------------------------------------------


def is_available():
    """Dynamo asks for each graph, to look at the device's stream: as long as there is no tensor of the device nothing is
    built for that."""
    if not _loaded and torch._guards.CompileContext.try_get() is not None:
        return False
    return _loaded or native.path().exists() or native.can_build()


def is_initialized():
    """Whether anybody has used the device. A mesh of devices asks, and takes the process's own (LOCAL_RANK) where nobody has."""
    return _used


def _is_in_bad_fork():
    return False


def init():
    _lazy_init()


def device_count():
    return native.devices()


def _index(device):
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return current_device() if index is None else index


def current_device():
    _lazy_init()
    return torch.accelerator.current_device_index()


def set_device(device):
    _lazy_init()
    torch.accelerator.set_device_index(_index(device))


class device(contextlib.ContextDecorator):  # noqa: N801 (torch's name)
    """`with torch.neuron.device(1):`"""

    def __init__(self, device):
        self.index = _index(device)

    def __enter__(self):
        self.before = current_device()
        set_device(self.index)

    def __exit__(self, *_):
        set_device(self.before)
        return False


def get_device_name(device=None):
    from opentrn import _library

    return f"opentrn {_library.option('target')}"


def get_device_capability(device=None):
    return None


def get_device_properties(device=None):
    return types.SimpleNamespace(name=get_device_name(device), total_memory=mem_get_info(device)[1])


def can_device_access_peer(device, peer):
    return True


# --- memory: the host's ---------------------------------------------------------------------------


def _of_memory(function, nothing):
    """One of torch.accelerator's functions, for one device; nothing: what it gives before there is any."""

    def call(device=None):
        return function(_index(device)) if _loaded else nothing

    return call


_memory = torch.accelerator.memory
memory_allocated = _of_memory(_memory.memory_allocated, 0)
max_memory_allocated = _of_memory(_memory.max_memory_allocated, 0)
memory_reserved = _of_memory(_memory.memory_reserved, 0)
max_memory_reserved = _of_memory(_memory.max_memory_reserved, 0)
reset_peak_memory_stats = reset_max_memory_allocated = _of_memory(_memory.reset_peak_memory_stats, None)
reset_accumulated_memory_stats = _of_memory(_memory.reset_accumulated_memory_stats, None)
memory_stats = _of_memory(_memory.memory_stats, {})


def mem_get_info(device=None):
    _lazy_init()
    return _memory.get_memory_info(_index(device))


def empty_cache():
    pass


ipc_collect = empty_cache


# --- streams and events: work is done when a call returns -----------------------------------------


def synchronize(device=None):
    pass


def Stream(device=None, priority=0, **_):  # noqa: N802 (torch's name)
    return torch.Stream(device=torch.device("neuron", _index(device)), priority=priority)


def Event(enable_timing=False, **_):  # noqa: N802
    return torch.Event(device="neuron", enable_timing=enable_timing)


def current_stream(device=None):
    _lazy_init()
    return torch.accelerator.current_stream(_index(device))


default_stream = current_stream


def set_stream(stream):
    pass


def stream(stream):
    return contextlib.nullcontext(stream)


# --- random numbers: the CPU's generator, so a run draws what one on the CPU draws ------------------


def manual_seed(seed):
    torch.default_generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def seed():
    return torch.default_generator.seed()


seed_all = seed


def initial_seed():
    return torch.default_generator.initial_seed()


def get_rng_state(device="neuron"):
    return torch.default_generator.get_state()


def set_rng_state(state, device="neuron"):
    torch.default_generator.set_state(state.cpu())


def get_rng_state_all():
    return [get_rng_state()]


def set_rng_state_all(states):
    for state in states[:1]:
        set_rng_state(state)


# --- types ----------------------------------------------------------------------------------------


def is_bf16_supported(including_emulation=True):
    return True


def get_amp_supported_dtype():
    return [torch.bfloat16, torch.float16]
