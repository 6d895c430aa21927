# SPDX-License-Identifier: Apache-2.0
"""Writes a lowered JAX function as files that `otrn run` and `otrn eval` take."""

import argparse
import pathlib

import jax
import numpy as np
from jaxlib.mlir.dialects import stablehlo

VHLO_VERSION = "1.13.0"  # what the plugin asks of jaxlib: files and jit see the same encoding


def save(lowered, args, folder, name, inputs=True):
    """NAME.mlir (text), NAME.mlirbc (portable bytecode) and NAME_in_000.npy, … as inputs.

    Inputs are numbered in the order of arguments. The function must have been jitted with
    keep_unused=True, or JAX leaves arguments out. Ops of JAX's chlo dialect (erf, square, top_k, …)
    and shardings have no portable form: then there is only the text. Returns the text.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = lowered.as_text(debug_info=True)  # lines, layers and the names of arguments, for profiles
    (folder / f"{name}.mlir").write_text(text)
    if "chlo." not in text and "sdy." not in text:
        code = stablehlo.serialize_portable_artifact_str(text, VHLO_VERSION)
        (folder / f"{name}.mlirbc").write_bytes(code)
    if inputs:
        for i, leaf in enumerate(jax.tree.leaves(args)):
            np.save(folder / f"{name}_in_{i:03}.npy", np.asarray(leaf))
    return text


def layers(all_of_them):
    """Each in a scope of its own, so that a profile (otrn prof --group=layer) tells them apart."""
    for i, params in enumerate(all_of_them):
        with jax.named_scope(f"layer{i}"):
            yield params


def options(doc, name, sizes):
    """Options of an exporter: sizes, --dtype, --out, --no-inputs, --cpu. Returns them and the JAX type.

    A model with a place for dropout has the size "dropout", in percent, and gets --prng with it.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    for key, value in sizes.items():
        parser.add_argument(f"--{key}", type=int, default=value)
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    if "dropout" in sizes:
        kinds = ("threefry2x32", "rbg", "unsafe_rbg")
        parser.add_argument("--prng", choices=kinds, default=kinds[0])
    parser.add_argument("--out", default=f"build/{name}")
    parser.add_argument("--no-inputs", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    o = parser.parse_args()
    return o, {"fp32": jax.numpy.float32, "bf16": jax.numpy.bfloat16}[o.dtype]


class Dropout:
    """Dropout as models write it: every call draws from a key of its own. Without a key it is nothing."""

    def __init__(self, percent, key):
        self.keep, self.key = 1 - percent / 100, key

    def __call__(self, x):
        if self.key is None:
            return x
        self.key, key = jax.random.split(self.key)
        kept = jax.random.bernoulli(key, self.keep, x.shape)
        return jax.numpy.where(kept, x / self.keep, 0).astype(x.dtype)


def dropout_key(o):
    """The last arguments of a step: a key's data where there is dropout, else nothing."""
    if not o.dropout:
        return ()
    return (np.asarray(jax.random.key_data(jax.random.key(o.seed, impl=o.prng))),)


def dropout_of(o, key):
    """Dropout from the last arguments of a step."""
    return Dropout(o.dropout, jax.random.wrap_key_data(key[0], impl=o.prng) if key else None)


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
