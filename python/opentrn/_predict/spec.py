# SPDX-License-Identifier: Apache-2.0
"""What a step's programs depend on: a model, and how it lies over the devices of one program."""

import dataclasses

CLIPPED = ("adamw",)  # optimizers of gradients clipped by the norm of all of them
BUCKETS = 32  # of distances between positions, as T5 has them


@dataclasses.dataclass(frozen=True)
class Model:
    """A configuration, as far as a step's time depends on it."""

    kind: str = "llama"
    layers: int = 12
    width: int = 768
    heads: int = 12
    kv: int = 12
    head: int = 64  # features of one
    hidden: int = 3072
    vocab: int = 50257
    norm: str = "layer"  # or rms
    act: str = "gelu"  # gelu (tanh), erf (exact), relu, silu
    gated: bool = False
    places: str = "learned"  # or rotary, none; a span model has a bias on scores
    task: str = "lm"  # lm, mlm (every position, and whether two sentences follow), classes (pictures in patches), span (encoder and decoder)
    classes: int = 1000
    patch: int = 16
    image: int = 224
    positions: int = 1024  # learned ones
    post: bool = False  # norms behind the sums, as BERT has them
    parallel: bool = False  # attention and MLP side by side, as GPT-NeoX has them
    bias: bool = True  # of MLPs
    qkv_bias: bool | None = None  # None: as MLPs
    out_bias: bool | None = None
    qk_norm: bool = False
    tied: bool = True  # the head is the table of tokens
    dropout: float = 0.0
    score_dropout: float = 0.0  # of attention's weights
    rotary: float = 1.0  # share of a head's features that rotary positions turn
    experts: int = 0
    chosen: int = 2  # experts for each token
    window: int = 0  # keys that a query sees; 0: all before it
    decoder: int = 0  # layers of the decoder of a span model


@dataclasses.dataclass(frozen=True)
class Cut:
    """How a model lies over the devices of one program, and what a device does at once."""

    tp: int = 1
    cp: int = 1
    ep: int = 1
    sp: bool = False
    seq: int = 1024
    batch: int = 1
    recompute: str = "none"  # selective: attention's scores and weights; full: whole layers
    lora: int = 0
    attention: str = "flash"  # whole: every score, masked or not; plain: scores and weights through HBM as well
    wide: bool = False  # what passes from product to product is fp32, as automatic casting leaves it
    fp8: str = ""  # the type that products of activations and weights round to
    replicas: int = 1  # beside those that share experts, of programs in which replicas meet
    zero: int = 0  # what they share: 1 the optimizer, 2 gradients too, 3 weights too
    meet: bool = False  # do their gradients meet in a micro-batch's program, or in the update?

    @property
    def devices(self):
        return self.replicas * self.ep * self.cp * self.tp


def wanted(seq):
    """Tokens that a span model's decoder makes of a sequence."""
    return max(seq // 4, 1)
