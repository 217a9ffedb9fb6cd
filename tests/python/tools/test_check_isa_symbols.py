# SPDX-License-Identifier: Apache-2.0
"""tools/check_isa_symbols.py: code that could reach a processor that does not run it is found."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "check_isa_symbols.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("check_isa_symbols", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LISTING = """
0000000000000000 V DW.ref.__gxx_personality_v0
0000000000000000 W void artifex_eigen_avx2::internal::gebp<float>(float*)
0000000000000000 T artifex_devices::gemm_avx2(float const*, float const*, float*, long, long, long)
"""


def test_what_carries_the_sets_name_is_its_own(tool):
    assert list(tool.foreign_symbols(LISTING, "avx2")) == []


def test_a_table_of_loops_is_its_sets_own(tool):
    listing = "0000000000000000 D artifex_devices::copy_kernels_avx2\n"
    assert list(tool.foreign_symbols(listing, "avx2")) == []
    assert list(tool.foreign_symbols(listing, "avx512")) == ["artifex_devices::copy_kernels_avx2"]


def test_an_inline_function_of_everybodys_is_found(tool):
    listing = LISTING + "0000000000000000 W int const& std::max<int>(int const&, int const&)\n"
    assert list(tool.foreign_symbols(listing, "avx2")) == ["int const& std::max<int>(int const&, int const&)"]
    assert len(list(tool.foreign_symbols(LISTING, "avx512"))) == 2


def test_a_call_without_objects_is_an_error(tool, capsys):
    assert tool.main(["gemm.cpp.o"]) == 1
    assert "no object" in capsys.readouterr().out
