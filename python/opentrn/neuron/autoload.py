# SPDX-License-Identifier: Apache-2.0
"""The entry point in group torch.backends: `import torch` gives torch the device `neuron`, in a few milliseconds.

Nothing is built here: the C++ part is when the device is first used. Where AWS's own torch_neuronx is installed, the
device is theirs and this does nothing.
"""

import importlib.abc
import importlib.util
import pathlib
import sys
import warnings

import torch


class _Finder(importlib.abc.MetaPathFinder):
    """`import torch_neuronx` gives ours, when nobody else has one: it is asked last."""

    def find_spec(self, name, path=None, target=None):
        package, _, inside = name.partition(".")
        if package != "torch_neuronx":
            return None
        if inside:  # no ModuleNotFoundError: `from torch_neuronx import trace` would lose its text
            raise ImportError(sys.modules[package].missing(inside), name=name)
        return importlib.util.spec_from_file_location(name, pathlib.Path(__file__).with_name("torch_neuronx.py"))


OLDEST = (2, 13)


def load():
    if importlib.util.find_spec("torch_neuronx") or torch._C._get_privateuse1_backend_name() != "privateuseone":
        return
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST:
        if importlib.util.find_spec("torch_xla") is None:  # it wants such a torch, and has a device of its own
            warnings.warn(f"opentrn: no device `neuron`: it needs torch {OLDEST[0]}.{OLDEST[1]} or newer, this is {torch.__version__}", stacklevel=2)
        return
    try:
        from opentrn import neuron
        from opentrn.neuron import lightning

        sys.meta_path.append(_Finder())
        lightning.install()
        neuron._register()
    except Exception as why:  # torch must come up whatever is wrong here
        warnings.warn(f"opentrn: no device `neuron`: {why}", stacklevel=2)
