# SPDX-License-Identifier: Apache-2.0
"""tools/python_rooms.py: the order of the Python rooms, on small trees."""

import pickle
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import python_rooms  # noqa: E402


@pytest.fixture
def tree(tmp_path):
    """tree({path below the package: text}) writes a package and returns what the checks report, without paths."""

    def check(files, others=None):
        package = tmp_path / python_rooms.FOLDER
        for path, text in {"__init__.py": "", **files}.items():
            (package / path).parent.mkdir(parents=True, exist_ok=True)
            (package / path).write_text(text)
        for path, text in (others or {}).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(text if isinstance(text, bytes) else text.encode())
        return [line.removeprefix(f"{python_rooms.FOLDER}/") for line in python_rooms.check_python(tmp_path)]

    return check


def test_a_room_may_import_the_rooms_before_it(tree):
    assert tree({"_base/text.py": "", "_tree/keys.py": "from artifex_devices._base import text\n"}) == []


@pytest.mark.parametrize(
    "statement",
    [
        "from artifex_devices._tree import keys",
        "from artifex_devices._tree.keys import Key",
        "import artifex_devices._tree.keys",
        "if TYPE_CHECKING:\n    from artifex_devices._tree.keys import Key",
    ],
)
def test_an_import_against_the_order_is_reported(tree, statement):
    found = tree({"_base/text.py": f"{statement}\n", "_tree/keys.py": ""})
    assert len(found) == 1
    assert found[0].endswith(": _base imports _tree.keys, but _tree does not stand before _base")


@pytest.mark.parametrize(
    ("path", "statement"),
    [
        ("_base/two.py", "from artifex_devices._base.one import a\n"),
        ("_base/two.py", "if TYPE_CHECKING:\n    from artifex_devices._base.one import a\n"),
        ("_spmd/two.py", "def f():\n    from artifex_devices._spmd.one import a\n"),
        ("_spmd/two.py", "def f(name):\n    import_module(f'artifex_devices._spmd.{name}')\n"),
        ("_spmd/two.py", "def f():\n    importlib.import_module('artifex_devices._spmd.one')\n"),
    ],
)
def test_a_circle_within_a_room_is_reported(tree, path, statement):
    room = path.partition("/")[0]
    files = {f"{room}/one.py": f"from artifex_devices.{room}.two import b\n", path: statement}
    circle = f"{room}.one -> {room}.two -> {room}.one"
    assert f"python/artifex_devices: import circle: {circle}" in tree(files)


def test_a_circle_through_an_earlier_room_is_reported(tree):
    files = {
        "_base/one.py": "def f():\n    from artifex_devices._spmd.two import b\n",
        "_spmd/two.py": "from artifex_devices._base.one import a\n",
    }
    assert tree(files) == ["python/artifex_devices: import circle: _base.one -> _spmd.two -> _base.one"]


def test_a_package_and_its_module_are_a_circle_where_each_imports_the_other(tree):
    files = {
        "doctor/__init__.py": "from artifex_devices.doctor.machine import facts\nclass Section: pass\n",
        "doctor/machine.py": "from artifex_devices.doctor import Section\n",
    }
    assert tree(files) == ["python/artifex_devices: import circle: doctor -> doctor.machine -> doctor"]


def test_import_module_of_other_modules_makes_none(tree):
    files = {
        "_spmd/one.py": "from artifex_devices._spmd.two import b\n",
        "_spmd/two.py": "def f(name):\n    import_module(name)\n    import_module(f'artifex_devices._tree.{name}')\n",
        "_tree/keys.py": "",
    }
    assert tree(files) == []


def test_imports_inside_functions_are_declared(tree):
    body = "def f():\n    from artifex_devices._base import text\n"
    found = tree({"_base/text.py": "", "_tree/keys.py": body})
    text = "_tree/keys.py:2: imports _base.text inside a function; it is not in LAZY of tools/python_rooms.py"
    assert found == [text]
    assert tree({"_tree/keys.py": "", "command_line/plan.py": body}) == []
    assert "imports json inside a function" in tree({"_tree/keys.py": "def f():\n    import json\n"})[0]


def test_libraries_stay_in_the_files_that_wrap_them(tree):
    assert tree({"_spmd/cooperative.py": "import greenlet\n"}) == []
    assert tree({"_spmd/program.py": "import greenlet\n"}) == [
        "_spmd/program.py:1: imports greenlet; only _spmd/cooperative.py may"
    ]


def test_a_module_outside_all_rooms_is_reported(tree):
    found = tree({"kitchen.py": ""})
    assert found == ["kitchen.py:1: kitchen is in no line of ORDER in tools/python_rooms.py"]


def test_documents_name_public_paths_only(tree):
    page = "`artifex_devices.planner.plan_reshard`\n`artifex_devices._base.text` and\n`artifex_devices.planner.plans`\n"
    found = tree({"planner/__init__.py": "", "planner/plans.py": ""}, {"docs/learn/page.md": page})
    assert found == [
        "docs/learn/page.md:2: names artifex_devices._base.text, which is private",
        "docs/learn/page.md:3: names artifex_devices.planner.plans, which is private",
    ]


def test_pickles_name_public_paths_only(tree, monkeypatch):
    class Value:
        pass

    module = type(sys)("artifex_devices._base.text")
    module.Value = Value
    monkeypatch.setitem(sys.modules, module.__name__, module)
    Value.__module__, Value.__qualname__ = module.__name__, "Value"
    for protocol in (2, 5):
        written = pickle.dumps([Value(), Value()], protocol)
        found = tree({"_base/text.py": ""}, {"tests/data/pickles/1.0/value.pickle": written})
        assert found == ["tests/data/pickles/1.0/value.pickle:1: names artifex_devices._base.text, which is private"]


def test_bindings_name_python_modules_in_one_file(tree):
    line = 'py::module_::import("artifex_devices.layout");\n'
    found = tree({}, {"cpp/bindings/bind_layout.cpp": line, "cpp/bindings/python_modules.h": line})
    assert found == [
        "cpp/bindings/bind_layout.cpp:1: imports a Python module by name; cpp/bindings/python_modules.h lists them"
    ]
