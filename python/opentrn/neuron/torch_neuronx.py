# SPDX-License-Identifier: Apache-2.0
"""What scripts import as torch_neuronx when AWS's own is not installed: the device is opentrn's."""

import torch  # noqa: F401 (loads the device)

import opentrn

__version__ = f"2.13.0+opentrn.{opentrn.__version__}"
