# SPDX-License-Identifier: Apache-2.0
"""Scripts that say nothing of opentrn (tests/torch/unedited; those of torch_xla and TensorFlow in environments of their own), on the
device and on the CPU: a table of their losses' largest relative difference. Status 1 when one fails, is not on the device, or
differs by more than 1e-6."""

import argparse
import ast
import importlib.util
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "torch" / "unedited"
LIMIT = 1e-6
ROWS = [  # name, what it needs beside torch, its arguments
    ("trainer", ["transformers", "accelerate"], []),
    ("trainer", ["transformers", "accelerate"], ["--compile"]),
    ("accelerate_loop", ["accelerate"], []),
    ("peft_lora", ["peft"], []),
    ("generate", ["transformers"], []),
    ("compiled", [], []),
    ("cnn", [], []),
    ("lstm", [], []),
    ("loop", [], []),
    ("optimizers", [], []),
    ("experts", ["transformers"], []),
    ("digits", [], []),
    ("words", [], []),
    ("words", [], ["--transformer"]),
    ("images", [], []),
    ("vae", [], []),
    ("gan", [], []),
    ("resume", [], []),
    ("scaler", [], []),
    ("policy", [], []),
    ("losses", [], []),
    ("tasks", [], []),
    ("tables", [], []),
    ("graphs", [], []),
    ("speech", ["transformers"], []),
    ("lightning_fit", ["lightning"], []),
    ("lightning_fit", ["lightning"], ["--compile"]),
    ("lightning_fit", ["lightning"], ["--devices=2"]),
    ("timm_vit", ["timm", "torchvision"], []),
    ("torchvision_model", ["torchvision"], []),
    ("ranks", [], []),
    ("ranks", [], ["--unused"]),
    ("ranks", [], ["--shard"]),
]
XLA, TF = "torch_xla", "tensorflow"
OTHERS = [  # framework, script, whether several processes run it on the device
    (XLA, "scripts/transformer", False),
    (XLA, "scripts/cnn", False),
    (XLA, "scripts/spmd", False),
    (XLA, "data_parallel", True),
    (TF, "scripts/keras_cnn", False),
    (TF, "scripts/tape", False),
]
MADE_BY = {XLA: (".venv-xla", "./dev test-xla"), TF: (".venv-tf", "./dev test-tf")}
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def _failed(done, device):
    side = "on the device" if device else "on the CPU, with nothing of ours"
    return RuntimeError("\n".join([f"{side}, status {done.returncode}:", *(done.stderr or done.stdout).splitlines()[-5:]]))


def run(name, arguments, device):
    """(device, losses) that a script prints; without the device torch loads nothing of ours."""
    env = os.environ | ({} if device else {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    if not device:  # neither does its compiler: eager is what we are compared with
        arguments = [a for a in arguments if a != "--compile"] + ["--plain"] * ("--compile" in arguments)
    launcher = TORCHRUN if name == "ranks" else []
    command = [sys.executable, *launcher, str(FOLDER / f"{name}.py"), *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(("device ", "losses ")))
    if done.returncode or "losses" not in told:
        raise _failed(done, device)
    return told["device"], ast.literal_eval(told["losses"])


def compare(name, needs, arguments):
    """A row's text, and whether it is as it must be."""
    title = " ".join([name, *arguments])
    missing = [n for n in needs if importlib.util.find_spec(n) is None]
    if missing:
        return f"| {title} | - | {', '.join(missing)} not installed |", True
    try:
        _, expected = run(name, arguments, False)
        device, losses = run(name, arguments, True)
    except RuntimeError as why:
        return f"| {title} | - | failed: {why} |", False
    worst = max(abs(a - b) / max(abs(a), 1e-30) for a, b in zip(expected, losses, strict=True))
    return f"| {title} | {device} | {worst:.1e} |", worst <= LIMIT and device.startswith("neuron")


def run_other(framework, script, launcher, device):
    """Losses that a script prints on the device, or on the framework's own CPU."""
    switch = {XLA: {"PJRT_DEVICE": "NEURON", "OPENTRN_DEVICES": "4"}, TF: {"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": os.environ.get("OTRN_PJRT_LIBRARY", "")}}
    env = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | (switch[framework] if device else {"PJRT_DEVICE": "CPU"})
    python = ROOT / MADE_BY[framework][0] / "bin" / "python"
    command = [python, "-W", "ignore", *launcher, ROOT / "tests" / framework / f"{script}.py"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    found = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("loss ")]
    if done.returncode or not found or (framework == TF and device != ("NEURON" in done.stdout)):
        raise _failed(done, device)
    return found


def compare_other(framework, script, many):
    title = f"{framework} {pathlib.Path(script).name}"
    folder, maker = MADE_BY[framework]
    if not (ROOT / folder).exists():
        return f"| {title} | - | {maker} makes its environment |", True
    try:
        expected = run_other(framework, script, [], False)
        losses = run_other(framework, script, TORCHRUN if many else [], True)
    except RuntimeError as why:
        return f"| {title} | - | failed: {why} |", False
    worst = max(abs(a - b) / max(abs(a), 1e-30) for a, b in zip(expected, losses, strict=True))
    return f"| {title} | NEURON | {worst:.1e} |", worst <= LIMIT


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    print("| script | device | largest relative difference to the CPU |\n|---|---|---|")
    todo = [(compare, row, " ".join([row[0], *row[2]])) for row in ROWS]
    todo += [(compare_other, row, f"{row[0]} {row[1]}") for row in OTHERS]
    good = True
    for how, row, title in todo:
        if only in title:
            text, fine = how(*row)
            print(text, flush=True)
            good = good and fine
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
