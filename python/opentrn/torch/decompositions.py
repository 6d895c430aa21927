# SPDX-License-Identifier: Apache-2.0
"""Which composite operators are taken apart before lowering."""

import functools

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from opentrn.torch.own_decompositions import OWN
from opentrn.torch.special import SPECIAL

aten = torch.ops.aten

MORE = [  # beyond the core set
    aten.native_layer_norm,
    aten.native_layer_norm_backward,
    aten.native_group_norm,
    aten.native_group_norm_backward,
    aten._softmax,
    aten._softmax_backward_data,
    aten._log_softmax,
    aten._log_softmax_backward_data,
    aten.gelu,
    aten.gelu_backward,
    aten.silu,
    aten.silu_backward,
    aten.addmm,
    aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_functional,
    aten._native_batch_norm_legit_no_training,
    aten.native_batch_norm,
    aten._batch_norm_with_update,
    aten._batch_norm_with_update_functional,
    aten._batch_norm_no_update,
    aten.batch_norm_backward,
    aten.native_batch_norm_backward,
    aten.embedding_dense_backward,
    aten.max_pool2d_with_indices_backward,
    aten.nll_loss_backward,
    aten.nll_loss2d_backward,
    aten.var_mean,
    aten.std_mean,
    aten.std,
    aten.baddbmm,
    aten.huber_loss,
    aten.glu,
    aten.prelu,
    aten._prelu_kernel,
    aten._prelu_kernel_backward,
    aten.softplus,
    aten.elu,
    aten.leaky_relu,
    aten.hardtanh,
    aten.hardswish,
    aten.hardsigmoid,
    aten.mish,
    aten.logsumexp,
    aten.masked_fill,
    aten.tril_indices,
    aten.triu_indices,
    aten.triu,
    aten.tril,
    aten.linspace,
    aten.roll,
    aten.rot90,
    aten.frac,
    aten.xlogy,
    aten.logit,
    aten.logaddexp,
    aten.logaddexp2,
    aten.heaviside,
    aten.sinc,
    aten.isposinf,
    aten.isneginf,
    aten.nansum,
    aten.count_nonzero,
    aten.aminmax,
    aten.pixel_shuffle,
    aten.pixel_unshuffle,
    aten.grid_sampler_2d,
    aten.upsample_nearest2d,
    aten.upsample_bilinear2d,
    aten.upsample_nearest1d,
    aten.upsample_linear1d,
    aten.im2col,
    aten.col2im,
    aten.multi_margin_loss,
    aten.upsample_bicubic2d,
    aten.upsample_trilinear3d,
    aten.upsample_nearest3d,
    aten._upsample_nearest_exact1d,
    aten._upsample_nearest_exact2d,
    aten._upsample_nearest_exact3d,
    aten.bucketize,
    aten.lcm,
    aten.unbind_copy,
    aten.rrelu_with_noise_backward,
    aten._addmm_activation,
    aten.lstm,
    aten.gru,
    aten.rnn_tanh,
    aten.rnn_relu,
]

KEEP = [  # lowered as they are: fewer roundings, less work
    aten.lerp,
    aten.addcmul,
    aten.addcdiv,
    aten._adaptive_avg_pool2d,
    aten.hypot,
    aten.take,
    aten.linalg_cross,
]


@functools.cache
def table():
    rows = dict(core_aten_decompositions())
    rows.update(get_decompositions(MORE))
    kept = {getattr(packet, name) for packet in KEEP for name in packet.overloads()}
    return {op: f for op, f in rows.items() if op not in kept} | OWN | SPECIAL
