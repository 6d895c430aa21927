# SPDX-License-Identifier: Apache-2.0
"""A sample of PyTorch's own operator samples on the device `neuron` (all of them: make opinfo)."""

import random
import shutil

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="torch's own tests need it")
if not shutil.which("g++") or torch._C._get_privateuse1_backend_name() != "neuron":
    pytest.skip("there is no device `neuron` here", allow_module_level=True)

import opinfo  # noqa: E402

ALWAYS = """index_reduce index_put masked_select unique frexp polar igamma mode hash_tensor special.hermite_polynomial_h
_upsample_bilinear2d_aa histogram histogramdd nn.functional.multilabel_margin_loss geqrf ormqr
nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d multinomial normal to_sparse""".split()
OFTEN = """abs arange baddbmm cat cumsum gather isclose layer_norm linspace masked_fill matmul mean nn.functional.conv2d
nn.functional.gelu nn.functional.grid_sample nn.functional.interpolate nn.functional.max_pool2d nn.functional.nll_loss
_segment_reduce scatter_reduce softmax sort stack std tril unfold var where nn.functional.pdist cummax sub""".split()


def test_samples_of_operators():
    names = [*ALWAYS, *random.Random(opinfo.SEED).sample(OFTEN, 4)]
    count = opinfo.Count(limit=1)
    for op in opinfo.chosen("device", names):
        count.operator("device", op, opinfo.types_of(op)[0])
    print(f"OPINFO_SEED={opinfo.SEED}")
    assert count.samples >= len(names)
    assert not count.wrong and not count.off
