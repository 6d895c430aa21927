# SPDX-License-Identifier: Apache-2.0
"""Process groups named after us, known to torch.distributed as soon as the device is; what they are made of is brought when
one is made."""

import torch
import torch.distributed


def _group(backend):
    def create(options, backend_options=None):
        from opentrn.torch import distributed  # with it the lowerings, which take a second

        return distributed._create(backend, options, backend_options)

    return create


def register():
    """`neuron` is ours only while nobody else's; it is the device's default."""
    if not torch.distributed.is_available():
        return
    known = torch.distributed.Backend
    for name in ("neuron", "opentrn"):
        if not hasattr(known, name.upper()):
            known.register_backend(name, _group(name), extended_api=True, devices=["cpu", "neuron"])
