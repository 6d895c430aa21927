# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer and Fabric take the device `neuron` as they take a GPU: by name, and where `accelerator="auto"` finds no other.

Lightning knows its accelerators by a list of its own and puts a device it does not know on the CPU, so the module that chooses is
taught when it is imported (`lightning` and its older names); nothing is imported before. So is data parallelism, which takes every
device but the CPU for a GPU.
"""

import functools
import os
import warnings

import torch

from opentrn._imports import when_imported


def _indices(devices):
    """`devices=` of a Trainer as a list: a count, "2", -1 or "-1" for all, [0, 1] or "0,1"."""
    if isinstance(devices, str):
        devices = [int(i) for i in devices.split(",") if i.strip()] if "," in devices else int(devices)
    if isinstance(devices, int):
        count = _count() if devices == -1 else devices
        return list(range(count))
    return list(devices)


def _count():
    return int(os.environ.get("LOCAL_WORLD_SIZE") or torch.neuron.device_count())


class _Neuron:
    """AWS Trainium, by opentrn: what Lightning asks an accelerator."""

    def setup_device(self, device):
        torch.neuron.set_device(device)

    def teardown(self):
        torch.neuron.empty_cache()

    def get_device_stats(self, device):
        return torch.neuron.memory_stats(device)

    parse_devices = staticmethod(_indices)
    auto_device_count = staticmethod(_count)

    @staticmethod
    def get_parallel_devices(devices):
        if max(devices, default=0) >= _count():  # virtual, so there are as many as asked for, in the processes this one starts
            os.environ["OPENTRN_DEVICES"] = str(max(devices) + 1)
        return [torch.device("neuron", i) for i in devices]

    @staticmethod
    def is_available():
        return torch.neuron.is_available()

    @staticmethod
    def name():
        return "neuron"


def _teach_connector(module):
    """Gives the class that chooses accelerator, strategy and precision the one it does not know."""
    connector = getattr(module, "_AcceleratorConnector", None) or module._Connector
    registry = getattr(module, "AcceleratorRegistry", None)
    registry = module.ACCELERATOR_REGISTRY if registry is None else registry
    ours = type("NeuronAccelerator", (_Neuron, module.Accelerator), {})
    choose, strategy, precision = connector._choose_auto_accelerator, connector._choose_strategy, connector._check_and_init_precision

    def choose_auto():
        found = choose()
        return "neuron" if found == "cpu" and _Neuron.is_available() else found

    @functools.wraps(strategy)
    def choose_strategy(self):
        if isinstance(self.accelerator, ours) and len(self._parallel_devices) == 1 and self._num_nodes_flag == 1:
            return module.SingleDeviceStrategy(device=self._parallel_devices[0])
        return strategy(self)

    @functools.wraps(precision)
    def init_precision(self):
        plugin = precision(self)
        if isinstance(self.accelerator, ours) and getattr(plugin, "device", None) == "cuda":  # autocast's device
            plugin.device = "neuron"
        return plugin

    registry.register("neuron", ours, description="AWS Trainium, by opentrn")
    connector._choose_auto_accelerator = staticmethod(choose_auto)
    connector._choose_strategy = choose_strategy
    connector._check_and_init_precision = init_precision


def _teach_ddp(module):
    """No CUDA stream around the making of a module on this device."""
    name = next(n for n in ("determine_ddp_device_ids", "_determine_ddp_device_ids") if hasattr(module.DDPStrategy, n))
    ids = getattr(module.DDPStrategy, name)
    setattr(module.DDPStrategy, name, lambda self: None if self.root_device.type == "neuron" else ids(self))


_PYTORCH, _FABRIC = ("lightning.pytorch", "pytorch_lightning"), ("lightning.fabric", "lightning_fabric")
_TAUGHT = {f"{name}.trainer.connectors.accelerator_connector": _teach_connector for name in _PYTORCH}
_TAUGHT |= {f"{name}.connector": _teach_connector for name in _FABRIC}
_TAUGHT |= {f"{name}.strategies.ddp": _teach_ddp for name in _PYTORCH + _FABRIC}


def _guarded(teach):
    def then(module):
        try:
            teach(module)
        except Exception as why:  # a Lightning of another build must come up without us
            warnings.warn(f"opentrn: this Lightning does not take the device `neuron`: {why!r}", stacklevel=2)

    return then


def install():
    for name, teach in _TAUGHT.items():
        when_imported(name, _guarded(teach))
