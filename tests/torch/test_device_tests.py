# SPDX-License-Identifier: Apache-2.0
"""What scripts/device_tests.py makes of PyTorch's tests: a share, and a row for each kind of failure, whatever a test does to its process."""

import pathlib
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="torch's own tests need it")
if not shutil.which("g++") or torch._C._get_privateuse1_backend_name() != "neuron":
    pytest.skip("there is no device `neuron` here", allow_module_level=True)

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "device_tests.py"
TESTS = """
import os, torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase

class TestSome(TestCase):
    def test_begins(self, device):
        self.assertEqual(torch.ones(2, device=device).sum().item(), 2)
    def test_dies(self, device):
        if device.startswith("neuron"):
            os.abort()
    def test_everywhere(self, device):
        raise ValueError("number 3")
    def test_goes_on(self, device):
        self.assertNotIn("neuron", device)
    def test_skipped(self, device):
        self.skipTest("not here")

instantiate_device_type_tests(TestSome, globals())
"""


def test_a_share_and_its_reasons(tmp_path):
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_torch.py").write_text(TESTS)
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=True)
    *failures, last = done.stdout.splitlines()
    assert last == "test_torch: 2 failed, 1 passed, 1 failed on the CPU, too, 1 skipped; 33.3 % of 3 pass"
    assert failures[0].startswith("   1 failed: the process ended") and failures[0].endswith(": test_dies")
    assert failures[1:] == [
        "   1 failed: AssertionError: 'neuron' unexpectedly found in 'neuron:N': test_goes_on",
        "   1 failed on the CPU, too: ValueError: number N: test_everywhere",
    ]
    (tmp_path / "test" / "test_torch.py").write_text("import of_another_release")
    done = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "No module named 'of_another_release'" in done.stderr
