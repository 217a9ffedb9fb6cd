# SPDX-License-Identifier: Apache-2.0
"""audit.assert_matches and its golden files."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, audit

MESH = {"data": 4}


def table(spec):
    return audit.shardings({"w": (spec, ad.ShapeDtypeStruct((8, 4), np.float32))}, mesh=MESH)


def program(*sizes, line=12):
    gathers = tuple(
        audit.Collective(
            f"all-gather.{i}", "all_gather", ("float32",), ((4,),), size, axes=("data",), file="train.py", line=line
        )
        for i, size in enumerate(sizes)
    )
    return audit.Program("HLO text", "jit_step", 4, "cpu", True, (("data", 4),), gathers)


def test_a_missing_golden_file_names_the_option_that_writes_it(tmp_path):
    with pytest.raises(
        AssertionError, match=r"there is no golden file '.*step.json' .* write it by pytest --update-audit"
    ):
        audit.assert_matches(table(P("data")), tmp_path / "step.json")
    assert not list(tmp_path.iterdir())


def test_an_update_writes_the_file_and_its_folder(tmp_path, monkeypatch):
    path = tmp_path / "golden" / "step.json"
    monkeypatch.setenv("ARTIFEX_UPDATE_AUDIT", "1")
    audit.assert_matches(table(P("data")), path)
    monkeypatch.setenv("ARTIFEX_UPDATE_AUDIT", "0")
    audit.assert_matches(table(P("data")), path)
    with pytest.raises(AssertionError) as caught:
        audit.assert_matches(table(P()), path)
    assert str(caught.value) == (
        f"audit.assert_matches: 1 difference from {str(path)!r}\n"
        "  ~ ['w']: P('data') -> P(), 32 bytes -> 128 bytes on each device\n"
        "if this is right, write the file again by pytest --update-audit"
    )


def test_the_golden_file_of_a_program_has_no_names_of_the_compiler(tmp_path):
    path = tmp_path / "step.json"
    audit.save(program(448, 96, 448), path)
    assert path.read_text() == (
        '{\n"format": "artifex_devices/collectives/1",\n"mesh": {"data": 4},\n"collectives": [\n'
        '{"kind": "all_gather", "axes": ["data"], "dtypes": ["float32"], "bytes": 96, "runs": 1, "count": 1, '
        '"where": ["train.py:12"]},\n'
        '{"kind": "all_gather", "axes": ["data"], "dtypes": ["float32"], "bytes": 448, "runs": 1, "count": 2, '
        '"where": ["train.py:12"]}\n]\n}\n'
    )
    audit.assert_matches(program(448, 448, 96, line=50), path)
    with pytest.raises(AssertionError, match=r"~ all_gather over data: 1 of float32, 96 .* -> .* 97 bytes"):
        audit.assert_matches(program(448, 448, 97), path)
    assert audit.load(path) == audit.ProgramSummary.from_json(path.read_text())
    assert str(audit.load(path)).splitlines()[1] == "    1  all_gather  data  float32  96 bytes   1     train.py:12"


def test_a_program_is_not_compared_with_a_file_of_shardings(tmp_path):
    audit.save(table(P()), tmp_path / "w.json")
    with pytest.raises(TypeError, match="one is shardings, the other a program"):
        audit.assert_matches(program(), tmp_path / "w.json")


@pytest.mark.parametrize(
    "text",
    [
        '{"format": "artifex_devices/collectives/1"}',
        '{"format": "artifex_devices/collectives/1", "mesh": {}, "collectives": [3]}',
        '{"format": "artifex_devices/collectives/1", "mesh": {"x": NaN}, "collectives": []}',
        '{"format": "artifex_devices/collectives/1", "mesh": {}, "collectives": [{"kind": 3}]}',
        '{"format": "artifex_devices/collectives/1", "mesh": [], "collectives": []}',
    ],
)
def test_a_damaged_golden_file_is_refused(tmp_path, text):
    (tmp_path / "w.json").write_text(text)
    with pytest.raises(ValueError, match=r"is not a summary of a program: .*; expected a file that audit\.save"):
        audit.assert_matches(program(), tmp_path / "w.json")
