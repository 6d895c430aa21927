# SPDX-License-Identifier: Apache-2.0
"""Calls that torch's CPU kernels refuse: the device `neuron` refuses them by the same kind of error, and computes those that only look alike."""

import shutil

import pytest

torch = pytest.importorskip("torch")
if not shutil.which("g++"):
    pytest.skip("the device needs a C++ compiler", allow_module_level=True)
if torch._C._get_privateuse1_backend_name() != "neuron":
    pytest.skip("another package has the device", allow_module_level=True)

import torch.nn.functional as F  # noqa: E402
import opentrn.torch  # noqa: E402, F401


class On:
    """Tensors of a device."""

    def __init__(self, device):
        self.device = device

    def ones(self, *size, **given):
        return torch.ones(*size, device=self.device, **given)

    def line(self, n=6):
        return torch.arange(float(n), device=self.device)

    def wide(self, rows=3, columns=4):
        """A column that stands for several."""
        return self.ones(rows, 1).expand(rows, columns)

    def tensor(self, values):
        return torch.tensor(values, device=self.device)


def assign(x, index, values):
    x[index] = values
    return x


def copy(to, x):
    to.copy_(x)
    return to


REFUSED = {
    "add_ to a tensor that is expanded": lambda d: d.wide().add_(1),
    "copy_ to one": lambda d: d.wide().copy_(d.ones(3, 4)),
    "cumsum_ of one": lambda d: d.wide().cumsum_(1),
    "a list with one": lambda d: torch._foreach_add_([d.wide()], 1.0),
    "add_ from a neighbour": lambda d: (x := d.line())[1:].add_(x[:-1]),
    "copy_ from a neighbour": lambda d: copy((x := d.line())[1:], x[:-1]),
    "copy_ of a transpose": lambda d: copy(x := d.line(9).view(3, 3), x.t()),
    "out= over a part": lambda d: torch.mul((x := d.line())[:-1], 2, out=x[1:]),
    "gather over a part": lambda d: torch.gather((x := d.line())[:3], 0, d.tensor([0, 1, 2]), out=x[1:4]),
    "cat over a part": lambda d: torch.cat([(x := d.line())[:2], x[2:3]], out=x[1:4]),
    "values that lie in the target": lambda d: assign((x := d.line())[:3], d.tensor([0, 1, 2]), x[1:4]),
    "masked_scatter, too short": lambda d: d.ones(4).masked_scatter(d.tensor([True, True, False, True]), d.ones(2)),
    "masked_scatter_, too short": lambda d: d.ones(2, 3).masked_scatter_(d.tensor([True, False, True]), d.ones(3)),
    "masked_scatter, no mask": lambda d: d.ones(4).masked_scatter(d.ones(4), d.ones(4)),
    "too many values for a mask": lambda d: assign(d.line(4), d.tensor([True, False, True, False]), d.ones(3)),
    "too few rows for a mask": lambda d: assign(d.ones(4, 2), d.tensor([True, True, True, False]), d.ones(2, 2)),
    "products of two types": lambda d: d.ones(2, 3) @ d.ones(3, 2).double(),
    "batches of two types": lambda d: torch.bmm(d.ones(1, 2, 3), d.ones(1, 3, 2).half()),
    "convolutions of two types": lambda d: F.conv2d(d.ones(1, 3, 8, 8), d.ones(4, 3, 3, 3).double()),
    "fractions in whole numbers": lambda d: torch.add(d.ones(2), 1, out=d.ones(2, dtype=torch.int64)),
    "bincount of negative numbers": lambda d: torch.bincount(d.tensor([2, -1])),
    "bincount of a matrix": lambda d: torch.bincount(d.ones(2, 2, dtype=torch.int64)),
    "bincount of fractions": lambda d: torch.bincount(d.ones(2)),
    "repeat_interleave less than never": lambda d: torch.repeat_interleave(d.ones(2), d.tensor([-1, 2])),
    "histc of no bins": lambda d: torch.histc(d.ones(3), bins=0),
    "shapes": lambda d: d.ones(2, 3) + d.ones(2, 4),
}  # fmt: skip
COMPUTED = {
    "fill_ of a tensor that is expanded": lambda d: d.wide().fill_(2),
    "zero_ of one": lambda d: d.wide().zero_(),
    "an index of one": lambda d: assign(d.wide(), d.tensor([1]), 5.0),
    "out= that is the operand": lambda d: torch.add(x := d.line(), x, out=x),
    "add_ from another half": lambda d: (x := d.line())[:3].add_(x[3:]),
    "copy_ from another half": lambda d: copy((x := d.line())[:3], x[3:]),
    "masked_scatter, long enough": lambda d: d.ones(2, 3).masked_scatter_(d.tensor([True, False, True]), d.line(4)),
    "a value for each place of a mask": lambda d: assign(d.line(4), d.tensor([True, False, True, False]), d.ones(2)),
    "a row for all places of a mask": lambda d: assign(d.ones(4, 2), d.tensor([True, True, True, False]), d.line(2)[None]),
    "a mask of nothing": lambda d: assign(d.line(4), d.tensor([False] * 4), d.ones(0)),
    "out= of a wider type": lambda d: torch.add(d.ones(2), 1, out=d.ones(2, dtype=torch.float64)),
    "an answer": lambda d: torch.gt(d.line(), 2, out=d.ones(6, dtype=torch.bool)),
    "convolutions of whole numbers": lambda d: F.conv1d(d.ones(1, 2, 5, dtype=torch.int64), d.ones(3, 2, 2, dtype=torch.int64)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises(Exception) as expected:
        REFUSED[name](On("cpu"))
    with pytest.raises(expected.type):
        REFUSED[name](On("neuron"))


@pytest.mark.parametrize("name", COMPUTED)
def test_computed(name):
    torch.testing.assert_close(COMPUTED[name](On("neuron")).cpu(), COMPUTED[name](On("cpu")))


def test_a_refusal_writes_nothing():
    x = torch.arange(6.0, device="neuron")
    with pytest.raises(RuntimeError):
        x[1:].mul_(x[:-1])
    assert torch.equal(x.cpu(), torch.arange(6.0))
