# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md and docs/contributing: files exist and define the names beside them; the picture has all rooms."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import python_rooms  # noqa: E402

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs/contributing").glob("*.md"))}
QUESTION = re.compile(r"^\| (?P<question>[^|]+) \| `(?P<path>[^|`]+)` \| `(?P<name>[^|`]+)` \|$", re.MULTILINE)
QUESTIONS = [match.groups() for match in QUESTION.finditer(PAGES["which_file"])]
# A row of a call that is followed through the code.
HOP = re.compile(r"^\| `([^|`]+)` \| `([^|`]+)` \| [^|]+ \|$", re.MULTILINE)
HOPS = [(where, *hop) for where, text in [("CONTRIBUTING", CONTRIBUTING), *PAGES.items()] for hop in HOP.findall(text)]

# A Python def, class, assignment or re-export, or the head of a C++ function.
DEFINITION = (
    r"^(\s*(def|class) {name}\b|{name}\b[^\n]* = |[A-Za-z][^\n]*[\s:&*]{name}\(|from \S+ import {name} as {name}$)"
)


def file_of(path: str) -> Path:
    """As the text above the tables says: relative to the core, or to the package."""
    if (ROOT / path).is_file():
        return ROOT / path
    return ROOT / ("python" if path.endswith((".py", ".pyi")) else "cpp") / "artifex_devices" / path


def defines(path: str, name: str) -> bool:
    """Whether a file exists and defines a name."""
    definition = re.compile(DEFINITION.format(name=re.escape(name)), re.MULTILINE)
    return file_of(path).is_file() and definition.search(file_of(path).read_text(encoding="utf-8")) is not None


def test_there_are_thirty_questions_and_no_file_is_named_for_two():
    assert len(QUESTIONS) >= 30
    assert len({question for question, _, _ in QUESTIONS}) == len({path for _, path, _ in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize(("question", "path", "name"), QUESTIONS, ids=[path for _, path, _ in QUESTIONS])
def test_a_question_leads_to_its_file(question, path, name):
    assert defines(path, name), question


@pytest.mark.parametrize(("page", "name", "path"), HOPS, ids=[f"{page}-{name}" for page, name, _ in HOPS])
def test_functions_of_a_walk_are_defined_in_their_files(page, name, path):
    assert defines(path, name), f"{page} names {name} of {path}"


def test_each_row_of_a_walk_is_checked():
    walks = PAGES["walks"].split("\n## ")[1:]
    assert len(walks) == 4
    for walk in walks:
        assert 10 <= len(HOP.findall(walk)) == walk.count("\n| `") <= 20


def test_a_function_that_was_renamed_or_moved_is_not_found():
    assert defines("_spmd/arguments.py", "blocks_of")
    assert not defines("_spmd/arguments.py", "blocks_of_renamed")
    assert not defines("_spmd/mapped.py", "blocks_of")
    assert not defines("_spmd/moved.py", "blocks_of")


def test_words_are_those_of_the_code():
    files = [path for pattern in ("cpp/**/*.h", "cpp/**/*.cpp", "python/**/*.py") for path in ROOT.glob(pattern)]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    names = set(re.findall(r"`(\w+)`", PAGES["rules"].split("## Words")[1]))
    assert len(names) > 20
    assert sorted(name for name in names if not re.search(rf"\b(class|struct) {name}\b|\b{name}\(", code)) == []


def test_the_picture_has_all_rooms():
    picture = CONTRIBUTING.split("```")[1]
    rooms = {room for line in python_rooms.ORDER for room in line if room != "__main__"}
    for lists in (ROOT / "cpp/artifex_devices/CMakeLists.txt", ROOT / "cpp/artifex_planner/CMakeLists.txt"):
        rooms.update(re.findall(r"artifex_layer\((\w+)", lists.read_text(encoding="utf-8")))
        rooms.update(folder.name for folder in lists.parent.iterdir() if folder.is_dir())
    assert sorted(rooms - set(re.findall(r"\w+", picture))) == []
