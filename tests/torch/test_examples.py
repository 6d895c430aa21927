# SPDX-License-Identifier: Apache-2.0
"""The example programs run to their closing reports; a few steps only."""

import importlib.util

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from conftest import ROOT


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
