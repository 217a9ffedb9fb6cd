# SPDX-License-Identifier: Apache-2.0
"""Arrays that are stored in another order of dimensions: the values of everything are those of row-major ones."""

import copy
import io
import pickle

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.layout import Format, Layout
from artifex_devices.testing import dtypes
from artifex_devices.testing.array_strategies import random_bits
from artifex_devices.xla_client import PjRtLayout
from hypothesis import given, settings
from hypothesis import strategies as st

P = ad.P


@pytest.fixture
def mesh():
    with ad.simulate(8):
        yield ad.make_mesh((4, 2), ("x", "y"))


def turned(sharding, order=(1, 0)):
    return Format(Layout(order), sharding)


def order_of(x):
    return x.format.layout.major_to_minor


def strides_in(order, shape, itemsize):
    strides, step = [0] * len(shape), itemsize
    for d in reversed(order):
        strides[d] = step
        step *= shape[d]
    return tuple(strides)


def test_shards_are_stored_column_major_and_shown_without_a_copy(mesh):
    value = np.arange(48, dtype=np.float32).reshape(8, 6)
    x = ad.device_put(value, turned(ad.NamedSharding(mesh, P("x", "y"))))
    assert order_of(x) == (1, 0)
    assert x.format == Format(Layout((1, 0)), x.sharding)
    assert str(x._pjrt_layout) == "{0,1}"
    assert x._pjrt_layout == PjRtLayout(x._pjrt_layout._xla_layout())
    for shard in x.addressable_shards:
        block = np.asarray(shard.data)
        assert block.strides == (4, 8)
        assert block.ctypes.data == shard.data.unsafe_buffer_pointer()
        assert np.array_equal(block, value[shard.index])
        assert order_of(shard.data) == (1, 0)
    assert np.array_equal(np.asarray(x), value)
    assert np.asarray(x).flags.c_contiguous
    assert ad.device_get(x).tobytes() == value.tobytes()


def test_one_device_gives_strides_to_every_protocol():
    value = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    x = ad.device_put(value, turned(ad.devices()[0], (1, 2, 0)))
    expected = strides_in((1, 2, 0), (2, 3, 4), 4)
    for view in (np.asarray(x), np.from_dlpack(x), np.asarray(memoryview(x)), ad.device_get(x)):
        assert view.strides == expected
        assert view.ctypes.data == x.unsafe_buffer_pointer()
        assert np.array_equal(view, value)
    assert np.from_dlpack(x, copy=True).strides == expected
    assert x.on_device_size_in_bytes() == value.nbytes
    memory = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int32 * 24).from_address(x.unsafe_buffer_pointer()))
    assert memory.tobytes() == value.transpose(1, 2, 0).tobytes()


def test_a_reader_of_row_major_bytes_is_refused():
    x = ad.device_put(np.arange(6.0).reshape(2, 3), turned(ad.devices()[0]))
    with pytest.raises(BufferError, match=r"stored as \{0,1\}; expected a request for strides"):
        io.BytesIO().write(x)
    column = memoryview(x)
    assert column.f_contiguous
    assert not column.c_contiguous
    assert bytes(column) == np.asarray(x).tobytes()  # memoryview copies by strides


def test_a_layout_is_in_the_repr_unless_it_is_row_major(mesh):
    x = ad.device_put(np.ones((4, 6)), turned(ad.NamedSharding(mesh, P("x"))))
    assert "layout    {0,1}" in x.describe()
    y = ad.device_put(np.ones((4, 6)))
    assert order_of(y) == (0, 1)
    assert "layout" not in y.describe()
    assert str(ad.device_put(np.float32(3))._pjrt_layout) == "{}"
    x.delete()
    assert order_of(x) == (1, 0)
    assert x.is_deleted()


