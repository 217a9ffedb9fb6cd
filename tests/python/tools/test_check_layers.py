# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py finds planted violations, with file and line, and nothing in our own tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "check_layers.py"

pytestmark = pytest.mark.skipif(not TOOL.is_file(), reason="needs the checkout")

LAYERS = """\
# rooms
artifex_layer(base
  PUBLIC shape.h
  SOURCES shape.cpp)
artifex_layer(topology
  SOURCES machine.cpp
  DEPENDS base  # hwloc lives here
  LIBRARIES PkgConfig::hwloc)
artifex_layer(device
  SOURCES client.cpp cpu/workers.cpp
  DEPENDS topology)
"""

CLEAN = {
    "cpp/artifex_devices/CMakeLists.txt": LAYERS,
    "cpp/artifex_devices/base/shape.h": "#include <vector>\n",
    "cpp/artifex_devices/base/shape.cpp": '#include "artifex_devices/base/shape.h"\n',
    "cpp/artifex_devices/topology/machine.h": '#include "artifex_devices/base/shape.h"\n',
    "cpp/artifex_devices/topology/machine.cpp": "#include <hwloc.h>\n",
    "cpp/artifex_devices/device/client.cpp": '#include "artifex_devices/base/shape.h"\n',
    "cpp/artifex_devices/device/cpu/workers.cpp": '#include "artifex_devices/topology/machine.h"\n',
    "cpp/bindings/pybind.h": "#include <pybind11/pybind11.h>\n",
    "cpp/bindings/gil.cpp": '#include <pybind11/stl.h>\n#include "gil.h"\n',
    "cpp/bindings/numpy_bridge.cpp": "#include <pybind11/numpy.h>\n",
}

NUMPY_FILES = "bind_data.cpp, numpy_bridge.cpp, planner/bind_reshard.cpp in cpp/bindings"


def check(tmp_path: Path, **changes: str) -> list[str]:
    """Runs the tool on the clean tree with some files changed; keys are their paths."""
    for name, text in (CLEAN | changes).items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    done = subprocess.run(
        [sys.executable, str(TOOL), str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    lines = done.stdout.splitlines()
    assert done.returncode == (1 if lines else 0), done.stderr
    return lines


def test_our_own_tree_is_clean() -> None:
    done = subprocess.run([sys.executable, str(TOOL)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_clean_tree_passes_and_dependencies_are_closed_over(tmp_path: Path) -> None:
    assert check(tmp_path) == []


def test_an_upward_include_is_named_with_file_and_line(tmp_path: Path) -> None:
    text = '#pragma once\n\n#include "artifex_devices/device/client.h"\n'
    assert check(tmp_path, **{"cpp/artifex_devices/topology/machine.h": text}) == [
        "cpp/artifex_devices/topology/machine.h:3: room topology includes artifex_devices/device/client.h, "
        "but topology may include only base, topology"
    ]


def test_a_dependency_on_a_later_room_is_refused(tmp_path: Path) -> None:
    layers = LAYERS.replace("SOURCES shape.cpp)", "SOURCES shape.cpp DEPENDS device)")
    assert check(tmp_path, **{"cpp/artifex_devices/CMakeLists.txt": layers}) == [
        "cpp/artifex_devices/CMakeLists.txt:2: room base depends on device, which is not declared before it; "
        "dependencies point only to earlier rooms"
    ]


@pytest.mark.parametrize(
    ("file", "include", "message"),
    [
        ("base/shape.h", "<Python.h>", "Python belongs to cpp/bindings: the core builds without Python"),
        (
            "base/shape.cpp",
            "<pybind11/pybind11.h>",
            "Python belongs to cpp/bindings: the core builds without Python",
        ),
        ("base/shape.cpp", "<numpy/arrayobject.h>", f"NumPy belongs to {NUMPY_FILES}"),
        ("device/client.cpp", "<hwloc.h>", "hwloc belongs to cpp/artifex_devices/topology/*.cpp"),
        ("topology/machine.h", "<hwloc/bitmap.h>", "hwloc belongs to cpp/artifex_devices/topology/*.cpp"),
        (
            "base/shape.cpp",
            "<Eigen/Core>",
            "Eigen belongs to the sources of measure and collective in cpp/artifex_devices",
        ),
    ],
)
def test_a_confined_library_is_refused_elsewhere(tmp_path: Path, file: str, include: str, message: str) -> None:
    path = f"cpp/artifex_devices/{file}"
    assert check(tmp_path, **{path: f"#include {include}\n"}) == [f"{path}:1: includes {include[1:-1]}; {message}"]


def test_numpy_is_refused_in_other_bindings(tmp_path: Path) -> None:
    assert check(tmp_path, **{"cpp/bindings/gil.cpp": "#  include <pybind11/numpy.h>\n"}) == [
        f"cpp/bindings/gil.cpp:1: includes pybind11/numpy.h; NumPy belongs to {NUMPY_FILES}"
    ]


def test_bindings_have_the_casts_of_shared_objects(tmp_path: Path) -> None:
    assert check(tmp_path, **{"cpp/bindings/gil.cpp": "#include <pybind11/pybind11.h>\n"}) == [
        "cpp/bindings/gil.cpp:1: includes pybind11/pybind11.h; "
        "pybind11 belongs to cpp/bindings/pybind.h, which has the casts of shared objects; include that"
    ]


def test_the_planner_is_above_the_runtime(tmp_path: Path) -> None:
    lines = check(
        tmp_path,
        **{
            "cpp/artifex_devices/base/shape.h": '#include "artifex_planner/step/plan.h"\n',
            "cpp/artifex_planner/step/plan.h": '#include "plan.h"\n#include "artifex_planner/step/cost.h"\n',
            "cpp/bindings/gil.cpp": '#include "artifex_planner/step/plan.h"\n',
            "cpp/bindings/planner/module.cpp": '#include "artifex_planner/step/plan.h"\n',
        },
    )
    only = "only cpp/artifex_planner and cpp/bindings/planner may use the planner"
    assert lines == [
        f"cpp/artifex_devices/base/shape.h:1: includes artifex_planner/step/plan.h; {only}",
        'cpp/artifex_planner/step/plan.h:1: includes "plan.h"; write the whole path, '
        '"artifex_planner/<folder>/<file>.h"',
        f"cpp/bindings/gil.cpp:1: includes artifex_planner/step/plan.h; {only}",
    ]


def test_short_paths_unknown_rooms_and_unlisted_sources_are_refused(tmp_path: Path) -> None:
    lines = check(
        tmp_path,
        **{
            "cpp/artifex_devices/base/shape.cpp": ('#include "shape.h"\n#include "artifex_devices/bass/shape.h"\n'),
            "cpp/artifex_devices/base/forgotten.cpp": "",
            "cpp/artifex_devices/cellar/wine.h": "",
        },
    )
    assert lines == [
        "cpp/artifex_devices/base/forgotten.cpp:1: is not in the SOURCES of artifex_layer(base ...)",
        'cpp/artifex_devices/base/shape.cpp:1: includes "shape.h"; write the whole path, '
        '"artifex_devices/<folder>/<file>.h"',
        "cpp/artifex_devices/base/shape.cpp:2: includes artifex_devices/bass/shape.h, which is in no room; "
        "rooms are base, topology, device",
        "cpp/artifex_devices/cellar/wine.h:1: lies in no room; rooms are base, topology, device",
    ]


def test_an_include_in_a_comment_does_not_count(tmp_path: Path) -> None:
    assert check(tmp_path, **{"cpp/artifex_devices/base/shape.h": "// #include <Python.h>\n"}) == []
