# SPDX-License-Identifier: Apache-2.0
"""lax collectives against NumPy, on both executors; data movement is exact."""

import gc
import math

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import lax
from artifex_devices.testing import assert_same_bits
from artifex_devices.testing.array_strategies import random_bits
from collective_table import TABLE, blocks_for, expected, size_of
from hypothesis import given
from hypothesis import strategies as st
from many_threads import collect_of_other_threads
from spmd_programs import EXECUTORS, launch, name_of

GRID = {"x": 2, "y": 4}
DTYPES = ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


@pytest.fixture(params=EXECUTORS)
def executor(request):
    return request.param


def blocks_of(dtype, shape, seed=0, count=8):
    """One block a participant, of small whole numbers, so that sums are exact in every dtype."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 5, shape).astype(getattr(ml_dtypes, dtype, dtype)) for _ in range(count)]


@pytest.mark.parametrize("axes", [("y",), ("x", "y")], ids=str)
@pytest.mark.parametrize("name", TABLE)
def test_each_row_of_the_table_is_numpys(name, axes, executor):
    n = size_of(GRID, axes)
    for dtype in TABLE[name].dtypes:
        blocks = blocks_for(dtype, 8, n)
        results = launch(lambda i, blocks=blocks: TABLE[name].call(lax, blocks[i], axes, n), executor, GRID)
        for found, wanted in zip(results, expected(name, blocks, GRID, axes), strict=True):
            assert_same_bits(found, wanted)


def test_members_share_one_result_that_nobody_can_write(executor):
    for call in (lambda x: lax.psum(x, ("x", "y")), lambda x: lax.all_gather(x, ("x", "y"))):
        found = launch(lambda i, call=call: call(np.full(3, i)), executor, GRID)
        assert found[0] is found[7]
        assert not found[0].flags.writeable


def test_an_axis_is_not_several_axes_of_one_letter(executor):
    def body(i):
        x = np.array([i])
        return [int(lax.psum(x, axes)[0]) for axes in (("x", "y"), "xy", ["x", "y"], ["xy"], ("y", "x"), "xy")]

    found = launch(body, executor, {"x": 2, "xy": 2, "y": 2})  # i = 4 x + 2 xy + y
    for i in range(8):
        over_both = sum(j for j in range(8) if j & 2 == i & 2)
        over_one = i + (i ^ 2)
        assert found[i] == [over_both, over_one, over_both, over_one, over_both, over_one]


def test_psum_of_floats_has_the_order_of_the_members(executor):
    blocks = [np.array([value], np.float32) for value in (1e8, 1, -1e8, 1, 0, 0, 0, 0)]
    assert launch(lambda i: lax.psum(blocks[i], "i"), executor)[3].tolist() == [1.0]
    back = {7 - i: block for i, block in enumerate(blocks)}
    assert launch(lambda i: lax.psum(back[i], "i"), executor)[3].tolist() == [0.0]


def test_halves_are_added_in_float32(executor):
    blocks = [np.array([2048 if i == 0 else 1], np.float16) for i in range(8)]
    # 2048 + 7 = 2055, which rounds to 2056; added in float16 each 1 would be lost.
    assert launch(lambda i: lax.psum(blocks[i], "i"), executor)[0].tolist() == [2056.0]


def test_psum_of_numbers_and_trees(executor):
    def body(i):
        return lax.psum({"a": np.full(2, i), "b": [1, np.float32(0.5), None]}, "i"), lax.psum(1, ("i",))

    tree, size = launch(body, executor)[2]
    assert tree["a"].tolist() == [28, 28]
    assert [tree["b"][0], tree["b"][1], tree["b"][2]] == [8, 4.0, None]
    assert size == 8
    assert type(size) is int


@pytest.mark.parametrize(
    ("dtype", "expected"), [("bool", "float32"), ("int8", "float32"), ("int32", "float32"), ("int64", "float64")]
)
def test_pmean_of_integers(dtype, expected, executor):
    means = launch(lambda i: lax.pmean(np.array([i % 2], dtype), "i"), executor)
    assert means[0].dtype == expected
    assert means[7].tolist() == [0.5]


def test_pmax_and_pmin_keep_nan(executor):
    for operation in (lax.pmax, lax.pmin):
        for place in range(8):
            blocks = [np.array([np.nan if i == place else i, i], np.float32) for i in range(8)]
            got = launch(lambda i, op=operation, b=blocks: op(b[i], "i"), executor)[0]
            assert np.isnan(got[0])
            assert got[1] == (7 if operation is lax.pmax else 0)
    flags = launch(lambda i: lax.pmax(np.array([i == 3, False]), "i"), executor)[0]
    assert flags.dtype == bool
    assert flags.tolist() == [True, False]
    with pytest.raises(TypeError, match="complex numbers have no order"):
        launch(lambda i: lax.pmax(np.array([1j]), "i"), executor)


def test_over_no_axis_everybody_is_alone(executor):
    got = launch(lambda i: (lax.psum(np.array([i]), ()), lax.all_gather(np.array([i]), ())), executor)
    assert [[int(value[0]) for value in pair] for pair in got] == [[i, i] for i in range(8)]
    assert got[3][1].shape == (1,)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_all_gather_tiled(axis, executor):
    blocks = [random_bits((2, 3), np.dtype(np.float32), i) for i in range(8)]
    got = launch(lambda i: lax.all_gather(blocks[i], ("y", "x"), axis=axis, tiled=True), executor, GRID)
    # Numbered row-major in the order of the names: y is the major one.
    order = [x * 4 + y for y in range(4) for x in range(2)]
    assert_same_bits(got[0], np.concatenate([blocks[i] for i in order], axis))


@given(st.data())
def test_all_to_all_is_numpys_split_and_join(data):
    count = data.draw(st.sampled_from([1, 2, 4]), label="members")
    tiled = data.draw(st.booleans(), label="tiled")
    shape = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3), label="block")
    split = data.draw(st.integers(0, len(shape) - 1), label="split")
    concat = data.draw(st.integers(0, len(shape) - 1), label="concat")
    shape[split] = count * data.draw(st.integers(0, 3), label="times") if tiled else count
    wide = data.draw(st.sampled_from([1, 500]), label="more")  # below and above what the core copies
    blocks = [np.random.default_rng(i).random((*shape, 2 * wide))[..., ::2] for i in range(count)]
    got = launch(lambda i: lax.all_to_all(blocks[i], "i", split, concat, tiled=tiled), "cooperative", {"i": count})
    for i, mine in enumerate(got):
        if tiled:
            expected = np.concatenate([np.split(block, count, split)[i] for block in blocks], concat)
        else:
            expected = np.stack([block.take(i, split) for block in blocks], concat)
        assert_same_bits(mine, np.ascontiguousarray(expected))
        assert not mine.flags.writeable


def test_ppermute_hands_on_blocks_that_nobody_can_write(executor):
    mesh = ad.Mesh(np.array(ad.devices()[:8]), ("i",))
    x = ad.device_put(np.arange(16.0), ad.NamedSharding(mesh, ad.P("i")))
    ring = [(i, (i + 1) % 8) for i in range(8)]
    shared = []

    def body(block):
        once = lax.ppermute(block, "i", ring)
        twice = lax.ppermute(once, "i", ring)
        own = block + 0
        seen = own.view()
        seen.flags.writeable = False
        copied = lax.ppermute(seen, "i", ring)
        own[:] = -1
        lax.psum(own, "i")  # everybody has written by now
        shared.append(once.ctypes.data)
        return once, twice, copied

    mapped = ad.shard_map(body, mesh=mesh, in_specs=ad.P("i"), out_specs=ad.P("i"), executor=name_of(executor))
    once, twice, copied = mapped(x)
    assert sorted(shared) == sorted(np.asarray(shard.data).ctypes.data for shard in x.addressable_shards)
    assert np.asarray(once).tolist() == np.roll(np.arange(16.0), 2).tolist()
    assert np.asarray(twice).tolist() == np.roll(np.arange(16.0), 4).tolist()
    assert np.asarray(copied).tolist() == np.roll(np.arange(16.0), 2).tolist()


def test_ppermute_over_some_axes_takes_their_order_in_the_mesh(executor):
    axes = {"x": 2, "y": 2, "z": 2}
    ring = [(i, (i + 1) % 4) for i in range(4)]
    got = launch(lambda i: lax.ppermute(np.array([i]), ("x", "z"), ring), executor, axes)
    assert [int(block[0]) for block in got] == [5, 0, 7, 2, 1, 4, 3, 6]  # members x, z of each y: 0 1 4 5 and 2 3 6 7
    error = r"ppermute: the axis names are in another order than the mesh's; expected \('x', 'z'\), got \('z', 'x'\)"
    with pytest.raises(ValueError, match=error):
        launch(lambda i: lax.ppermute(np.array([i]), ("z", "x"), ring), executor, axes)


def test_results_are_not_the_members_memory(executor):
    def body(i):
        mine = np.full(4, float(i))
        moved = lax.ppermute(mine, "i", [(j, (j + 1) % 8) for j in range(8)])
        gathered = lax.all_gather(mine, "i")
        mine[:] = -1
        lax.psum(1.0 * mine, "i")  # everybody has written by now
        return moved, gathered

    moved, gathered = launch(body, executor)[3]
    assert moved.tolist() == [2.0] * 4
    assert gathered[:, 0].tolist() == list(range(8))


def test_a_collective_over_no_axes_needs_a_body_too():
    with pytest.raises(NameError, match=r"all_gather: unbound axis name \(\); expected a call inside the body"):
        lax.all_gather(1, ())


def test_axis_index_and_size(executor):
    got = launch(lambda i: (lax.axis_index("y"), lax.axis_index(("y", "x")), lax.axis_size(("x", "y"))), executor, GRID)
    assert [int(index) for index, _, _ in got] == [0, 1, 2, 3] * 2
    assert [int(index) for _, index, _ in got] == [0, 2, 4, 6, 1, 3, 5, 7]
    assert got[0][0].dtype == np.int32
    assert got[0][2] == 8


def test_index_groups(executor):
    groups = [[0, 2, 4, 6], [7, 5, 3, 1]]
    blocks = [np.array([i]) for i in range(8)]
    got = launch(lambda i: lax.psum(blocks[i], "i", axis_index_groups=groups), executor)
    assert [int(value[0]) for value in got] == [12, 16] * 4
    got = launch(lambda i: lax.all_gather(blocks[i], "i", axis_index_groups=groups, tiled=True), executor)
    assert got[3].tolist() == [7, 5, 3, 1]
    with pytest.raises(ValueError, match="axis_index_groups do not cover the axis"):
        launch(lambda i: lax.psum(blocks[i], "i", axis_index_groups=[[0, 1]]), executor)
    with pytest.raises(ValueError, match="axis_index_groups differ in size"):
        launch(lambda i: lax.psum(blocks[i], "i", axis_index_groups=[[0], [1, 2, 3, 4, 5, 6, 7]]), executor)


class TestBadInput:
    def test_unbound_names(self, executor):
        with pytest.raises(NameError, match=r"psum: unbound axis name 'z'; expected one of .*'i'"):
            launch(lambda i: lax.psum(i, "z"), executor)
        with pytest.raises(NameError, match=r"unbound axis name 'i'; expected a call inside the body"):
            lax.psum(1, "i")
        with pytest.raises(NameError):
            lax.axis_index("i")

    def test_dimensions_that_do_not_split(self, executor):
        with pytest.raises(ValueError, match=r"all_to_all: dimension 0 .*exactly 8 .*got 3"):
            launch(lambda i: lax.all_to_all(np.ones(3), "i", 0, 0), executor)
        with pytest.raises(ValueError, match=r"psum_scatter: .*a multiple of 8 .*got 3"):
            launch(lambda i: lax.psum_scatter(np.ones(3), "i", tiled=True), executor)
        for kind in (ValueError, IndexError):
            with pytest.raises(kind, match="all_gather: axis 2 is out of range"):
                launch(lambda i: lax.all_gather(np.ones(3), "i", axis=2), executor)

    def test_invalid_permutations(self, executor):
        with pytest.raises(IndexError, match=r"ppermute: perm names members .* 0 to 7, got \[\(0, 8\)\]"):
            launch(lambda i: lax.ppermute(np.ones(1), "i", [(0, 8)]), executor)
        for perm in ([(0, 1), (2, 1)], [(0, 1), (0, 2)]):
            with pytest.raises(ValueError, match="perm is not a permutation"):
                launch(lambda i, perm=perm: lax.ppermute(np.ones(1), "i", perm), executor)
        with pytest.raises(ValueError, match="another order than the mesh's"):
            launch(lambda i: lax.ppermute(np.ones(1), ("y", "x"), [(0, 1)]), executor, GRID)

    def test_leaves_that_are_not_numeric(self, executor):
        with pytest.raises(TypeError, match="not an array of numbers"):
            launch(lambda i: lax.psum(["text"], "i"), executor)
        for block in (np.array([None]), np.zeros(2, "f4,i4"), np.zeros(2, ">f4"), np.zeros(2, "M8[s]")):
            with pytest.raises(TypeError, match=r"^psum: dtype"):
                launch(lambda i, block=block: lax.psum(block, "i"), executor)
            with pytest.raises(TypeError, match=r"^all_gather: dtype"):
                launch(lambda i, block=block: lax.all_gather(block, "i"), executor)
        with pytest.raises(TypeError, match=r"^psum_scatter: bools have no sum"):
            launch(lambda i: lax.psum_scatter(np.ones(8, bool), "i"), executor)
        with pytest.raises(TypeError, match=r"^pmin: complex numbers have no order"):
            launch(lambda i: lax.pmin(np.ones(8, complex), "i"), executor)


@given(st.data())
def test_any_group_of_axes_is_numpys_reduction(data):
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3), label="axis sizes")
    names = [f"a{d}" for d in range(len(sizes))]
    axes = tuple(data.draw(st.permutations(names), label="order")[: data.draw(st.integers(1, len(names)))])
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=2), label="block"))
    cube = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-50, 50, (*sizes, *shape))
    flat = cube.reshape(math.prod(sizes), *shape)
    where = tuple(names.index(name) for name in axes)
    got = launch(lambda i: lax.psum(flat[i], axes), "cooperative", dict(zip(names, sizes, strict=True)))
    expected = np.broadcast_to(cube.sum(where, keepdims=True), cube.shape).reshape(flat.shape)
    for block, wanted in zip(got, expected, strict=True):
        assert_same_bits(block, wanted.copy())


def test_big_blocks_are_reduced_over_cores(executor):
    blocks = [np.random.default_rng(i).standard_normal(1 << 18).astype(np.float32) for i in range(8)]
    expected = blocks[0].copy()
    for block in blocks[1:]:
        expected += block
    assert_same_bits(launch(lambda i: lax.psum(blocks[i], "i"), executor)[0], expected)
    gathered = launch(lambda i: lax.all_gather(blocks[i], "i", tiled=True), executor)[0]
    assert_same_bits(gathered, np.concatenate(blocks))


def test_memory_of_results_goes_back(executor):
    def in_use():
        gc.collect()
        collect_of_other_threads()
        return ad.devices()[0].memory_stats()["pool_bytes_in_use"]

    before = in_use()
    kept = launch(lambda i: lax.psum(np.ones(1 << 16), "i"), executor)[0]
    assert in_use() >= before + kept.nbytes
    del kept
    for _ in range(20):
        launch(lambda i: lax.psum(np.ones(1 << 16), "i"), executor)
    assert in_use() == before
