# SPDX-License-Identifier: Apache-2.0
"""README and guide: their code runs, their output is what is printed, their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from artifex_devices import device_manager

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
FOLDERS = ("formats", "guide", "how_to")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md")))]


def blocks_of(page: Path, language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_manager._Process, "manager", None)  # a page is read from a new process
    namespace: dict[str, Any] = {}
    for code in blocks_of(page, "python"):
        exec(compile(code, page.name, "exec"), namespace)


def test_the_readmes_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks_of(ROOT / "README.md", "python")[0], "README.md", "exec"), {})
    assert capsys.readouterr().out == blocks_of(ROOT / "README.md", "text")[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []
