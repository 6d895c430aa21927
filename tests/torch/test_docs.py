# SPDX-License-Identifier: Apache-2.0
"""docs/from-gpu.md and docs/from-tf-keras.md as a newcomer would use them: their Python as one program, then their commands,
in an empty folder (scripts/recipes.py)."""

import subprocess
import sys

import pytest
from conftest import ROOT

pytest.importorskip("torch")


@pytest.mark.parametrize("page", ["from-gpu.md", "from-tf-keras.md"])
def test_recipes(page):
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "recipes.py", ROOT / "docs" / page], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 skipped" in done.stdout
