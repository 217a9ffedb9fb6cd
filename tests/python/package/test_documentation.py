# SPDX-License-Identifier: Apache-2.0
"""README and documentation: code runs as it stands, output is what is printed, links lead to files and headings.

tools/run_page.py runs a page, in a process of its own with this machine's devices. A block that needs more sets
`jax_num_cpu_devices`, or opens a world by `ad.simulate`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import artifex_devices
import pytest
from artifex_devices import errors

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *(page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "decisions")]
OTHERS = [
    *ROOT.glob("*.md"),
    *(ROOT / folder / "README.md" for folder in ("bench", "tools")),
    *sorted((DOCS / "decisions").glob("*.md")),
    *sorted((ROOT / "tests").rglob("*.md")),
]
RUN_PAGE = ROOT / "tools" / "run_page.py"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in re.findall(r"(?m)^#+ (.+)$", text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        found.add(next(each for n in count() if (each := f"{slug}-{n}" if n else slug) not in found))
    return found


def dead_links(page: Path) -> list[str]:
    """Links of a page to files and headings that do not exist."""
    text = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"))
    dead = []
    for link in LINK.findall(text):
        target, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        path = page.parent / target if target else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            dead.append(link)
    return dead


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=lambda page: page.name
)
def test_code_of_a_page_runs(page: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "COLUMNS")}
    done = subprocess.run(
        [sys.executable, "-W", "error", RUN_PAGE, page],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if "is not installed" in done.stdout:
        pytest.skip(done.stdout)


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert dead_links(page) == []


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_row_of_a_table_and_an_item_of_a_list_have_their_own_lines(page: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    assert re.findall(r"(?m)^\|.*[^|\n]$|[.;] - (?=[*`A-Z]).*$", text) == []


def test_dead_links_and_wrong_anchors_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# A heading: `code`, twice\n\n# A heading: `code`, twice\n")
    page.write_text(
        "# Title\n[a](other.md#a-heading-code-twice) [b](other.md#a-heading-code-twice-1) [c](#title)\n"
        "[d](other.md#missing) [e](missing.md) [f](#missing)\n```text\n[g](missing.md)\n```\n"
    )
    assert dead_links(page) == ["other.md#missing", "missing.md", "#missing"]


def missing_names(text: str) -> list[str]:
    """Names of the package in `code` of a page, such as `ad.lax.psum`, that do not exist."""
    missing = []
    for span in re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```$", "", text)):
        for name in re.findall(r"(?<![\w.])(?:ad|artifex_devices)((?:\.[A-Za-z_]\w*)+)", span):
            path, found = "artifex_devices", artifex_devices
            for part in name[1:].split("."):
                path += f".{part}"
                if not hasattr(found, part) and importlib.util.find_spec(path) is None:
                    missing.append(span)
                    break
                found = getattr(found, part) if hasattr(found, part) else importlib.import_module(path)
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_the_package_in_the_text_of_a_page_exist(page: Path) -> None:
    assert missing_names(page.read_text(encoding="utf-8")) == []


def test_a_name_that_does_not_exist_is_found() -> None:
    assert missing_names("`ad.lax.psum` `ad.spam` `ad.planner.spam(x)` `ad.doctor.examine`") == [
        "ad.spam",
        "ad.planner.spam(x)",
    ]


@pytest.mark.parametrize("record", sorted((DOCS / "decisions").glob("[0-9]*.md")), ids=lambda record: record.stem)
def test_a_decision_record_has_at_most_40_lines(record: Path) -> None:
    assert len(record.read_text(encoding="utf-8").splitlines()) <= 40


def test_each_error_class_has_a_heading_in_the_index_of_errors() -> None:
    assert {name.lower() for name in errors.__all__} <= anchors(DOCS / "errors.md")


@pytest.mark.parametrize("page", ["README.md", "docs/why.md", "docs/faq.md", "docs/how_to/device_manager.md"])
def test_pages_say_the_same_of_gpus_and_refer_to_one_page(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    story = "Arrays compute on CPUs with NumPy, and on NVIDIA GPUs with CuPy: "
    source = r"\[Use GPUs through CUDA\]\([a-z_/]*cuda\.md\) says which GPUs have passed the tests"
    assert len(re.findall(story + source, text)) == 1
