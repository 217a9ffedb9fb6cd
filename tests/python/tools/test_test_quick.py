# SPDX-License-Identifier: Apache-2.0
"""tools/test_quick.py: which tests a change in a room needs."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import python_rooms  # noqa: E402
import test_quick as quick  # noqa: E402

CPP_ROOMS = [path.name for path in (ROOT / "cpp" / "artifex_devices").iterdir() if path.is_dir()]
PYTHON_ROOMS = [name for names in python_rooms.ORDER for name in names]


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("cpp/artifex_planner/step/cost.cpp", "planner"),
        ("cpp/bindings/module.cpp", "bindings"),
        ("python/artifex_devices/_array_ops/reduce/scans.py", "array_ops"),
        ("python/artifex_devices/lax.py", "lax"),
        ("tests/python/render/test_pictures.py", "render"),
        ("tests/cpp/base/shape_test.cpp", "base"),
        ("tools/setup.sh", "tools"),
        ("README.md", None),
        ("python/artifex_devices/__init__.pyi", "__init__"),
        ("tests/python/conftest.py", None),
    ],
)
def test_the_room_of_a_file(path, room):
    assert quick.room_of(path) == room


@pytest.mark.parametrize("room", sorted({*CPP_ROOMS, *PYTHON_ROOMS, "__init__"}))
def test_every_room_has_tests(room):
    steps = quick.commands({quick.room_of(f"python/artifex_devices/{room}")})
    assert steps[0][1:] == ["tools/check_layers.py"]
    folders = [word for word in steps[-1] if word.startswith("tests/python/")]
    assert all((ROOT / folder).is_dir() for folder in folders)
    runs_cpp_tests = any(step[0].endswith(f"{room}_test") for step in steps)
    assert folders or runs_cpp_tests


def test_the_extension_is_installed_and_cpp_tests_are_built_before_they_run():
    install, build, run = quick.commands({"planner"})[1:4]
    assert install == ["tools/setup.sh"]
    assert build[-1:] == ["planner_test"]
    built = [path for path in (ROOT / "build" / "python").resolve().rglob("planner_test") if path.is_file()]
    assert not built or Path(run[0]).resolve() in built


def test_an_unknown_room_is_refused():
    with pytest.raises(ValueError, match=r"test_quick: kitchen is not a room; expected some of accelerators, "):
        quick.commands({"kitchen"})
