# SPDX-License-Identifier: Apache-2.0
"""docs/from-gpu.md as a newcomer would use it: its Python as one program, then its commands,
in an empty folder (scripts/recipes.py)."""

import subprocess
import sys

import pytest
from conftest import ROOT

pytest.importorskip("torch")


def test_recipes():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "recipes.py", ROOT / "docs" / "from-gpu.md"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 skipped" in done.stdout
