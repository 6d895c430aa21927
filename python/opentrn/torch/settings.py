# SPDX-License-Identifier: Apache-2.0
"""What a user can set: `opentrn.torch.settings.strict = True`, or the variables named below."""

import os
import pathlib

strict = os.environ.get("OTRN_TORCH_STRICT", "") not in ("", "0", "off")
"""Operators that would run on the CPU are an error when the graph is compiled."""

dump_dir = os.environ.get("OTRN_TORCH_DUMP", "")
"""A folder that gets every program as StableHLO text."""

report_file = os.environ.get("OTRN_TORCH_REPORT", "")
"""A file that gets what opentrn.torch.explain() says when the process ends."""

check_indices = os.environ.get("OTRN_TORCH_INDEX", "") not in ("", "0", "off")
"""An index or a label out of range is an error that names its operator and line; slow. Of graphs compiled while it is set; of eager
operators on the device `neuron` when the variable is set."""

_written: dict[str, int] = {}


def dump(name, text):
    if not dump_dir:
        return
    folder = pathlib.Path(dump_dir)
    folder.mkdir(parents=True, exist_ok=True)
    _written[name] = _written.get(name, -1) + 1
    (folder / f"{name}.{_written[name]}.mlir").write_text(text)
