# SPDX-License-Identifier: Apache-2.0
"""What the training examples share: the command line, and text that every machine with Python has."""

import argparse
import os
import pathlib

import jax
import numpy as np

SEED = 0


def arguments(doc, **sizes):
    """--platform, and one option for each size. Chooses the platform, so it comes before any array."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--platform", help="opentrn (the default) or cpu; JAX_PLATFORMS does the same")
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    args = parser.parse_args()
    chosen = args.platform or os.environ.get("JAX_PLATFORMS") or "opentrn,cpu"
    jax.config.update("jax_platforms", chosen)
    return args


def prose():
    """The texts of Python's own help(), as bytes: about half a million characters of English."""
    from pydoc_data.topics import topics

    return np.frombuffer("\n\n".join(topics[t] for t in sorted(topics)).encode(), np.uint8)


def sources(package):
    """The source files of a package of the standard library, as bytes."""
    folder = pathlib.Path(os.__file__).parent / package
    return np.frombuffer(b"\n".join(p.read_bytes() for p in sorted(folder.glob("*.py"))), np.uint8)


def windows(text, count, length, rng):
    """`count` pieces of `length` bytes from anywhere in the text."""
    at = rng.integers(0, len(text) - length, count)
    return text[at[:, None] + np.arange(length)].astype(np.int32)


def parameters(model):
    """How many numbers the model learns."""
    from flax import nnx

    return sum(x.size for x in jax.tree.leaves(nnx.state(model, nnx.Param)))
