# SPDX-License-Identifier: Apache-2.0
"""What is to be done when a module has been imported, by whoever imports it; now, when it has been already."""

import importlib.abc
import sys
from collections.abc import Callable
from types import ModuleType

Then = Callable[[ModuleType], object]
_waiting: dict[str, Then] = {}


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, then):
        self.loader, self.then = loader, then

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        self.then(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Asked first; everything but those modules is left to the others."""

    def find_spec(self, name, path=None, target=None):
        if name not in _waiting:
            return None
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((s for s in found if s is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, _waiting[name])
        return spec


_finder = _Finder()


def when_imported(name: str, then: Then) -> None:
    if name in sys.modules:
        then(sys.modules[name])
        return
    _waiting[name] = then
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
