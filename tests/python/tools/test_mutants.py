# SPDX-License-Identifier: Apache-2.0
"""tools/mutants changes what the program does, one place at a time, and not its texts and types."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
if not (ROOT / "tools" / "mutants").is_dir():
    pytest.skip("needs the checkout", allow_module_level=True)
sys.path.insert(0, str(ROOT))
from tools.mutants import calls  # noqa: E402
from tools.mutants.places import Finder, Mutant, blocks_of, choose  # noqa: E402

sys.path.remove(str(ROOT))


def changes(source):
    """(function, what stands there, [what replaces it]) of each place, in the order of the file."""
    data = source.encode()
    places = sorted(Finder("file.py", data).places, key=lambda place: (place[0].start, -place[0].end))
    return [(p[0].function, data[p[0].start : p[0].end].decode(), [each.text for each in p]) for p in places]


def test_each_kind_of_place_is_changed():
    source = '''
def f(x: int = 3, mode="fast", *, deep=False):
    """Text 7."""
    if x < 1 and not deep:
        raise ValueError(f"x is {x + 1}")
    total = -x + 1.5
    for each, _ in zip([y for y in range(9) if y], x, strict=True):
        x.done(each)
        break
    x.total += total
    x.name = mode
    return total
'''
    assert changes(source) == [
        ("f", "3", ["4", "(2)"]),
        ("f", '"fast"', ["'mutant'"]),
        ("f", "False", ["True"]),
        ("f", "x < 1 and not deep", ["True", "False"]),
        ("f", "x < 1 and not deep", ["(x < 1 or not deep)"]),
        ("f", "x < 1", ["(x <= 1)", "(x >= 1)"]),
        ("f", "1", ["2", "(0)"]),
        ("f", "not deep", ["(deep)"]),
        ("f", 'raise ValueError(f"x is {x + 1}")', ["pass"]),
        ("f", "-x + 1.5", ["(-x - 1.5)"]),
        ("f", "-x", ["(x)"]),
        ("f", "1.5", ["2.5", "(0.5)"]),
        ("f", "9", ["10", "(8)"]),
        ("f", "y", ["True"]),
        ("f", "x.done(each)", ["pass"]),
        ("f", "break", ["pass"]),
        ("f", "x.total += total", ["pass"]),
        ("f", "x.name = mode", ["pass"]),
        ("f", "return total", ["return None"]),
    ]


def test_texts_types_and_asserts_are_not_changed():
    source = '''
"""About 3 things."""
from typing import TYPE_CHECKING, TypeVar
if TYPE_CHECKING:
    limit = 4
__all__ = ["f"][0:1]
T = TypeVar("T", bound=1)
class C:
    """1"""
    __slots__ = ("a",) * 2
    count: "Annotated[int, 5]"
    size: int = 6
@overload
def f(x: int = 7) -> int: ...
def f(x: "Literal[1]") -> "Literal[2]":
    assert x > 1
    return None
'''
    assert changes(source) == [("", "6", ["7", "(5)"])]


def test_every_mutant_of_a_sample_is_a_program_and_a_seed_gives_the_same_ones():
    mutants = choose(3, 40, ["_array_ops/"])
    assert mutants == choose(3, 40, ["_array_ops/"])
    assert mutants != choose(4, 40, ["_array_ops/"])
    for mutant in mutants:
        assert mutant.path.startswith("_array_ops/")
        assert ast.dump(ast.parse(mutant.source())) != ast.dump(
            ast.parse((ROOT / "python" / "artifex_devices" / mutant.path).read_text())
        )


def test_blocks_are_bodies_branches_loops_and_handlers():
    source = """
class C:
    def f(self, x):
        "Text."
        if x:
            return 1
        elif x is None:
            x = 2
        for y in x:
            def g():
                pass
            try:
                g()
            except ValueError:
                raise
            finally:
                y()
    def f(self): ...
"""
    blocks = [
        (block.function, block.number, block.first_line, block.last_line) for block in blocks_of(ast.parse(source))
    ]
    assert blocks == [
        ("f", 0, 5, 17),
        ("f", 1, 6, 6),
        ("f", 2, 7, 8),
        ("f", 3, 8, 8),
        ("f", 4, 10, 17),
        ("g", 0, 11, 11),
        ("f", 5, 13, 13),
        ("f", 6, 15, 15),
        ("f", 7, 17, 17),
        ("f", 8, 18, 18),
    ]


def test_tests_that_execute_the_changed_block_come_first():
    source = (ROOT / "python" / "artifex_devices" / "_base" / "text.py").read_text()
    place = source.index('return f"{count} byte')
    mutant = Mutant("_base/text.py", "bytes_text", place, place, "")
    assert mutant.block() == "_base/text.py::bytes_text#1"
    names = ["_base/text.py::bytes_text#0", mutant.block(), "_base/text.py::wrapped#0", "_base/toml.py::bytes_text#1"]
    tests = [
        calls.Test("tests/python/base/test_text.py::function", 1.0, [0]),
        calls.Test("tests/python/base/test_text.py::other_file", 1.0, [3]),
        calls.Test("tests/python/base/test_text.py::file", 1.0, [2]),
        calls.Test("tests/python/planner/test_planner.py::block", 9.0, [0, 1]),
        calls.Test("tests/python/base/test_text.py::block", 1.0, [1, 3]),
    ]
    found = [test.name.rpartition("/")[2] for test in calls.Calls(names, tests).tests_of(mutant)]
    assert found == ["test_text.py::block", "test_planner.py::block", "test_text.py::function", "test_text.py::file"]
    assert calls.Calls(names, tests).executed() == set(names)


def test_tests_of_the_room_come_before_quicker_ones_of_other_rooms():
    source = (ROOT / "python" / "artifex_devices" / "_base" / "text.py").read_text()
    mutant = Mutant("_base/text.py", "bytes_text", source.index('return f"{count} byte'), 0, "")
    tests = [
        calls.Test("tests/python/planner/test_planner.py::quick", 1.0, [0]),
        calls.Test("tests/python/base/test_toml.py::room", 9.0, [0]),
        calls.Test("tests/python/base/test_text.py::room_and_file", 9.5, [0]),
    ]
    found = [test.name.rpartition("::")[2] for test in calls.Calls([mutant.block()], tests).tests_of(mutant)]
    assert found == ["room_and_file", "room", "quick"]


def test_tests_that_read_the_module_come_first_for_code_that_runs_at_import():
    mutant = Mutant("_base/recorded_options.py", "", 0, 0, "")
    tests = [
        calls.Test("tests/python/runtime/test_devices.py::file", 1.0, [0]),
        calls.Test("tests/python/base/test_small_parts.py::names_it", 1.0, []),
        calls.Test("tests/python/package/test_value_classes.py::all", 1.0, []),
        calls.Test("tests/python/package/test_types.py::other", 1.0, []),
    ]
    names = ["_base/recorded_options.py::check_recorded#0"]
    found = [test.name.rpartition("::")[2] for test in calls.Calls(names, tests).tests_of(mutant)]
    assert found == ["names_it", "all", "file"]