def test_moving_keeps_the_layout_and_a_format_changes_it(mesh):
    value = np.arange(48, dtype=np.int16).reshape(8, 6)
    rows, both = ad.NamedSharding(mesh, P("x")), ad.NamedSharding(mesh, P("x", "y"))
    x = ad.device_put(value, turned(rows))
    for target in (None, rows, both, ad.devices()[3], Format(None, both)):
        moved = ad.device_put(x, target)
        assert order_of(moved) == (1, 0)
        assert np.array_equal(moved, value)
    plain = ad.device_put(x, Format(Layout((0, 1)), rows))
    assert order_of(plain) == (0, 1)
    assert np.array_equal(plain, value)
    assert np.asarray(plain.addressable_data(1)).flags.c_contiguous
    back = ad.device_put(plain, turned(both))
    assert order_of(back) == (1, 0)
    assert np.array_equal(back, value)
    assert ad.device_put(x, turned(rows)) is x
    assert ad.device_put(plain, rows) is plain


@pytest.mark.parametrize("reshape", [np.reshape, ad.array_api.reshape])
def test_reshape_without_a_copy_is_refused_where_one_is_needed(reshape):
    value = np.arange(48.0).reshape(8, 6)
    x = ad.device_put(value, turned(ad.devices()[0]))
    with pytest.raises(ValueError, match=r"copy=False, but an Array of shape \(8, 6\) stored as \{0,1\} is copied"):
        reshape(x, (6, 8), copy=False)
    assert np.array_equal(reshape(x, (6, 8)), value.reshape(6, 8))
    assert reshape(x, (8, 6), copy=False) is x
    plain = ad.device_put(x, turned(x.sharding, (0, 1)))
    assert reshape(plain, (6, 8), copy=False).unsafe_buffer_pointer() == plain.unsafe_buffer_pointer()


def test_sharing_and_donation(mesh):
    value = np.arange(48, dtype=np.int16).reshape(8, 6)
    device = ad.devices()[0]
    x = ad.device_put(value, turned(device))
    shared = ad.device_put(x, turned(ad.NamedSharding(ad.make_mesh((1,), ("x",), devices=[device]), P())))
    assert shared.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    other = ad.device_put(x, Format(Layout((0, 1)), device))
    assert other.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    apart = ad.device_put(x, turned(device), may_alias=False)
    assert apart.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert order_of(apart) == (1, 0)
    moved = ad.device_put(x, Format(Layout((0, 1)), device), donate=True)
    assert x.is_deleted()
    assert np.array_equal(moved, value)
    source = value.copy()
    aliased = ad.device_put(source, turned(device), may_alias=True)
    source[0, 0] = 99  # may_alias allows sharing; row-major memory cannot be column-major
    assert aliased[0, 0] == 0


def test_copies_and_pickles_keep_it(mesh):
    value = np.arange(48.0).reshape(8, 6)
    x = ad.device_put(value, turned(ad.NamedSharding(mesh, P("y"))))
    for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert order_of(again) == (1, 0)
        assert np.array_equal(again, value)
        assert again.sharding == x.sharding
    assert order_of(x.copy()) == (0, 1)
    assert np.array_equal(x.copy(), value)


def test_worlds_apart():
    value = np.arange(6.0).reshape(2, 3)
    with ad.simulate(2):
        x = ad.device_put(value, turned(ad.devices()[1]))
        with ad.simulate(3):
            y = ad.device_put(x, ad.devices()[2])
            assert order_of(y) == (1, 0)
            assert np.array_equal(y, value)


@pytest.mark.parametrize(
    ("layout", "wrong"),
    [
        (Layout((0, 0)), "major_to_minor is (0, 0); expected each of 0 to 1 once"),
        (Layout((1, 2)), "major_to_minor is (1, 2); expected each of 0 to 1 once"),
        (Layout((-1, 0)), "major_to_minor is (-1, 0); expected each of 0 to 1 once"),
        (Layout((0,)), "the Layout orders 1 dimensions and the value of shape (2, 3) has 2"),
        (Layout.AUTO, "layout is AUTO; expected None or a Layout"),
    ],
)
def test_what_is_not_stored_is_refused(layout, wrong):
    for x in (np.ones((2, 3)), ad.device_put(np.ones((2, 3)))):
        with pytest.raises(ValueError, match=r"^device_put: ") as caught:
            ad.device_put(x, Format(layout, ad.devices()[0]))
        assert wrong in str(caught.value)


def test_other_makers_take_row_major_only(mesh):
    sharding = ad.NamedSharding(mesh, P("x"))
    with pytest.raises(ValueError, match="place the result by device_put"):
        ad.make_array_from_callback((4, 2), turned(sharding), lambda index: np.ones((4, 2))[index])
    with pytest.raises(ValueError, match="place the result by device_put"):
        ad.ShapeDtypeStruct((4, 2), np.float32, sharding=turned(sharding))


def test_arrays_of_parts_keep_a_common_layout(mesh):
    value = np.arange(48.0).reshape(8, 6)
    sharding = ad.NamedSharding(mesh, P("x", "y"))
    x = ad.device_put(value, turned(sharding))
    parts = [shard.data for shard in x.addressable_shards]
    whole = ad.make_array_from_single_device_arrays((8, 6), sharding, parts)
    assert order_of(whole) == (1, 0)
    assert np.array_equal(whole, value)
    parts[2] = ad.device_put(parts[2], Format(Layout((0, 1)), parts[2].device))
    mixed = ad.make_array_from_single_device_arrays((8, 6), sharding, parts)
    assert order_of(mixed) == (0, 1)
    assert np.array_equal(mixed, value)
    stacked = ad.device_put_sharded([ad.device_put(value, turned(d)) for d in ad.devices()], ad.devices())
    assert np.array_equal(stacked, np.stack([value] * 8))


def test_programs_see_the_values(mesh):
    value = np.arange(48.0).reshape(8, 6)
    sharding = ad.NamedSharding(mesh, P("x", "y"))
    x = ad.device_put(value, turned(sharding))
    same = ad.shard_map(lambda block: block, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)
    assert np.array_equal(same, value)
    summed = ad.shard_map(lambda block: ad.lax.psum(block, ("x", "y")), mesh=mesh, in_specs=P("x", "y"), out_specs=P())(
        x
    )
    assert np.array_equal(summed, sum(value[s.index] for s in x.addressable_shards))
    gathered = ad.shard_map(
        lambda block: ad.lax.all_gather(block, "x", axis=0, tiled=True), mesh=mesh, in_specs=P("x", "y"),
        out_specs=P(None, "y"), check_vma=False,
    )(x)  # fmt: skip
    assert np.array_equal(gathered, value)
    assert np.array_equal(ad.jit(lambda a: a * 2 + 1)(x), value * 2 + 1)


def test_big_arrays_move_in_the_background_and_come_back(mesh):
    value = np.arange(3000 * 2000, dtype=np.float32).reshape(3000, 2000)
    x = ad.device_put(value, turned(ad.NamedSharding(mesh, P("x", "y"))))
    y = ad.device_put(x, turned(ad.NamedSharding(mesh, P("y", "x")), (0, 1)))
    z = ad.device_put(y, turned(ad.NamedSharding(mesh, P(None, "x"))))
    assert [order_of(a) for a in (x, y, z)] == [(1, 0), (0, 1), (1, 0)]
    for a in (x, y, z):
        assert np.array_equal(a, value)
        assert np.array_equal(ad.copy_to_host_async(a).result(), value)


def test_uneven_tiles(mesh):
    value = np.arange(35, dtype=np.int64).reshape(7, 5)
    sharding = ad.NamedSharding(mesh, P("x", "y"), uneven="last-short")
    x = ad.device_put(value, turned(sharding))
    assert np.array_equal(x, value)
    assert [np.asarray(s.data).flags.f_contiguous for s in x.addressable_shards] == [True] * 8
    assert np.array_equal(ad.device_put(x, ad.devices()[1]), value)
    assert np.array_equal(ad.device_put(x, turned(sharding, (0, 1))), value)


SPECS = [P(), P("x"), P(None, "x"), P("x", "y"), P(("x", "y")), P(None, "y", "x"), P("y", None, "x")]


@st.composite
def placed(draw):
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.lists(st.sampled_from([0, 8, 16]), min_size=rank, max_size=rank)))
    spec = draw(st.sampled_from([spec for spec in SPECS if len(spec) <= rank]))
    return shape, spec, tuple(draw(st.permutations(range(rank))))


