# SPDX-License-Identifier: Apache-2.0
"""The example programs run to their closing reports; a few steps only."""

import importlib.util
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from conftest import ROOT


def test_generation_on_inf2():
    words = [sys.executable, str(ROOT / "examples" / "torch" / "generate_inf2.py"), "--steps=2", "--tokens=2"]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert "'the quick brown ' -> '" in text and "inf2" in text, text


@pytest.mark.parametrize("name", ["bert_finetune", "gpt2_pretrain"])
def test_torch_example(name, capsys):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "torch" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run = module.main(["--steps=2", "--batch=4"])
    text = capsys.readouterr().out
    assert len(run.losses) == 2
    assert "modelled step" in text and "trn2" in text and "device programs" in text
    assert "on the CPU between" not in text and "graph break" not in text
