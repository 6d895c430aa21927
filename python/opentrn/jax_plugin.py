# SPDX-License-Identifier: Apache-2.0
"""What JAX calls when it looks for plugins (entry point group jax_plugins).

Installing opentrn changes nothing for programs that do not ask for it: the device has a lower
priority than the CPU, and a plugin that cannot start is passed over, unless JAX_PLATFORMS names it.

JAX has no public hook for some things a device needs: the registration record is changed here, only if
it looks as expected (to fail quietly and to spare users the warning that a platform they chose
themselves is experimental); the rest is in _gates.py.
"""

import atexit
import dataclasses
import logging
import os
import sys
from typing import Any

from opentrn import _gates, _library
from opentrn._library import library_path

logger = logging.getLogger(__name__)

PRIORITY = -100  # JAX's CPU has 0
OLDEST = (0, 9, 2)  # JAX; pyproject.toml says the same. older ones fail in parts


def _relax_registration(xla_bridge, platform):
    factories = getattr(xla_bridge, "_backend_factories", None)
    entry: Any = factories.get(platform) if isinstance(factories, dict) else None
    known = (
        {f.name for f in dataclasses.fields(entry)} if dataclasses.is_dataclass(entry) else set()
    )
    if factories is None or not {"fail_quietly", "experimental"} <= known:
        logger.info("this JAX keeps plugin registrations in another form; left as they are")
        return
    factories[platform] = dataclasses.replace(entry, fail_quietly=True, experimental=False)


def _register_linalg(platform):
    try:
        from opentrn import linalg

        linalg.register(platform)
    except (ImportError, AttributeError, TypeError) as error:
        logger.info("this JAX registers lowerings in another way (%s); no decompositions", error)


LOST = 75  # exit status where a process of the job is gone: EX_TEMPFAIL, start it again


def _finish(xla_bridge, platform):
    """At the end of the program: what it compiled shall be in the cache, and the other processes shall not miss this one.

    JAX registers its own end, which waits for all processes, before the first device is asked for, so this runs before it. Where one
    is gone that wait would take its whole time and end in an abort; all that is left to do then is to go."""
    client = getattr(xla_bridge, "_backends", {}).get(platform)
    if client is None:
        return
    library, handle = _library.load(), client.local_devices()[0].opentrn_client
    library.opentrn_cache_wait(handle)
    if library.opentrn_peer_lost(handle):
        print("opentrn: a process of this job is gone; this one ends too, with status", LOST, file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(LOST)
    library.opentrn_bye(handle)


def _platform():
    """The name JAX sees. With an option that is wrong JAX still gets a platform: making its client then
    says what is wrong, in place of JAX's "not in the list of known backends"."""
    import jax

    if jax.__version_info__ < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise RuntimeError(f"it needs jax {oldest} or newer, this is {jax.__version__}: pip install -U 'opentrn[jax]'")
    _library.load()
    try:
        return _library.option("platform")
    except RuntimeError:
        return os.environ.get("OPENTRN_PLATFORM") or "opentrn"


def initialize():
    """Registers the platform. A missing or unusable library is told, never raised."""
    from jax._src import xla_bridge

    path = library_path()
    try:
        platform = _platform()
        if platform in getattr(xla_bridge, "_backend_factories", {}):
            return
        xla_bridge.register_plugin(platform, priority=PRIORITY, library_path=path)
    except (
        Exception
    ) as error:  # whatever is wrong with us must not stop programs that run elsewhere
        asked = {"opentrn", "neuron"} & set(os.environ.get("JAX_PLATFORMS", "").split(","))
        logger.log(
            logging.WARNING if asked else logging.INFO,
            "opentrn cannot be used: %s (library %s)",
            error,
            path,
        )
        return
    _relax_registration(xla_bridge, platform)
    atexit.register(_finish, xla_bridge, platform)
    _gates.open_all(platform)
    _register_linalg(platform)
