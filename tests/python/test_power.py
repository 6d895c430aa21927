# SPDX-License-Identifier: Apache-2.0
"""Power cuts during a training run, a few of them; `make power-cut` makes 200."""

import shutil
import subprocess
import sys

import pytest
from conftest import OTRN, ROOT


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_nothing_that_was_saved_is_lost(tmp_path):
    recorder = tmp_path / "record.so"
    subprocess.run(["cc", "-O1", "-fPIC", "-shared", ROOT / "scripts" / "power_record.c", "-o", recorder, "-ldl", "-pthread"], check=True)
    done = subprocess.run([sys.executable, ROOT / "scripts" / "power_cut.py", OTRN, recorder, "6"], capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert done.returncode == 0 and "6 cuts" in done.stdout, done.stdout + done.stderr
