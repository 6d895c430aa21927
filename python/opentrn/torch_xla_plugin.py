# SPDX-License-Identifier: Apache-2.0
"""What torch_xla calls when it looks for devices (entry point group torch_xla.plugins): PJRT_DEVICE=NEURON.

A process of torch_xla has one device, as on the real chip; only where a program is written over a mesh (`xr.use_spmd()`) it has
all of them, and OPENTRN_DEVICES says how many.
"""

import os
from typing import Any

import torch_xla.runtime as xr
from torch_xla.experimental import plugins

from opentrn._library import library_path


class Plugin(plugins.DevicePlugin):
    def library_path(self) -> str:
        return library_path()

    def configure_single_process(self) -> None:
        pass

    def configure_multiprocess(self, local_rank: int, local_world_size: int) -> None:
        pass

    def client_create_options(self) -> dict[str, Any]:
        return {} if xr.is_spmd() else {"devices": "1"}
