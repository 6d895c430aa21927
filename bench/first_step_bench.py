# SPDX-License-Identifier: Apache-2.0
"""What a PyTorch user waits for before the first step, and what a step costs the host: three ratios to their bars.

    python bench/first_step_bench.py [--steps=12]

`import opentrn.torch` beyond `import torch` (bar 1 s); of the first step of a compiled BERT the part spent in opentrn, its lowering, writing
and compiling, the rest being Dynamo's and AOTAutograd's (bar 0.3 s); a steady compiled step of that BERT beside an eager one (bar 1.0).
Times are the processor's, one thread, the smallest of the steady steps. Exit status 1 when a bar is missed.
"""

import argparse
import subprocess
import sys
import time

try:
    import torch
    import transformers
except ImportError:
    print("skipped: no PyTorch or Transformers (./dev test-torch installs them)")
    raise SystemExit from None

IMPORT = "import time, torch; b = time.process_time(); import opentrn.torch; print(time.process_time() - b)"


def import_seconds():
    runs = [subprocess.run([sys.executable, "-c", IMPORT], check=True, capture_output=True, text=True) for _ in range(3)]
    return min(float(r.stdout) for r in runs)


def bert():
    torch.manual_seed(0)
    size = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512, "vocab_size": 1000}
    return transformers.BertForMaskedLM(transformers.BertConfig(**size)).train()


def step_of(model, forward):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    x = torch.randint(0, 1000, (8, 32), generator=torch.Generator().manual_seed(1))

    def step():
        opt.zero_grad()
        forward(input_ids=x, labels=x).loss.backward()
        opt.step()

    return step


def seconds(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin


class Ours:
    """Time inside opentrn while graphs are compiled: its modules beyond Dynamo's, Plan.__init__ and the rewriting before it."""

    def __init__(self):
        import torch._dynamo

        begin = time.process_time()
        from opentrn.torch import capture, plan, randomness  # noqa: F401

        self.total, self.depth = time.process_time() - begin, 0
        for owner, name in ((plan.Plan, "__init__"), (randomness, "replace_random")):
            setattr(owner, name, self._timed(getattr(owner, name)))

    def _timed(self, function):
        def call(*args, **kwargs):
            begin, self.depth = time.process_time(), self.depth + 1
            try:
                return function(*args, **kwargs)
            finally:
                self.depth -= 1
                if not self.depth:
                    self.total += time.process_time() - begin

        return call


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    o = parser.parse_args()
    torch.set_num_threads(1)
    rows = [("import opentrn.torch", import_seconds(), 1.0, "s")]
    import opentrn.torch  # noqa: F401

    ours = Ours()
    model = bert()
    compiled = step_of(model, torch.compile(model, backend="opentrn"))
    first = seconds(compiled)
    rows.append((f"opentrn's share of the first step of {first:.1f} s", ours.total, 0.3, "s"))
    eager = bert()
    plain = step_of(eager, eager)
    plain()
    times = [(seconds(compiled), seconds(plain)) for _ in range(o.steps)]
    mine, theirs = (min(t) for t in zip(*times))
    rows.append((f"a compiled step, {1e3 * mine:.1f} ms beside eager's {1e3 * theirs:.1f}", mine / theirs, 1.0, "x"))
    for name, value, bar, unit in rows:
        print(f"{name}: {value:.2f} {unit}, {value / bar:.2f} of the bar")
    return 0 if all(value <= bar for _, value, bar, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
