# SPDX-License-Identifier: Apache-2.0
"""What README and docs tell a reader to run works, and prints the numbers they show (scripts/recipes.py): the quick
ones here, all of them by `make recipes`."""

import re
import subprocess
import sys

import pytest
from conftest import OTRN, ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import recipes  # noqa: E402

PAGE = """# A page

    printf 'modelled 12.5 us\\nhost 9 ms\\n'

```text
modelled 12.5 us
…
host 7 ms
```

<!-- recipe: N=3 -->

```sh
test N = 3
```

```python
x = 1
```

Words.

```python
print("sum", x + 1)
```

```text
sum 2
```

<!-- recipe: skip it takes a day -->

    exit 1
"""


def run(page, *words):
    """Status and output of the script on a page."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "recipes.py", *words, page], capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def test_a_page_that_is_right(tmp_path):
    (tmp_path / "page.md").write_text(PAGE)
    status, said = run(tmp_path / "page.md")
    assert status == 0 and "3 recipes run, 0 wrong, 1 skipped" in said and "skipped: it takes a day" in said


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("modelled 12.5 us\n…", "modelled 12.6 us\n…", "page.md:6: the page says"),  # a number
        ("host 7 ms", "guest 7 ms", "no such line"),  # a word
        ("N=3", "N=4", "exit status 1"),  # a command that fails
        ("x = 1", "x = y", "NameError"),
        ("sum 2", "sum 3", "printed was\n  sum 2"),
    ],
)
def test_a_page_that_is_wrong(tmp_path, old, new, wanted):
    (tmp_path / "page.md").write_text(PAGE.replace(old, new))
    status, said = run(tmp_path / "page.md")
    assert status == 1 and "1 wrong" in said and wanted in said


def test_update_writes_what_was_printed(tmp_path):
    (tmp_path / "page.md").write_text(PAGE.replace("modelled 12.5 us\n…", "modelled  99 us\n…").replace("sum 2", "sum 7"))
    assert run(tmp_path / "page.md", "--update")[0] == 1
    assert (tmp_path / "page.md").read_text() == PAGE.replace("modelled 12.5 us\n…", "modelled  12.5 us\n…")


def test_every_block_is_a_recipe():
    assert len(recipes.PAGES) > 3 and all(recipes.recipes_of(page) for page in recipes.PAGES)


@pytest.mark.parametrize("page", recipes.PAGES, ids=lambda page: page.name)
def test_quick_recipes(page):
    status, said = run(page, "--fast")
    assert status == 0, said


def info(topic):
    return subprocess.run([OTRN, "info", topic], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("page", recipes.PAGES, ids=lambda page: page.name)
def test_variables_and_commands_exist(page):
    """Also those in tables and sentences, which nothing runs."""
    text = page.read_text()
    settings = (ROOT / "python" / "opentrn" / "torch" / "settings.py").read_text()
    variables = set(re.findall(r"\b(?:OTRN|OPENTRN)_[A-Z_]*[A-Z]\b", text))
    known = set(re.findall(r"\b(?:OTRN|OPENTRN)_[A-Z_]*[A-Z]\b", info("options") + settings))
    assert variables <= known, variables - known
    commands = set(re.findall(r"(?:`|^ *|/)otrn +([a-z]+)\b", text, re.M))
    assert commands <= {line.split()[0] for line in info("commands").splitlines()}
