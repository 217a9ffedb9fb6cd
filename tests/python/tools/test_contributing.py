# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md: each question leads to a file that exists and defines the name to look for."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
ROW = re.compile(r"^\| (?P<question>[^|]+) \| `(?P<path>[^|`]+)` \| `(?P<name>[^|`]+)` \|$", re.MULTILINE)
ROWS = [match.groups() for match in ROW.finditer((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))]

# A Python def, class, assignment or re-export, or the head of a C++ function.
DEFINITION = (
    r"^(\s*(def|class) {name}\b|{name}\b[^\n]* = |[A-Za-z][^\n]*[\s:&*]{name}\(|from \S+ import {name} as {name}$)"
)


def file_of(path: str) -> Path:
    """As the text above the table says: relative to the core, or to the package."""
    if (ROOT / path).is_file():
        return ROOT / path
    return ROOT / ("python" if path.endswith((".py", ".pyi")) else "cpp") / "artifex_devices" / path


def test_there_are_thirty_questions_and_no_file_is_named_for_two():
    assert len(ROWS) >= 30
    assert len({question for question, _, _ in ROWS}) == len({path for _, path, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("question", "path", "name"), ROWS, ids=[path for _, path, _ in ROWS])
def test_a_question_leads_to_its_file(question, path, name):
    file = file_of(path)
    assert file.is_file(), question
    definition = re.compile(DEFINITION.format(name=re.escape(name)), re.MULTILINE)
    assert definition.search(file.read_text(encoding="utf-8")), question
