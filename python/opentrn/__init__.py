# SPDX-License-Identifier: Apache-2.0
"""opentrn: an open Trainium as a device for JAX, PyTorch and Keras, and the `otrn` command.

JAX finds the plugin by itself: `JAX_PLATFORMS=opentrn python prog.py`. What is here tells about
compiled programs:

    compiled = jax.jit(step).lower(*args).compile()
    opentrn.report(compiled, "trn2")["total_us"]   # modelled time of one step
    opentrn.cache_hit(compiled)                    # did it come out of opentrn's cache?
    opentrn.artifact(compiled)                     # the bytes that `otrn run` takes
    with opentrn.profile("trn2") as p: ...         # modelled time of what runs in the block; p.step() by step
    with opentrn.training("GPT", steps=200, tokens=n) as run: ...; run.step(loss)   # progress and closing report
    opentrn.predict(step, *shapes, instance="trn2.48xlarge", nodes=4)   # time, memory, dollars on a fleet, without running
    opentrn.export_step(step, state, batch, "folder")   # for `otrn train folder`: no Python while it trains
    opentrn.validate(step, state, batch)   # is bf16, or fp8, good enough for it? losses and gradients against f64
    opentrn.last_run("trn1", trace="step.json")    # the last program JAX, torch_xla or TensorFlow's device ran: modelled time, engines, timeline
"""

from opentrn._export import export_step, validate
from opentrn._runs import last_run
from opentrn._library import chips_path, include_path, library_path, release
from opentrn._predict.function import predict
from opentrn._profile import profile
from opentrn._report import artifact, cache_hit, report
from opentrn._training import training

__version__ = release()
__all__ = [
    "__version__",
    "artifact",
    "cache_hit",
    "chips_path",
    "export_step",
    "include_path",
    "last_run",
    "library_path",
    "predict",
    "profile",
    "report",
    "training",
    "validate",
]
