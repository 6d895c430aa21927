# SPDX-License-Identifier: Apache-2.0
"""What scripts import as torch_neuronx when AWS's own is not installed: the device is opentrn's. What else that package has is
refused, with what to write instead."""

import torch  # noqa: F401 (loads the device)

import opentrn

__version__ = f"2.13.0+opentrn.{opentrn.__version__}"
__path__: list[str] = []  # so that `import torch_neuronx.xla_impl` asks missing(), too

_TRACED = 'torch.compile(model, backend="neuron") runs it, opentrn.torch.export_forward(model, folder, inputs) writes it for `otrn run --target=inf2`'
_AWS = "it belongs to AWS's compiler"
INSTEAD = {
    "trace": _TRACED,
    "bucket_model_trace": "a compiled model gets a program for each size that it meets",
    "BucketModelConfig": "a compiled model gets a program for each size that it meets",
    "dynamic_batch": "a compiled model gets a program for each size that it meets",
    "PartitionerConfig": "what has no lowering runs on the CPU by itself, and opentrn.torch.explain() names it",
    "analyze": "`otrn check` of an exported program, or opentrn.torch.explain() after a run",
    "replace_weights": "model.load_state_dict(weights): they are arguments of the programs",
    "async_load": 'model.to("neuron")',
    "lazy_load": 'model.to("neuron")',
    "move_trace_to_device": 'model.to("neuron:1")',
    "DataParallel": "torch.nn.parallel.DistributedDataParallel under torchrun",
    "experimental": "torch.neuron.device(1) for a device, opentrn.profile() for a profile",
    "parallel_compile": "`otrn compile FOLDER`",
    "testing": "torch.testing.assert_close",
    "utils": "torch.neuron.get_device_name() for the chip",
    "nki_op": "kernels in NKI's Python are not read",
    "wrap_nki": "kernels in NKI's Python are not read",
    "xla_impl": _AWS,
    "pyhlo": _AWS,
    "proto": _AWS,
}


def missing(name: str) -> str:
    why = INSTEAD.get(name.partition(".")[0])
    return f"opentrn's torch_neuronx has no {name}" + (f": {why}" if why else "") + " (docs/from-neuron.md)"


def __getattr__(name: str) -> object:
    raise AttributeError(missing(name))