@settings(max_examples=120, deadline=None)
@given(st.data(), placed(), dtypes(), st.integers(0, 99))
def test_put_get_and_reshard_are_exact_in_any_layout(data, first, dtype, seed):
    shape, spec, order = first
    value = random_bits(shape, dtype, seed)
    with ad.simulate(8):
        mesh = ad.make_mesh((4, 2), ("x", "y"))
        x = ad.device_put(value, turned(ad.NamedSharding(mesh, spec), order))
        assert order_of(x) == order
        assert np.asarray(x).tobytes() == value.tobytes()
        to = data.draw(st.sampled_from([s for s in SPECS if len(s) <= len(shape)]))
        other = tuple(data.draw(st.permutations(range(len(shape)))))
        y = ad.device_put(x, turned(ad.NamedSharding(mesh, to), other))
        assert order_of(y) == other
        assert np.asarray(y).tobytes() == value.tobytes()
        for shard in y.addressable_shards:
            block = np.asarray(shard.data)
            assert block.tobytes() == value[shard.index].tobytes()
            if block.size > 1:
                assert block.strides == strides_in(other, block.shape, dtype.itemsize)


# Each: what is done to an ndarray or an Array; the same name in both worlds.
OPERATIONS = {
    "add": lambda a: a + 1,
    "twice": lambda a: a + a,
    "multiply_row": lambda a: a * a[:1],
    "negative": lambda a: -a,
    "compare": lambda a: (a > 3).astype(a.dtype),
    "where": lambda a: np.where(a > 5, a, 0),
    "sum": lambda a: a.sum(axis=0, keepdims=True) + a,
    "mean": lambda a: a.mean(axis=1, keepdims=True) + a,
    "max": lambda a: a.max(axis=0) + a,
    "cumsum": lambda a: np.cumsum(a, axis=0) % 7,
    "sort": lambda a: np.sort(a, axis=0),
    "argmax": lambda a: a + np.argmax(a, axis=0),
    "transpose": lambda a: a.T,
    "reshape": lambda a: a.reshape(a.shape[1], a.shape[0]),
    "flat": lambda a: a.reshape(-1).reshape(a.shape),
    "slice": lambda a: np.concatenate([a[4:], a[:4]]),
    "index": lambda a: a[:, ::-1],
    "row": lambda a: a - a[3],
    "take": lambda a: np.take(a, [1, 0, *range(2, a.shape[0])], axis=0),
    "concatenate": lambda a: np.concatenate([a, a], axis=0)[: a.shape[0]],
    "stack": lambda a: np.stack([a, a])[1],
    "matmul": lambda a: (a @ a.T) @ a % 11,
    "einsum": lambda a: np.einsum("ij->ji", a) % 5,
    "outer": lambda a: np.outer(a[0], a[1])[:8, :8] % 3,
    "roll": lambda a: np.roll(a, 3, axis=1),
    "flip": lambda a: np.flip(a, axis=0),
    "clip": lambda a: np.clip(a, 1, 6),
    "squeeze": lambda a: a[None].squeeze(0),
    "norm": lambda a: a + np.linalg.norm(a),
    "copy": lambda a: copy.copy(a),
    "tril": lambda a: np.tril(a),
    "astype": lambda a: a.astype(np.float32).astype(np.float64),
}


def outcome(operation, x):
    try:
        return operation(x)
    except (TypeError, ValueError) as error:
        return type(error)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=4),
    st.sampled_from([P(), P("x"), P("x", "y"), P(None, "x"), P(("x", "y"))]),
    st.booleans(),
)
def test_lists_of_operations_on_column_major_arrays_are_numpys(names, spec, in_one):
    value = (np.arange(128, dtype=np.float64).reshape(8, 16) * 7) % 13
    with ad.simulate(8):
        mesh = ad.make_mesh((4, 2), ("x", "y"))
        x = ad.device_put(value, turned(ad.devices()[0] if in_one else ad.NamedSharding(mesh, spec)))
        for name in names:
            operation = OPERATIONS[name]
            here = np.asarray(x)
            plain = outcome(operation, ad.device_put(np.ascontiguousarray(here), x.sharding))
            result = outcome(operation, x)
            if isinstance(plain, type):
                assert result is plain
                continue
            np.testing.assert_allclose(np.asarray(result), operation(here), rtol=1e-12, err_msg=name)
            assert result.sharding == plain.sharding
            assert np.array_equal(x, here)
            x = ad.device_put(result, turned(result.sharding))
