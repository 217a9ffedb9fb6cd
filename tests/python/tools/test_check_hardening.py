# SPDX-License-Identifier: Apache-2.0
"""tools/check_hardening.py: the extension is hardened; a library that lacks a guard is found."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from artifex_devices import _core, _planner

RUNTIME = Path(_core.__file__).with_name("lib") / "libartifex_devices.so"
TOOL = Path(__file__).resolve().parents[3] / "tools" / "check_hardening.py"

# Stands on the stack and is written to elsewhere; the index is checked by the standard library.
SOURCE = """
#include <vector>
void fill(char* buffer);
extern "C" int shown(std::vector<int>& values, int i) {
  char buffer[64];
  fill(buffer);
  return values[i] + buffer[0];
}
"""
HARD = ["-D_GLIBCXX_ASSERTIONS", "-fstack-protector-strong", "-Wl,-z,relro,-z,now,-z,noexecstack"]

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="reads ELF of 64 bits")


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("check_hardening", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def problems_of(tool, tmp_path, capsys):
    """problems_of(flag, ...) builds a library with HARD and these flags: the problems that the tool reports."""
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler ({compiler}) to build libraries that lack something")
    source, library = tmp_path / "weak.cpp", tmp_path / "weak.so"
    source.write_text(SOURCE)

    def build(*flags):
        command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", *HARD, *flags, str(source), "-o", str(library)]
        subprocess.run(command, check=True)
        code = tool.main([str(library)])
        lines = capsys.readouterr().out.splitlines()
        assert code == bool(lines)
        assert all(line.startswith(f"{library}: ") for line in lines)
        return [line.removeprefix(f"{library}: ") for line in lines]

    return build


def test_the_extensions_and_the_runtime_are_hardened(tool, capsys):
    code = tool.main([_core.__file__, _planner.__file__, str(RUNTIME)])
    assert (code, capsys.readouterr().out) == (0, "")


def test_the_runtime_links_nothing_of_cuda(tool):
    needed = tool.read_library(RUNTIME.read_bytes()).words[tool.NEEDED]
    assert "libc.so.6" in needed
    assert [name for name in needed if "cu" in name or "nv" in name] == []


def test_a_hardened_library_has_no_problem(problems_of):
    assert problems_of() == []


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["-Wl,-z,norelro"], "addresses of functions stay writable (-z relro)"),
        (["-Wl,-z,lazy"], "functions are looked up at their first call (-z now)"),
        (["-Wl,-z,execstack"], "the stack is executable (-z noexecstack)"),
        (["-Wl,-rpath,/home/somebody/lib"], "libraries are looked for in '/home/somebody/lib' (RPATH or RUNPATH)"),
        (["-Wl,-rpath,$ORIGIN/a:lib"], "libraries are looked for in 'lib' (RPATH or RUNPATH)"),
        (["-fno-stack-protector"], "no function checks its stack (-fstack-protector-strong)"),
        (["-U_GLIBCXX_ASSERTIONS"], "the standard library checks nothing (-D_GLIBCXX_ASSERTIONS)"),
    ],
)
def test_what_a_library_lacks_is_found(problems_of, flags, problem):
    assert problem in problems_of(*flags)


def test_folders_beside_the_library_are_its_own(problems_of):
    assert problems_of("-Wl,-rpath,$ORIGIN:$ORIGIN/../artifex_devices.libs") == []


def test_a_library_of_one_folder_is_found(problems_of, tmp_path):
    other = tmp_path / "other.so"
    problems_of()
    (tmp_path / "weak.so").rename(other)  # has no soname, so that its path is kept
    assert problems_of("-Wl,--no-as-needed", str(other)) == [f"needs the library {str(other)!r} of one folder"]


@pytest.mark.parametrize(
    ("field", "more", "problem"),
    [
        ("dynamic", (22, 0), "code is changed at load (text relocations)"),  # DT_TEXTREL
        ("dynamic", (30, 4 | 8), "code is changed at load (text relocations)"),  # DT_FLAGS: DF_TEXTREL, DF_BIND_NOW
        ("segments", (1, 7), "memory is both writable and executable"),  # PT_LOAD: read, write and execute
    ],
)
def test_what_linkers_no_longer_make_is_found(tool, field, more, problem):
    core = tool.read_library(Path(_core.__file__).read_bytes())
    marked = core._replace(**{field: [*getattr(core, field), more]})
    assert list(tool.problems(marked)) == [problem]


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(20), b"#!/bin/sh\n"])
def test_what_is_not_a_library_is_an_error(tool, tmp_path, capsys, content):
    path = tmp_path / "odd.so"
    path.write_bytes(content)
    assert tool.main([str(path), str(tmp_path / "absent.so")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [str(path), str(tmp_path / "absent.so")]


def test_a_call_without_libraries_is_an_error(tool, capsys):
    assert tool.main([]) == 1
    assert capsys.readouterr().out == "no library was given\n"
