# SPDX-License-Identifier: Apache-2.0
"""What torch_xla calls when it looks for devices (entry point group torch_xla.plugins): PJRT_DEVICE=NEURON.

`opentrn.profile()`, `opentrn.training()`, `opentrn.last_run()` and their pages see what torch_xla runs here; explain() tells of all of it so far.

A process of torch_xla has one device, as on the real chip; only where a program is written over a mesh (`xr.use_spmd()`) it has
all of them, and OPENTRN_DEVICES says how many. `xmp.spawn` and `torch_xla.launch` start so many processes (NEURONCORE_NUM_DEVICES, which scripts
for the real chip set, goes first), `torchrun` as many as it is told; they meet at torch_xla's own coordinator.
"""

import collections
import functools
import importlib.util
import multiprocessing.util
import os
import socket
import sys
from collections.abc import Hashable
from typing import Any

import torch_xla
import torch_xla.debug.metrics as metrics
import torch_xla.runtime as xr
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch_xla._internal.neuron import NeuronPlugin
from torch_xla.experimental import plugins

from opentrn import _profile, _runs
from opentrn._library import library_path

_WHY = "torch_xla has no lowering of it"
_READ = "aten::_local_scalar_dense"  # item(): a copy
_steps: collections.Counter[Hashable] = collections.Counter()  # of each optimizer


def _of_torchrun(name: str, absent: int) -> int:
    return int(os.environ.get(name) or absent)


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def _replicate() -> None:
    """Makes `init_process_group("xla")` do what it does with init_method="xla://": without it torch_xla takes each process for
    the only one and leaves collectives out without a word. AWS's package does the same when it is imported."""
    from torch_xla._internal import pjrt
    from torch_xla.distributed import xla_backend

    before = xla_backend.ProcessGroupXla.__init__

    @functools.wraps(before)
    def made(self: Any, *args: Any) -> None:
        if not torch_xla._XLAC._xla_get_replication_devices_count():
            pjrt.initialize_multiprocess(_of_torchrun("LOCAL_RANK", 0), _of_torchrun("LOCAL_WORLD_SIZE", 1))
        before(self, *args)

    xla_backend.ProcessGroupXla.__init__ = made


def _scatter_apart() -> None:
    """torch_xla makes one reduce-scatter of a list of tensors (ZeRO-1 of NeuronX Distributed, reduce_scatter_bucketized), with a result for
    each, and refuses it then: StableHLO's has one result. Here each tensor has its own."""
    lib = torch_xla._XLAC
    one, into = lib._xla_reduce_scatter, lib._xla_reduce_scatter_out

    def each(kind: str, inputs: Any, token: Any, *args: Any) -> list[Any]:
        results = []
        for x in inputs:
            result, token = one(kind, x, token, *args, None, None)  # no channel, no ids of the whole job: what a list has
            results.append(result)
        return [*results, token]

    def each_into(kind: str, outputs: Any, inputs: Any, token: Any, *args: Any) -> Any:
        for output, x in zip(outputs, inputs, strict=True):
            token = into(kind, output, x, token, *args)
        return token

    lib._xla_reduce_scatter_coalesced, lib._xla_reduce_scatter_coalesced_out = each, each_into


def _last_out() -> None:
    """Process 0 has torch_xla's coordinator: whoever is still about to end when it is gone is aborted, so it is the last to go, unless
    it fails. Processes of xmp.spawn end without atexit, so this is multiprocessing's own, which others run at their end, too."""

    def leave() -> None:
        _runs.leave(last=_of_torchrun("RANK", 0) == 0 and not hasattr(sys, "last_value"))

    multiprocessing.util.Finalize(None, leave, exitpriority=0)


def _choose() -> None:
    """torch_xla has an entry point of the same name, for AWS's library, and takes the one that is listed last, in the order of a folder's
    files: it is AWS's where that library is installed, else ours."""
    before = plugins.register_plugin
    other = Plugin if importlib.util.find_spec("libneuronxla") else NeuronPlugin

    @functools.wraps(before)
    def register(name: str, plugin: Any) -> None:
        if type(plugin) is not other:
            before(name, plugin)

    plugins.register_plugin = register


def _stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
    _steps[id(optimizer)] += 1


def _outside() -> list[_profile.Outside]:
    """Operators that torch_xla ran on the CPU so far, as its own counters have them."""
    names = [n for n in metrics.counter_names() if n.startswith("aten::") and n != _READ]
    return [_profile.Outside(n, n, "", _WHY, metrics.counter_value(n)) for n in names]


def explain() -> str:
    """Device programs and what ran outside them, as text."""
    programs = _runs.told()
    return "\n".join([f"{len(programs)} device programs", *programs, *_profile.outside_text(_outside())])


class Plugin(plugins.DevicePlugin):
    def __init__(self) -> None:
        super().__init__()
        if os.environ.get("PJRT_DEVICE") == "NEURON":
            _profile.SOURCES.append(_profile.Source(list, outside=_outside, steps=lambda: dict(_steps)))
            register_optimizer_step_post_hook(_stepped)
            _runs.keep()
        self._world = _of_torchrun("WORLD_SIZE", 1)
        if self._world > 1 and os.environ.get("PJRT_DEVICE") == "NEURON":
            port = _of_torchrun("MASTER_PORT", 29500)
            os.environ.setdefault("XLA_COORDINATOR_PORT", str(port + 1 if port < 65535 else port - 1))  # else one for all jobs of a host
            _replicate()
            _scatter_apart()
            _last_out()

    def library_path(self) -> str:
        return library_path()

    def configure_single_process(self) -> None:
        pass

    def configure_multiprocess(self, local_rank: int, local_world_size: int) -> None:
        """Of a process that xmp.spawn or torch_xla.launch has started: as torchrun would have told it."""
        if self._world == 1 < local_world_size:
            self._world = local_world_size
            told = {"RANK": local_rank, "LOCAL_RANK": local_rank, "WORLD_SIZE": local_world_size, "LOCAL_WORLD_SIZE": local_world_size}
            os.environ.update({name: str(value) for name, value in told.items()})
            _scatter_apart()
            _last_out()

    def physical_chip_count(self) -> int:
        """Processes that xmp.spawn and torch_xla.launch start."""
        if self._world > 1:
            return _of_torchrun("LOCAL_WORLD_SIZE", 1)
        count = int(os.environ.get("NEURONCORE_NUM_DEVICES") or os.environ.get("OPENTRN_DEVICES") or 1)
        if count > 1:
            os.environ.setdefault("XLA_COORDINATOR_PORT", str(_free_port()))  # inherited by those processes
        return count

    def requires_xla_coordinator(self) -> bool:
        return self._world > 1

    def client_create_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {} if xr.is_spmd() else {"devices": "1"}
        if self._world > 1:
            options |= {"num_nodes": self._world, "node_id": _of_torchrun("RANK", 0)}
        return options


_choose()
