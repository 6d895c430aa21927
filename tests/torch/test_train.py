# SPDX-License-Identifier: Apache-2.0
"""`otrn train` against PyTorch: the same weights, data and update."""

import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import gpt_same


def test_gpt_steps_equal_torch(tmp_path):
    """From the checkpoint behind the first step torch.optim.AdamW makes the same five; `make gpt-same` does it with GPT-2 124M and 20."""
    sizes = {"layers": 2, "dim": 32, "heads": 2, "vocab": 256, "seq": 16, "batch": 4}
    assert gpt_same.compare(str(ROOT / "build" / "otrn"), tmp_path, sizes, 5, ["torch"], rate=1e-3) == []
