# SPDX-License-Identifier: Apache-2.0
"""Keras 3 on the JAX backend: fit with callbacks, mixed precision, saving and loading, profile, the
example. In a process of its own, because the backend is chosen at import."""

import os
import pathlib
import subprocess
import sys
from importlib.util import find_spec

import pytest
from conftest import ROOT

CHECKS = ("same_losses", "callbacks", "mixed_precision", "save_and_load", "profile", "example")
pytestmark = pytest.mark.skipif(
    not (find_spec("keras") and find_spec("jax")), reason="needs keras and jax"
)


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    program = pathlib.Path(__file__).parent / "keras_program.py"
    ran = subprocess.run(
        [sys.executable, program, str(tmp_path_factory.mktemp("keras"))],
        env=os.environ,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    return ran.stdout


@pytest.mark.parametrize("check", CHECKS)
def test_keras(check, output):
    assert f"{check} holds" in output, output


def test_closing_report(output):
    assert "loaded again" in output and "modelled step" in output
