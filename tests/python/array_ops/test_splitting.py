# SPDX-License-Identifier: Apache-2.0
"""How the work on large blocks is divided between cores: the pieces, and the sizes from which it is."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P
from artifex_devices._array_ops.core import blocks, fused_small
from artifex_devices._array_ops.core import reading as operand_parts
from artifex_devices._array_ops.core.blocks import PIECE_BYTES
from artifex_devices._array_ops.core.operand_sharding import OperandDevices, allowing_uneven
from artifex_devices._array_ops.core.per_block import pieces_along
from artifex_devices._array_ops.core.ufunc_loops import SPREAD_BYTES, spread_from
from artifex_devices._array_ops.elementwise import ufuncs as elementwise
from artifex_devices._array_ops.reduce.partials import Rule, _cut
from artifex_devices.testing import assert_same_bits

F32, F64, C64, I32 = (np.dtype(each) for each in ("f4", "f8", "c8", "i4"))


def block(*shape):
    return np.empty(shape, np.uint8)


def test_a_small_block_and_one_without_a_long_dimension_are_one_piece():
    assert pieces_along(block(PIECE_BYTES), [0]) == [(...,)]
    assert pieces_along(block(1, 3 * PIECE_BYTES), [0]) == [(...,)]
    assert pieces_along(block(1, 3 * PIECE_BYTES), []) == [(...,)]


def test_a_large_block_is_split_along_the_first_dimension_that_is_long_enough():
    found = pieces_along(block(2, 3, PIECE_BYTES), [0, 2])  # 6 pieces; dimension 0 has 2 rows
    step = PIECE_BYTES // 6 + 1
    assert found == [(slice(None), slice(None), slice(i * step, (i + 1) * step), ...) for i in range(6)]
    assert pieces_along(block(8, PIECE_BYTES // 4), [0, 1]) == [(slice(0, 4), ...), (slice(4, 8), ...)]


def test_else_along_the_longest_one():
    assert pieces_along(block(2, 3, PIECE_BYTES), [0, 1]) == [(slice(None), slice(i, i + 1), ...) for i in range(3)]


@pytest.mark.parametrize(
    ("ufunc", "kinds", "spread"),
    [
        (np.add, (F32, F32), 24 << 20),
        (np.add, (F32, float), 24 << 20),
        (np.add, (I32, float), SPREAD_BYTES),  # the integers are converted
        (np.divide, (I32, I32), SPREAD_BYTES),
        (np.add, (F32, F64), SPREAD_BYTES),
        (np.add, (F32, complex), SPREAD_BYTES),
        (np.add, (C64, C64), SPREAD_BYTES),
        (np.exp, (F64,), 8 << 20),
        (np.sin, (F32,), 8 << 20),
        (np.sin, (F64,), SPREAD_BYTES),
        (np.exp, (C64,), SPREAD_BYTES),
        (np.exp, (F32, complex), SPREAD_BYTES),
        (np.gcd, (I32, I32), SPREAD_BYTES),
    ],
)
def test_cheap_loops_use_several_cores_later(ufunc, kinds, spread):
    assert spread_from(ufunc, kinds) == spread


@pytest.mark.parametrize(
    ("shape", "axes", "splits", "expected"),
    [
        ((96,), (0,), True, (None, 0)),  # one piece
        ((10, 40), (1,), True, (0, 2)),  # 5 pieces of the rows, which are kept
        ((10, 40), (0, 1), True, (0, 2)),
        ((2, 200), (1,), True, (1, 40)),  # 5 pieces of what is reduced: 2 partial states for 80 elements are few
        ((2, 200), (1,), False, (0, 1)),  # states of parts of a row cannot be combined
        ((96, 6), (0,), True, (0, 16)),  # 6 states for 96 elements are just few enough
        ((96, 7), (0,), True, (1, 1)),
        ((400,), (0,), False, (None, 0)),
    ],
)
def test_a_reduction_is_split_where_partial_states_are_small(shape, axes, splits, expected):
    rule = Rule(local=None, combine=None, finish=None, splits=splits, piece_bytes=96)
    assert _cut(block(*shape), axes, rule) == expected


def test_placements_share_a_mesh_or_a_device(devices):
    lines = [ad.Mesh(np.array(devices), (name,)) for name in "ab"]
    x, y = (ad.device_put(np.zeros(8), ad.NamedSharding(line, P(name))) for line, name in zip(lines, "ab", strict=True))
    again = ad.device_put(np.zeros(8), ad.NamedSharding(lines[0], P()))
    one, other = (ad.device_put(np.zeros(8), device) for device in devices[:2])
    assert OperandDevices(x.sharding, True).shares_mesh(again)
    assert not OperandDevices(x.sharding, True).shares_mesh(y)
    assert not OperandDevices(x.sharding, True).shares_mesh(one)
    assert not OperandDevices(one.sharding, True).shares_mesh(x)
    assert OperandDevices(one.sharding, True).shares_mesh(ad.device_put(np.ones(3), devices[0]))
    assert not OperandDevices(one.sharding, True).shares_mesh(other)


def test_uneven_shards_are_allowed_by_another_operand_of_the_mesh(devices):
    line, other = (ad.Mesh(np.array(devices), (name,)) for name in "ab")
    plain, uneven = ad.NamedSharding(line, P("a")), ad.NamedSharding(line, P(), uneven="last-short")
    single = ad.SingleDeviceSharding(devices[0])
    assert allowing_uneven(plain, uneven) == ad.NamedSharding(line, P("a"), uneven="last-short")
    assert allowing_uneven(plain, plain) is plain
    assert allowing_uneven(uneven, plain) is uneven
    assert allowing_uneven(single, uneven) is single
    assert allowing_uneven(plain, single) is plain
    elsewhere = ad.NamedSharding(other, P("b"))
    assert allowing_uneven(elsewhere, uneven) is elsewhere


@pytest.mark.parametrize("spec", [(), ("x",), (None, "y"), ("x", "y")], ids=str)
def test_big_buffers_are_computed_in_pieces(monkeypatch, named, spec):
    monkeypatch.setattr(blocks, "PIECE_BYTES", 64)  # a buffer of 4 KiB: many pieces, the last one shorter
    value = np.arange(16 * 33, dtype=np.int64).reshape(16, 33)[:, :32] - 200
    pieces = []
    pieces_of = operand_parts.pieces_of
    monkeypatch.setattr(elementwise, "pieces_of", lambda *args: pieces.append(pieces_of(*args)) or pieces[-1])
    monkeypatch.setattr(fused_small, "PARALLEL_BYTES", 0)
    x = ad.device_put(value, named(*spec))
    row, column, scalar = np.arange(1, 33), np.arange(1, 17)[:, None], np.array(7)
    for other in (row, column, scalar, 7, value + 1000, ad.device_put(column, named(*spec[:1]))):
        quotient, rest = divmod(x, other)
        expected = divmod(value, np.asarray(other))
        assert_same_bits(quotient, expected[0])
        assert_same_bits(rest, expected[1])
    assert all(len(each) > 1 for each in pieces)
    single = ad.device_put(np.arange(64.0), named())
    assert_same_bits(np.hypot(single, 3.0), np.hypot(np.arange(64.0), 3.0))
