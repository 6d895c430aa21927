# SPDX-License-Identifier: Apache-2.0
"""Small models of the usual kinds: name -> (function that makes it, function generator -> batch).

A model gives its loss. Dropout is 0, so that eager torch on the CPU must give the same losses."""

import torch
import torch.nn.functional as F
from torch import nn


def _ints(g, high, *shape):
    return torch.randint(0, high, shape, generator=g)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(16, 32),
            nn.GELU(),
            nn.LayerNorm(32),
            nn.Linear(32, 32),
            nn.ReLU(),
            nn.Linear(32, 4),
        )

    def forward(self, x, y):
        return F.cross_entropy(self.net(x), y)


class Block(nn.Module):
    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (
            p.view(n, t, self.heads, -1).transpose(1, 2)
            for p in self.qkv(self.norm1(x)).split(c, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
        y = self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return x + F.dropout(y, self.dropout, self.training)


class GPT(nn.Module):
    """Tied weights, causal attention."""

    def __init__(self, vocabulary=64, width=32, layers=2, length=16, dropout=0.0):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, 4, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight
        self.checkpoint = False

    def forward(self, x, y):
        h = self.token(x) + self.place(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            if self.checkpoint:
                h = torch.utils.checkpoint.checkpoint(block, h, use_reentrant=False)
            else:
                h = block(h)
        logits = self.head(self.norm(h))
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())


class UNet(nn.Module):
    """GroupNorm, strided, transposed and depthwise convolutions."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm1 = nn.GroupNorm(2, 8)
        self.down = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.depth = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.norm2 = nn.GroupNorm(4, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = nn.Conv2d(16, 3, 1)

    def forward(self, x, y):
        a = F.silu(self.norm1(self.first(x)))
        h = F.silu(self.norm2(self.depth(self.down(a))))
        return F.mse_loss(self.last(torch.cat([self.up(h), a], 1)), y)


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50, 8, mode="sum") for _ in range(3))
        self.bottom = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(8 + 6, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense, indices, offsets, y):
        rows = [self.bottom(dense)] + [bag(i, offsets) for bag, i in zip(self.bags, indices)]
        t = torch.stack(rows, 1)
        pairs = torch.bmm(t, t.transpose(1, 2))
        i, j = torch.tril_indices(4, 4, -1)
        z = self.top(torch.cat([rows[0], pairs[:, i, j]], 1)).squeeze(1)
        return F.binary_cross_entropy_with_logits(z, y)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.rnn = kind(8, 12, num_layers=2, batch_first=True, bidirectional=kind is nn.GRU)
        self.head = nn.Linear(24 if kind is nn.GRU else 12, 20)

    def forward(self, x, y):
        h, _ = self.rnn(self.embed(x))
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


class ResNet(nn.Module):
    """Bottleneck blocks with BatchNorm, as in ResNet-50, narrow."""

    def __init__(self, layers=(1, 1), width=8):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks, channels = [], width
        for stage, count in enumerate(layers):
            for i in range(count):
                blocks.append(Bottleneck(channels, width << stage, 2 if stage and not i else 1))
                channels = (width << stage) * 4
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, 10)

    def forward(self, x, y):
        h = F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1)
        return F.cross_entropy(self.head(h), y)


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.skip = nn.Identity()
        if stride != 1 or channels != out:
            self.skip = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def _tokens(g, vocabulary, n=4, t=16):
    x = _ints(g, vocabulary, n, t + 1)
    return x[:, :-1].contiguous(), x[:, 1:].contiguous()


def _recurrent_batch(g):
    return _tokens(g, 20, 3, 6)


def _dlrm_batch(g):
    offsets = torch.arange(0, 24, 3)
    return (
        torch.randn(8, 4, generator=g),
        [_ints(g, 50, 24) for _ in range(3)],
        offsets,
        torch.rand(8, generator=g),
    )


OWN = {
    "mlp": (MLP, lambda g: (torch.randn(8, 16, generator=g), _ints(g, 4, 8))),
    "gpt": (GPT, lambda g: _tokens(g, 64)),
    "unet": (UNet, lambda g: tuple(torch.randn(2, 2, 3, 16, 16, generator=g))),
    "dlrm": (DLRM, _dlrm_batch),
    "lstm": (lambda: Recurrent(nn.LSTM), _recurrent_batch),
    "gru": (lambda: Recurrent(nn.GRU), _recurrent_batch),
    "resnet": (ResNet, lambda g: (torch.randn(8, 3, 32, 32, generator=g), _ints(g, 10, 8))),
}


# --- Hugging Face --------------------------------------------------------------------------------


class Loss(nn.Module):
    """The loss of a Hugging Face model as its result."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **batch):
        return self.model(**batch).loss


def _hf(model, config, **options):
    """A function that makes the model; transformers is imported only then."""

    def build():
        import transformers

        return Loss(getattr(transformers, model)(getattr(transformers, config)(**options)))

    return build


_SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
_NO_DROPOUT = dict(attention_probs_dropout_prob=0.0, hidden_dropout_prob=0.0)
_TEXT = dict(vocab_size=64, max_position_embeddings=32)


def _lm_batch(g):
    x = _ints(g, 64, 2, 16)
    return {"input_ids": x, "labels": x}


def _seq2seq_batch(g):
    return {"input_ids": _ints(g, 64, 2, 12), "labels": _ints(g, 64, 2, 8)}


def _class_batch(g):
    return {"input_ids": _ints(g, 64, 4, 16), "labels": _ints(g, 3, 4)}


def _image_batch(g):
    return {"pixel_values": torch.randn(4, 3, 16, 16, generator=g), "labels": _ints(g, 5, 4)}


def _speech_batch(g):
    return {"input_features": torch.randn(2, 8, 32, generator=g), "labels": _ints(g, 64, 2, 8)}


_GPT2 = _hf(
    "GPT2LMHeadModel", "GPT2Config", vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
)  # fmt: skip
_BERT = _hf(
    "BertForSequenceClassification", "BertConfig", num_labels=3, **_TEXT, **_SMALL, **_NO_DROPOUT
)
_VIT = _hf(
    "ViTForImageClassification", "ViTConfig", image_size=16, patch_size=4, num_labels=5,
    **_SMALL, **_NO_DROPOUT,
)  # fmt: skip
_LLAMA = _hf("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, **_TEXT, **_SMALL)
_T5 = _hf(
    "T5ForConditionalGeneration", "T5Config", vocab_size=64, d_model=32, d_kv=8, d_ff=64,
    num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0,
)  # fmt: skip
_WHISPER = _hf(
    "WhisperForConditionalGeneration", "WhisperConfig", vocab_size=64, num_mel_bins=8, d_model=32,
    encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=16, max_target_positions=16,
    dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, pad_token_id=0, bos_token_id=1,
    eos_token_id=2, decoder_start_token_id=1,
)  # fmt: skip
_EXPERTS = {"num_key_value_heads": 2, "num_local_experts": 4, **_TEXT, **_SMALL}
_MIXTRAL = _hf("MixtralForCausalLM", "MixtralConfig", **_EXPERTS)  # grouped_mm
_MIXTRAL_BATCHED = _hf("MixtralForCausalLM", "MixtralConfig", experts_implementation="batched_mm", **_EXPERTS)

HUGGING_FACE = {
    "gpt2": (_GPT2, _lm_batch),
    "bert": (_BERT, _class_batch),
    "vit": (_VIT, _image_batch),
    "llama": (_LLAMA, _lm_batch),
    "t5": (_T5, _seq2seq_batch),
    "whisper": (_WHISPER, _speech_batch),
    "mixtral": (_MIXTRAL, _lm_batch),
    "mixtral_batched": (_MIXTRAL_BATCHED, _lm_batch),
}

ALL = {**OWN, **HUGGING_FACE}


def make(name):
    torch.manual_seed(0)
    return ALL[name][0]()


def run(model, batch):
    return model(**batch) if isinstance(batch, dict) else model(*batch)


def losses(
    name, model, run_model=None, steps=20, optimizer=torch.optim.AdamW, after=None, **options
):
    """Trains `model` through `run_model` (itself, or a compiled form of it)."""
    g = torch.Generator().manual_seed(1)
    options = options or {"lr": 1e-3}
    opt = optimizer(model.parameters(), **options)
    seen = []
    for _ in range(steps):
        batch = ALL[name][1](g)
        opt.zero_grad()
        loss = run(model if run_model is None else run_model, batch)
        loss.backward()
        if after:
            after(model)
        opt.step()
        seen.append(loss.item())
    return seen


def worst(a, b):
    """Largest relative difference between two lists of losses."""
    return max(abs(x - y) / max(abs(x), 1e-6) for x, y in zip(a, b, strict=True))
