# SPDX-License-Identifier: Apache-2.0
"""Random operators of the device: the CPU's numbers, drawn by programs, and what the CPU draws next is the same, too."""

import shutil

import pytest

torch = pytest.importorskip("torch")
if not shutil.which("g++") or torch._C._get_privateuse1_backend_name() != "neuron":
    pytest.skip("there is no device `neuron` here", allow_module_level=True)

import opentrn.torch  # noqa: E402, F401
from opentrn.neuron import drawn  # noqa: E402
from opentrn.torch.report import host_operators  # noqa: E402

WAYS = {
    "uniform": lambda d: torch.empty(700, device=d).uniform_(-2, 3.3),  # more than the twister's words
    "uniform of float64": lambda d: torch.rand(5, 7, device=d, dtype=torch.float64),
    "uniform of bfloat16": lambda d: torch.rand(50, device=d, dtype=torch.bfloat16),
    "normal in groups": lambda d: torch.randn(4, 8, device=d),
    "normal in groups and a rest": lambda d: torch.randn(37, device=d, dtype=torch.bfloat16),
    "normal of float64": lambda d: torch.randn(37, device=d, dtype=torch.float64),
    "an odd number of normal ones": lambda d: torch.randn(5, device=d),
    "an even number of normal ones": lambda d: torch.empty(6, device=d).log_normal_(0.2, 0.3),
    "normal around tensors": lambda d: torch.normal(torch.zeros(3, 1, device=d), torch.arange(1.0, 8, device=d)),
    "chances of a tensor": lambda d: torch.bernoulli(torch.linspace(0, 1, 50).to(d)),
    "cauchy": lambda d: torch.empty(30, device=d).cauchy_(1, 2),
    "geometric": lambda d: torch.empty(30, device=d).geometric_(0.2),
    "integers": lambda d: torch.randint(3, 50, (40,), device=d),
    "integers of 40 bits": lambda d: torch.randint(-(2**40), 2**40, (40,), device=d),
    "integers of floats": lambda d: torch.empty(20, device=d).random_(),
    "integers of 64 bits": lambda d: torch.empty(20, device=d, dtype=torch.int64).random_(),
}
PLAIN = {  # where torch draws them from its own generator
    "flags": lambda d: torch.empty(300, device=d).bernoulli_(0.3),
    "dropout": lambda d: torch.nn.functional.dropout(torch.ones(40, 30, device=d), 0.4),
    "exponential": lambda d: torch.empty(30, device=d).exponential_(2.0),
    "several of many": lambda d: torch.multinomial(torch.arange(1.0, 9, device=d), 3),
    "several with replacement": lambda d: torch.multinomial(torch.arange(1.0, 13, device=d).reshape(2, 6), 7, replacement=True),
}


def _draws(way, device, before):
    torch.manual_seed(5)
    torch.randn(before)  # an odd number leaves one for the next
    return way(device).cpu(), torch.get_rng_state()


@pytest.mark.parametrize("name", [*WAYS, *PLAIN])
@pytest.mark.parametrize("before", [0, 5])
def test_the_cpus_numbers(name, before, fresh):
    way, host = (WAYS | PLAIN)[name], host_operators()
    (want, after), (got, here) = (_draws(way, device, before) for device in ("cpu", "neuron"))
    torch.testing.assert_close(got, want, rtol=2e-6, atol=2e-6)
    torch.testing.assert_close(here, after, rtol=0, atol=0)
    assert host_operators() == host or (name in PLAIN and not drawn._is_plain()), host_operators()


def test_a_generator_of_ones_own():
    """It is drawn from, and the default one is not."""
    torch.manual_seed(0)
    default = torch.get_rng_state()
    g, h = torch.Generator().manual_seed(3), torch.Generator("neuron").manual_seed(3)
    for _ in range(2):
        torch.testing.assert_close(torch.empty(9, device="neuron").uniform_(generator=h).cpu(), torch.empty(9).uniform_(generator=g))
    assert torch.equal(h.get_state().cpu(), g.get_state()) and torch.equal(torch.get_rng_state(), default)


def test_what_stays_on_the_host_is_named(fresh):
    """In the order of their memory, which is not that of their elements, the host draws."""
    before = host_operators()
    for device in ("cpu", "neuron"):
        torch.manual_seed(0)
        x = torch.empty(3, 4, device=device).t().uniform_()
        torch.manual_seed(0)
        assert torch.equal(x.cpu(), torch.empty(3, 4).t().uniform_())
    assert {row[0] for row in host_operators() if row not in before} == {"aten.uniform_.default"}


def test_dropout_in_the_order_of_memory():
    x, kept = torch.ones(6, 5).t(), []
    for device in ("cpu", "neuron"):
        torch.manual_seed(0)
        kept.append(torch.nn.functional.dropout(x.to(device), 0.4).cpu())
    assert torch.equal(*kept)
