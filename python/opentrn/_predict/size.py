# SPDX-License-Identifier: Apache-2.0
"""A model counted: its weights, to the last one, and the FLOP of a sequence. Nothing here knows of layouts or machines."""

from opentrn._predict.spec import BUCKETS, wanted


def _products(m):
    """Weights of a layer's products: of queries and what attention makes, of keys and values, of the MLP (of a mixture, of one expert)."""
    return 2 * m.width * m.heads * m.head, 2 * m.width * m.kv * m.head, (3 if m.gated else 2) * m.width * m.hidden


def each_product(m):
    """Weights of each product of a layer, in the order in which they are needed."""
    q, kv, mlp = _products(m)
    parts = 3 if m.gated else 2
    return [q // 2, kv // 2, kv // 2, q // 2, *[mlp // parts] * (parts * max(m.experts, 1))]


def _adapters(m, rank):
    """The same of low-rank adapters; experts have none."""
    mlp = 0 if m.experts else (3 if m.gated else 2) * (m.width + m.hidden)
    return 2 * rank * (m.width + m.heads * m.head), 2 * rank * (m.width + m.kv * m.head), rank * mlp


def _norm(m, size=None):
    return (2 if m.norm == "layer" else 1) * (size or m.width)


def parameters(m):
    """Weights of a model: of attention, of MLPs, each with its norm and biases, and of its ends."""
    qkv, out = (m.bias if v is None else v for v in (m.qkv_bias, m.out_bias))
    q, kv, mlp = _products(m)
    attention = q + kv + _norm(m) + m.head * (m.heads + 2 * m.kv) * qkv + m.width * out + (2 * _norm(m, m.head) if m.qk_norm else 0)
    biases = ((2 if m.gated else 1) * m.hidden + m.width) * m.bias
    mlp = max(m.experts, 1) * (mlp + biases) + _norm(m) + m.width * m.experts
    return (m.layers + 2 * m.decoder) * attention, (m.layers + m.decoder) * mlp, _ends(m)


def _ends(m):
    w = m.width
    if m.task == "classes":
        side = m.image // m.patch
        return (3 * m.patch**2 + 1) * w + w + (side**2 + 1) * w + _norm(m) + (w + 1) * m.classes
    table = m.vocab * w * (1 if m.tied else 2) + (m.positions * w if m.places == "learned" else 0) + _norm(m)
    if m.task == "mlm":  # kinds of sentences, the pooler and what follows, the way to the head and its bias
        return table + 2 * w + 2 * (w + 1) * w + 2 * (w + 1) + _norm(m) + m.vocab
    return table + (2 * BUCKETS * m.heads + _norm(m) if m.task == "span" else 0)


def adapters(m, rank):
    """Weights of low-rank adapters of a model."""
    q, kv, mlp = _adapters(m, rank)
    return (m.layers + 2 * m.decoder) * (q + kv) + (m.layers + m.decoder) * mlp


def tokens_of(m, seq):
    """Positions of a sequence, or of a picture."""
    return (m.image // m.patch) ** 2 + 1 if m.task == "classes" else seq


def input_bytes(m, seq):
    """Of a sequence, or of a picture, as it comes: indices of four bytes for tokens and targets, of masked ones for kinds of sentences too, or fp32 pixels."""
    if m.task == "classes":
        return 4 * (3 * m.image**2 + 1)
    return 4 * {"lm": 2 * seq, "mlm": 3 * seq + 2, "span": seq + 2 * wanted(seq)}[m.task]


def pairs(m, seq):
    """Positions that see each other, masked or not: no more than the window's."""
    return seq * min(seq, m.window or seq)


def seen(m, seq):
    """The share of a model's pairs that no mask leaves out."""
    seq = tokens_of(m, seq)
    near = min(seq, m.window or seq)
    if m.task == "lm":
        return 1 - near / (2 * seq)
    out = wanted(seq)
    return (m.layers * seq**2 + m.decoder * out * (out / 2 + seq)) / (m.layers * seq**2 + m.decoder * out * (out + seq)) if m.decoder else 1.0


def _through(m, seq, q, kv, mlp):
    """Weights of all layers, each as often as a token goes through; a decoder makes what is wanted and attends to the encoder's result too."""
    if not m.decoder:
        return m.layers * seq * (q + kv + mlp)
    out = wanted(seq)
    return m.layers * seq * (q + kv + mlp) + m.decoder * (out * (q + kv + mlp) + out * q + seq * kv)


def layer_work(m):
    """What a token of a sequence multiplies in an encoder's layer and in a decoder's, beside scores: how the layers of both compare."""
    (q, kv, mlp), made = _products(m), 1 / 4  # of spec.wanted
    return q + kv + mlp, made * (2 * q + kv + mlp) + kv


def work(m, seq):
    """What a sequence multiplies: weights of its layers' products and of its ends' products, each as often as a token goes through
    (of experts, those chosen), and pairs of positions for each feature of the heads."""
    seq, (q, kv, mlp) = tokens_of(m, seq), _products(m)
    pair = m.layers * pairs(m, seq)
    if m.task == "classes":
        ends = (seq - 1) * 3 * m.patch**2 * m.width + m.classes * m.width
    elif m.task == "span":
        pair, ends = pair + m.decoder * wanted(seq) * (wanted(seq) + seq), m.vocab * m.width * wanted(seq)
    else:
        ends = seq * m.vocab * m.width + ((seq + 1) * m.width**2 + 2 * m.width if m.task == "mlm" else 0)
    layers = _through(m, seq, q, kv, mlp * (m.chosen if m.experts else 1) + m.width * m.experts)
    return layers, ends, pair * m.heads * m.head


def lasting(m, seq):
    """Of the layers' work what is not computed again with whole layers: their last product, whose result nothing backward needs."""
    return _through(m, tokens_of(m, seq), 0, 0, m.width * m.hidden * (m.chosen if m.experts else 1))


def model_flops(m, seq, lora=0):
    """FLOP of a sequence, forward and backward, without what is computed again: 6 for each weight of a product and each token, 12
    for each pair. Weights that do not learn have no gradients: 4, and 6 for those of their adapters."""
    layers, ends, pair = work(m, seq)
    learn = _through(m, tokens_of(m, seq), *_adapters(m, lora))
    return (4.0 if lora else 6.0) * (layers + ends) + 6.0 * learn + 12.0 * pair
