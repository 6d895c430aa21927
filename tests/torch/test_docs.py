# SPDX-License-Identifier: Apache-2.0
"""docs/from-gpu.md as a newcomer would use it: its Python as one program, then its commands, in an
empty home folder."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from conftest import ROOT


def _blocks(kind):
    text = (ROOT / "docs" / "from-gpu.md").read_text()
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.M | re.S)


def test_from_gpu(tmp_path):
    program = tmp_path / "train.py"
    program.write_text("\n".join(_blocks("python")))
    env = {k: v for k, v in os.environ.items() if not k.startswith("OTRN_CACHE")}
    env |= {"HOME": str(tmp_path), "PATH": f"{ROOT / 'build'}:{os.environ['PATH']}"}

    def run(*command):
        ran = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    said = run(sys.executable, program)
    assert "modelled step" in said and "per 1M samples" in said and "torch.step" in said
    assert "on the CPU between" not in said
    commands = next(block for block in _blocks("sh") if "otrn compile" in block)
    said = run("sh", "-ec", commands)
    assert "trn1" in said and "result 0" in said
