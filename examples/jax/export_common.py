# SPDX-License-Identifier: Apache-2.0
"""Writes a lowered JAX function as files that `otrn run` and `otrn eval` take."""

import pathlib

import jax
import numpy as np
from jaxlib.mlir.dialects import stablehlo

VHLO_VERSION = "1.13.0"  # what the plugin asks of jaxlib: files and jit see the same encoding


def save(lowered, args, folder, name, inputs=True):
    """NAME.mlir (text), NAME.mlirbc (portable bytecode) and NAME_in_000.npy, … as inputs.

    Inputs are numbered in the order of arguments. The function must have been jitted with
    keep_unused=True, or JAX leaves arguments out. Ops of JAX's chlo dialect (square, erf_inv,
    top_k, …) have no portable form and make this fail. Returns the text.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = lowered.as_text()
    code = stablehlo.serialize_portable_artifact_str(text, VHLO_VERSION)
    (folder / f"{name}.mlir").write_text(text)
    (folder / f"{name}.mlirbc").write_bytes(code)
    if inputs:
        for i, leaf in enumerate(jax.tree.leaves(args)):
            np.save(folder / f"{name}_in_{i:03}.npy", np.asarray(leaf))
    return text


def export(step, args, folder, name, donate=(), inputs=True, cpu=False):
    """Saves a training step, and with cpu what JAX's CPU gives for it: NAME_out_000.npy, …"""
    lowered = jax.jit(step, donate_argnums=donate, keep_unused=True).lower(*args)
    text = save(lowered, args, folder, name, inputs)
    ops = text.count("stablehlo.") + text.count(" call @")
    count = sum(leaf.size for leaf in jax.tree.leaves(args[0]))
    print(f"{folder}/{name}.mlir: {count / 1e6:.1f}M parameters, {ops} ops, {len(text) / 1e3:.0f} kB of text")
    if cpu:
        results = jax.tree.leaves(lowered.compile()(*args))
        for i, leaf in enumerate(results):
            np.save(pathlib.Path(folder) / f"{name}_out_{i:03}.npy", np.asarray(leaf))
        print(f"loss on JAX's CPU: {float(results[-1]):.9g}")
