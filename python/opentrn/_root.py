# SPDX-License-Identifier: Apache-2.0
"""The store in which processes of a job meet when no framework offers one (src/net/root.c)."""

import ctypes

from . import _library


class Root:
    """Bytes under keys at HOST:PORT. The process that serves keeps them (port 0: the system chooses one, `address` tells);
    all of them have the same secret."""

    def __init__(self, address: str, secret: str, serve: bool = False, timeout: float = 300.0):
        self._library = _library.load()
        self._why = ctypes.create_string_buffer(512)
        self._root = self._library.opentrn_root_open(
            address.encode(), secret.encode(), serve, int(timeout * 1000), self._why, len(self._why)
        )
        if not self._root:
            raise RuntimeError(self._said())
        at = ctypes.create_string_buffer(256)
        self._library.opentrn_root_at(self._root, at, len(at))
        self.address = at.value.decode()

    def _said(self) -> str:
        return self._why.value.decode(errors="replace")

    def put(self, key: str, value: bytes) -> None:
        if not self._library.opentrn_root_put(self._root, key.encode(), value, len(value), self._why, len(self._why)):
            raise RuntimeError(self._said())

    def get(self, key: str, timeout: float = 300.0) -> bytes:
        """Waits until somebody has put it."""
        size = ctypes.c_size_t()
        at = self._library.opentrn_root_get(
            self._root, key.encode(), int(timeout * 1000), ctypes.byref(size), self._why, len(self._why)
        )
        if not at:
            raise TimeoutError(self._said())
        value = ctypes.string_at(at, size.value)
        self._library.opentrn_root_free(at)
        return value

    def close(self) -> None:
        root, self._root = self._root, None
        self._library.opentrn_root_close(root)
