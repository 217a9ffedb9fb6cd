# SPDX-License-Identifier: Apache-2.0
"""tools/check_english.py: refused phrases are found with their lines, and plain English passes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "check_english.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("check_english", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("'data' is no axis of the mesh", "is no axis"),
        ("the sizes are no integers", "are no integers"),
        ("def test_what_is_no_key_raises", "is no key"),
        ("TEST(Spec, WhatIsNoAxisIsRefused)", "is no axis"),
        ('"the axis is "\n    "no axis"', "is no axis"),
        ("// what is\n/// no array", "is no array"),
        ("told = {}", "told"),
        ("it waits for good", "for good"),
        ("a thread who waits", "who waits"),
        ("memory of who calls", "of who"),
        ("Whoever waits", "whoever"),
        ("laid out anew", "anew"),
        ("one a device", "one a device"),
        ("4 bytes an element", "bytes an element"),
        ("where it lies", "where it lies"),
        ("cut along x", "cut along"),
        ("the machine at hand", "at hand"),
    ],
)
def test_refused_phrases_are_found(tool, text, phrase):
    (found,) = tool.refused_phrases(text)
    assert found[1].lower() == phrase


@pytest.mark.parametrize(
    "text",
    [
        "there is no such file, and there would be no time",
        "it is no longer used and is no larger than 4",
        "for good performance",
        "the untold story",
        "a user who knows JAX",
        "0.5 ms a call",
        "a value lies in [0, 1)",
    ],
)
def test_plain_english_passes(tool, text):
    assert list(tool.refused_phrases(text)) == []


def test_the_line_is_that_of_the_first_word(tool):
    assert [line for line, _, _ in tool.refused_phrases("fine\nis\nno key\n\nanew\n")] == [2, 5]


def test_every_exception_is_needed(tool):
    for name, phrases in tool.EXCEPTIONS.items():
        text = (tool.ROOT / name).read_text(encoding="utf-8")
        assert phrases <= {phrase.lower() for _, phrase, _ in tool.refused_phrases(text)}, name


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('def f():\n    """Returns x."""', []),
        ('def f():\n    """The sum of x."""', [(2, "The")]),
        ('class A:\n    def f(self):\n        """Bytes of x."""', [(3, "Bytes")]),
        ('def f():\n    """Return x."""', [(2, "Return")]),
        ("def f(): pass", []),
        ('class A:\n    """A group."""\n    def __init__(self):\n        """`x` is a size."""', []),
        ('class A:\n    @property\n    def f(self):\n        """Number of devices."""', []),
        ('class A:\n    @functools.cached_property\n    def f(self):\n        """Number of devices."""', []),
    ],
)
def test_docstrings_of_functions_begin_with_a_verb(tool, source, found):
    assert list(tool.docstrings_without_verb(source)) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('def f():\n    """Returns x."""', []),
        ('def f():\n    """Returns x, which is\n    an Array."""', []),
        ('def f():\n    """Returns x"""', [(2, "Returns x")]),
        ('def f():\n    """Returns x:\n\n    an Array."""', [(2, "Returns x:")]),
        ('def mesh_shape():\n    """Returns the mesh shape."""', [(2, "Returns the mesh shape.")]),
        ('def close():\n    """Closes."""', [(2, "Closes.")]),
        ('def close():\n    """Closes. Waits for all threads."""', [(2, "Closes. Waits for all threads.")]),
        ('def close():\n    """Closes the file."""', []),
        ('class Mesh:\n    """A Mesh."""', [(2, "A Mesh.")]),
        ("def f(): pass", []),
    ],
)
def test_docstrings_begin_with_a_complete_sentence(tool, source, found):
    assert list(tool.docstrings_without_summary(source)) == found


def test_the_command_reads_stubs_of_the_package(tmp_path, tool, monkeypatch, capsys):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "python").mkdir()
    stub = 'def f() -> int:\n    """\n    The sum of x.\n    """\ndef g() -> int:\n    """\n    Returns x\n    """\n'
    (tmp_path / "python" / "core.pyi").write_text(stub, encoding="utf-8")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["check_english.py"])
    assert tool.main() == 1
    assert capsys.readouterr().out == (
        f"python/core.pyi:2: The; write {tool.VERB_FIRST}\npython/core.pyi:6: Returns x; write {tool.SUMMARY}\n"
    )


def test_the_command_prints_file_line_phrase_and_advice(tmp_path, tool, monkeypatch, capsys):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a.md").write_text("One.\nThe process was told.\n", encoding="utf-8")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["check_english.py"])
    assert tool.main() == 1
    assert capsys.readouterr().out == 'a.md:2: told; write "reported", "recorded", "returned" or "passed"\n'
    monkeypatch.setattr(sys, "argv", ["check_english.py", "--count"])
    assert tool.main() == 1
    assert capsys.readouterr().out == "    1 a.md\n"
