# SPDX-License-Identifier: Apache-2.0
"""The training examples in a tiny size: every loss beside that of JAX's CPU."""

import importlib
import io

import jax
import numpy as np
import pytest

# Arguments of train(), and how far a loss may be from the CPU's. Rounding differs by an ulp here and there, and
# training makes differences grow.
TINY = {
    "gpt": (dict(steps=12, batch=4, length=32, width=32, layers=2, heads=2), 1e-4),
    "bert": (dict(steps=8, batch=6, length=15, width=32, layers=1, heads=2), 1e-4),
    "vit": (dict(steps=12, batch=16, width=32, layers=1, heads=2), 1e-4),
    "dlrm": (dict(steps=20, batch=64, tables=3, rows=50, width=8), 1e-4),
    "long_context": (dict(steps=10, length=128, block=32, width=32, layers=1, heads=2), 1e-4),
    "pde": (dict(steps=20, batch=64, width=16, layers=2), 1e-4),
}


@pytest.mark.parametrize("name", TINY)
def test_losses_follow_the_cpu(name, cpu, device):
    example = importlib.import_module(name)
    sizes, tolerance = TINY[name]
    runs, texts = [], []
    for where in (device, cpu):
        out = io.StringIO()
        with jax.default_device(where):
            runs.append(example.train(**sizes, out=out))
        texts.append(out.getvalue())
    ours, theirs = (np.array([*getattr(run, "earlier", []), *run.losses]) for run in runs)
    assert len(ours) >= sizes["steps"]
    np.testing.assert_allclose(ours, theirs, rtol=tolerance)
    assert ours[-1] < ours[0]
    for chip in ("trn1", "trn2", "trn3"):
        assert f"\n{chip} " in texts[0] and chip not in texts[1]
    assert "$ per 1M" in texts[0] and "busy" not in texts[1]
    assert texts[0].splitlines()[0] == texts[1].splitlines()[0] and "/s" in texts[1]


def test_a_terminal_sees_one_line():
    import opentrn

    class Terminal(io.StringIO):
        isatty = lambda self: True

    out = Terminal()
    with opentrn.training("x", 50, samples=2, goal=1.0, out=out) as run:
        for i in range(50):
            run.step(2.0 - i / 25)
    text = out.getvalue()
    assert text.count("\n") == 2 and text.count("\r") == 52
    assert run.reached and run.loss == pytest.approx(0.12)
    assert "goal 1 reached" in text and "trn1" not in text


def test_a_log_is_quiet():
    import opentrn

    out = io.StringIO()
    with opentrn.training("x", 1000, tokens=2, goal=1.0, out=out) as run:
        for i in range(1000):
            run.step(2.0)
    assert not run.reached and "goal 1 MISSED" in out.getvalue()
    assert len(out.getvalue().splitlines()) < 15 and "\r" not in out.getvalue()
