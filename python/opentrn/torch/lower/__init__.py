# SPDX-License-Identifier: Apache-2.0
"""ATen and prims operators as StableHLO; importing this fills the table."""

from opentrn.torch.lower import collective, contract, elementwise, functions, index, linalg, random, reduce, shape
from opentrn.torch.lower.table import TABLE, NotLowered

__all__ = [
    "TABLE",
    "NotLowered",
    "collective",
    "contract",
    "elementwise",
    "functions",
    "index",
    "linalg",
    "random",
    "reduce",
    "shape",
]
