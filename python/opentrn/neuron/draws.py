# SPDX-License-Identifier: Apache-2.0
"""Random numbers of tensors that a mesh cuts (DTensor): `reset_parameters()` of a sharded model, dropout in tensor parallelism.

torch's tracker moves the offset of a GPU's generator, whose state is a seed and an offset. The device's generator is the CPU's
(Mersenne Twister), which cannot be moved: each shard has a generator of its own, of a seed that all ranks draw alike and the
place of the shard in the tensor. So ranks with the same shard have the same numbers, others have others, and what everybody
draws next is the same again.
"""

import contextlib
import functools

import torch

_SEEDS = 2**32  # what a Mersenne Twister begins with


def _place(spec):
    """Where this rank's shard begins, as the number of an element; None when it is the whole tensor."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    shape, offset = compute_local_shape_and_global_offset(spec.shape, spec.mesh, spec.placements)
    if tuple(shape) == tuple(spec.shape):
        return None
    place = 0
    for size, first in zip(spec.shape, offset, strict=True):
        place = place * size + min(first, size - 1)
    return place


@contextlib.contextmanager
def _region(spec, generator):
    """generator: the user's, or None for the default one, which stands for it here: torch has taken it off the call."""
    if torch._guards.detect_fake_mode() is not None:  # draws of compiled graphs are the program's own
        yield
        return
    default, place = torch.default_generator, _place(spec)
    kept = default.get_state()
    if generator is not None:
        default.set_state(generator.get_state())
    try:
        if place is None:
            yield
        else:
            seed = int(torch.randint(_SEEDS, ()))
            after = default.get_state()
            default.manual_seed((seed + place) % _SEEDS)
            try:
                yield
            finally:
                default.set_state(after)
    finally:
        if generator is not None:
            generator.set_state(default.get_state())
            default.set_state(kept)


def install(module):
    """module: torch.distributed.tensor._random, once somebody has imported it."""
    tracker = module.OffsetBasedRNGTracker
    others = tracker._distribute_region

    @functools.wraps(others)
    def region(self, spec, generator=None):
        ours = self._device.type == "neuron" and self.distribute_region_enabled
        return _region(spec, generator) if ours else others(self, spec, generator)

    tracker._distribute_region = region
