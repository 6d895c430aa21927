# SPDX-License-Identifier: Apache-2.0
"""Scripts for torch_xla that say nothing of opentrn: PJRT_DEVICE=NEURON beside torch_xla's own CPU."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch_xla")
SCRIPTS = sorted((pathlib.Path(__file__).parent / "scripts").glob("*.py"), key=lambda p: p.name)


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


def run(script, device, *launcher, args=(), **more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTRN_", "XLA_", "PJRT_"))}
    env = {**kept, "PJRT_DEVICE": device, "OPENTRN_DEVICES": "4", "OTRN_CACHE": "off", **more}
    return subprocess.run([sys.executable, "-W", "ignore", *launcher, script, *args], env=env, capture_output=True, text=True, timeout=600)


def losses(script, device, *launcher, **more):
    done = run(script, device, *launcher, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("loss ")]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_script(script):
    want, got = losses(script, "CPU"), losses(script, "NEURON")
    assert len(want) >= 4
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    print(script.stem, "worst", max(abs(a - b) / abs(b) for a, b in zip(got, want, strict=True)))


def test_whose_plugin():
    """torch_xla lists a plugin of the same name, for AWS's library; which comes last follows from the order of a folder's files."""
    script = """
import torch_xla
from torch_xla._internal.neuron import NeuronPlugin
from torch_xla.experimental import plugins
from opentrn.torch_xla_plugin import Plugin
for made in (Plugin, NeuronPlugin), (NeuronPlugin, Plugin):
    for plugin in made:
        plugins.register_plugin("NEURON", plugin())
    assert type(plugins.default()) is Plugin, made
print(torch_xla.device())
"""
    done = run("-c", "NEURON", args=[script])
    assert done.returncode == 0 and done.stdout == "xla:0\n", done.stdout + done.stderr


def test_processes_of_torchrun():
    """Two processes, half a batch each, against one with all of it."""
    script = SCRIPTS[0].parent.parent / "data_parallel.py"
    want, got = losses(script, "CPU"), losses(script, "NEURON", *TORCHRUN)
    assert len(want) == len(got) == 4
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("args", [[], ["spawn"]], ids=["launch", "spawn"])
def test_processes_of_launch(args):
    """Two processes, half a batch each, against one with all of it."""
    script = SCRIPTS[0].parent.parent / "launched.py"
    want, got = losses(script, "NEURON", args=args, OPENTRN_DEVICES="1"), losses(script, "NEURON", args=args, NEURONCORE_NUM_DEVICES="2")
    assert len(want) == len(got) == 5
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_autocast():
    assert len(losses(SCRIPTS[0].parent.parent / "autocast.py", "NEURON")) == 4


def test_weights_stay_sharded():
    assert len(losses(SCRIPTS[0].parent.parent / "sharded.py", "NEURON")) == 5


def test_programs_that_differ_by_rank():
    assert len(losses(SCRIPTS[0].parent.parent / "ranks.py", "NEURON", *TORCHRUN)) == 11


def test_collectives_that_differ_by_rank():
    """Shapes of one collective differ: an error that names both."""
    done = run(SCRIPTS[0].parent.parent / "ranks.py", "NEURON", *TORCHRUN, args=["shapes"])
    assert done.returncode and "is at all_reduce of" in done.stderr and "bytes while this one, process" in done.stderr, done.stderr


def test_profile():
    done = run(SCRIPTS[0].parent.parent / "profiled.py", "NEURON")
    assert done.returncode == 0, done.stderr
    assert "3 steps (of the optimizer)" in done.stdout and "aten::histc: 1 runs (torch_xla has no lowering of it)" in done.stdout, done.stdout
