# SPDX-License-Identifier: Apache-2.0
"""Exports the training step of digits_mlp.py as StableHLO text and bytecode, with inputs.

python examples/jax/export_mlp.py --out=build/mlp
build/otrn run build/mlp/mlp.mlirbc $(ls build/mlp/*.npy | sed 's/^/--input=/') --output=out
"""

import argparse
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax

import digits_mlp
import export_common


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="build/mlp")
    o = parser.parse_args()
    (images, labels), _ = digits_mlp.data()
    params = digits_mlp.init()
    args = params, digits_mlp.optimizer.init(params), *next(digits_mlp.batches(images, labels, 1))
    lowered = jax.jit(digits_mlp.step, donate_argnums=(0, 1), keep_unused=True).lower(*args)
    text = export_common.save(lowered, args, o.out, "mlp")
    loss = float(lowered.compile()(*args)[2])
    print(f"{o.out}/mlp.mlir: {text.count('stablehlo.')} ops")
    print(f"the loss on JAX's CPU, the last result, is {loss:.9g}")


if __name__ == "__main__":
    main()
