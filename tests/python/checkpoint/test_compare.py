# SPDX-License-Identifier: Apache-2.0
"""checkpoint.compare: what differs between two checkpoints of any formats."""

import json

import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import ArrayDifference, pieces, rules


def saved(path, **arrays):
    """Returns the path of a new .npz file."""
    np.savez(f"{path}.npz", **arrays)
    return f"{path}.npz"


def compared(tmp_path, a, b, **options):
    """Returns the comparison of two .npz files of one array, w."""
    return checkpoint.compare(saved(tmp_path / "a", w=np.asarray(a)), saved(tmp_path / "b", w=np.asarray(b)), **options)


def the_difference(tmp_path, a, b, **options):
    """Returns the one difference of two .npz files of one array, w."""
    found = compared(tmp_path, a, b, **options)
    assert not found
    (difference,) = found.differences
    return difference


ARRAYS = {
    "w": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "b": np.array(3, np.int64),
    "none": np.zeros((0, 3), np.float16),
    "flags": np.array([True, False, True]),
}


def test_equal_arrays_of_two_formats(tmp_path):
    checkpoint.save(tmp_path / "a", ARRAYS)
    seen = []
    found = checkpoint.compare(tmp_path / "a", saved(tmp_path / "b", **ARRAYS), progress=seen.append)
    assert found
    assert (found.arrays, found.nbytes, found.differences) == (4, 107, ())
    assert seen[-1] == 107
    assert str(found).splitlines()[-1] == "4 arrays compared, 107 bytes: equal"


def test_every_kind_of_difference_is_listed(tmp_path):
    a = saved(
        tmp_path / "a", w=np.zeros((2, 3)), only=np.ones(2), shape=np.ones(2), type=np.float32([1, 2]), same=np.ones(1)
    )
    b = saved(
        tmp_path / "b",
        w=np.full((2, 3), [0, 0.25, 0]),
        other=np.ones(2),
        shape=np.ones(3),
        type=np.float64([1, 2.5]),
        same=np.ones(1),
    )
    found = checkpoint.compare(a, b)
    assert not found
    assert str(found).splitlines()[2:] == [
        "name   difference",
        "only   only in a: float64 (2,)",
        "other  only in b: float64 (2,)",
        "shape  float64 (2,) and float64 (3,)",
        "type   float32 (2,) and float64 (2,), 1 element differs by up to 0.5",
        "w      float64 (2, 3), 2 elements differ by up to 0.25",
        "3 arrays compared, 72 bytes: 5 differences",
    ]
    document = json.loads(found.to_json())
    assert not document["is_equal"]
    assert document["differences"][-1] == {
        "name": "w", "a": "float64 (2, 3)", "b": "float64 (2, 3)", "elements": 2, "largest": 0.25,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b", "elements", "largest"),
    [
        ([0.0, 1], [-0.0, 1], 1, 0),
        (np.uint32([0x7FC00001, 0]).view(np.float32), np.uint32([0x7FC00002, 0]).view(np.float32), 1, 0),
        ([1.0, np.nan], [np.nan, np.nan], 1, np.inf),
        ([np.inf, 1], [-np.inf, 1.5], 2, np.inf),
        (np.int64([2**62, -(2**63)]), np.int64([2**62 + 1, -(2**63)]), 1, 1),
        (np.int64([-(2**63)]), np.int64([2**63 - 1]), 1, float(2**64 - 1)),
        ([True, False], [True, True], 1, 1),
        ([1 + 1j, 0], [1 + 1j, 3 + 4j], 1, 5),
        (np.float32([0.1]), np.float64([0.1]), 1, float(np.float32(0.1)) - 0.1),
        (np.float32([0.5, np.nan]), np.float64([0.5, np.nan]), 0, 0),
    ],
)
def test_elements_are_compared_by_their_bits(tmp_path, a, b, elements, largest):
    found = the_difference(tmp_path, a, b)
    assert (found.elements, found.largest) == (elements, largest)


def test_numbers_of_ml_dtypes(tmp_path):
    values = np.array([1, 2, 4], ml_dtypes.float8_e4m3fn)
    checkpoint.save(tmp_path / "a", {"f": values, "i": np.array([1, -2], ml_dtypes.int4)})
    checkpoint.save(tmp_path / "b", {"f": values[[0, 1, 1]], "i": np.array([1, -8], ml_dtypes.int4)})
    found = checkpoint.compare(tmp_path / "a", tmp_path / "b").differences
    assert [(each.name, each.elements, each.largest) for each in found] == [("f", 1, 2), ("i", 1, 6)]


def test_both_sides_are_cast(tmp_path):
    exact = np.array([1.0, 1.001, 2.0], np.float32)
    a = saved(tmp_path / "a", w=exact, n=np.arange(3))
    checkpoint.save(tmp_path / "b", {"w": exact.astype(ml_dtypes.bfloat16), "n": np.arange(3)})
    assert checkpoint.compare(a, tmp_path / "b", dtype="bfloat16")
    (found,) = checkpoint.compare(a, tmp_path / "b").differences
    assert str(found) == "float32 (3,) and bfloat16 (3,), 1 element differs by up to 0.00100005"


def test_rules_are_applied_to_the_first_side(tmp_path):
    w = np.arange(24.0).reshape(2, 3, 4)
    a = saved(tmp_path / "a", l_0=w[0], l_1=w[1], x=np.float32([1, 2]))
    b = saved(tmp_path / "b", w=w.transpose(0, 2, 1), x=np.float64([1, 2]), c=np.full((2, 2), 7, np.int32))
    change = [
        rules.transpose("l_{n}", (1, 0)),
        rules.stack("l_{n}", "w", "n"),
        rules.cast("x", "float64"),
        rules.constant("c", (2, 2), "int32", 7),
    ]
    assert checkpoint.compare(a, b, rules=change)
    wrong = checkpoint.compare(a, b, rules=[rules.stack("l_{n}", "w", "n"), *change[2:]])
    assert wrong.differences == (ArrayDifference("w", "float64 (2, 3, 4)", "float64 (2, 4, 3)"),)


def test_arrays_of_several_boxes(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 16)
    a = np.arange(60.0).reshape(3, 4, 5)
    b = a.copy()
    b[1, 2, 3] += 2
    b[2, 0, 0] -= 4
    found = the_difference(tmp_path, a, b)
    assert (found.elements, found.largest) == (2, 4)


def test_python_values_are_compared_where_both_formats_have_them(tmp_path):
    checkpoint.save(tmp_path / "a", {"w": np.ones(2), "step": 10, "rate": 0.0})
    checkpoint.save(tmp_path / "b", {"w": np.ones(2), "step": 11, "rate": -0.0})
    found = checkpoint.compare(tmp_path / "a", tmp_path / "b")
    assert not found
    assert found.values == ("rate", "step")
    assert "Python values differ: 'rate', 'step'" in str(found)
    found = checkpoint.compare(tmp_path / "a", saved(tmp_path / "c", w=np.ones(2)))
    assert found
    assert found.notes == ("Not compared, because only one side has Python values: 'rate', 'step'.",)
    found = checkpoint.compare(tmp_path / "a", saved(tmp_path / "d", w=np.ones(2), step=10, rate=0.5))
    assert (found.values, found.differences) == (("rate",), ())


def test_readers_stay_open(tmp_path):
    with checkpoint.open(saved(tmp_path / "a", w=np.ones(3))) as reader:
        assert checkpoint.compare(reader, reader)
        assert reader.read("w").tolist() == [1, 1, 1]
