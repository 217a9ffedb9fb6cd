# SPDX-License-Identifier: Apache-2.0
"""New shapes and orders of Arrays: NumPy's values, the cuts go along, and nothing is gathered."""

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.errors import ShardingTypeError
from artifex_devices.testing import assert_same_bits, meshes, shardable_arrays, spec_entries
from artifex_devices.testing.sharding_strategies import partition_counts
from hypothesis import given, settings
from hypothesis import strategies as st

FEW = settings(max_examples=60)
pytestmark = pytest.mark.usefixtures("settled_module")


def value_of(shape, dtype=np.int32):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def check(got, expected):
    """The same value and bits as a whole, and in every shard."""
    assert isinstance(got, ad.Array)
    assert_same_bits(np.asarray(got), np.ascontiguousarray(expected).reshape(expected.shape))
    for shard in got.addressable_shards:
        part = expected[shard.index]
        assert_same_bits(np.asarray(shard.data), np.ascontiguousarray(part).reshape(part.shape))


def spec_of(x):
    return tuple(x.sharding.spec)


@pytest.fixture
def put(grid):
    """put(shape, *spec): numbers from 0 on, on the 2 x 4 mesh of Auto axes."""
    return lambda shape, *spec: ad.device_put(value_of(shape), ad.NamedSharding(grid, ad.P(*spec)))


@st.composite
def uneven_placements(draw):
    """An Array whose last parts may be short, and its value."""
    mesh = draw(meshes(devices=ad.devices()))
    value = value_of(tuple(draw(st.lists(st.integers(0, 9), max_size=3))), draw(st.sampled_from(["int8", "float64"])))
    entries = draw(spec_entries(mesh.axis_names, max_rank=value.ndim))
    return value, ad.device_put(value, ad.NamedSharding(mesh, ad.P(*entries), uneven="last-short"))


@st.composite
def placed(draw):
    """A value and an Array of it."""
    if draw(st.integers(0, 2)) == 0:
        return draw(uneven_placements())
    placement = draw(shardable_arrays(devices=ad.devices()))
    return placement.value, ad.device_put(placement.value, placement.sharding)


@FEW
@given(st.data())
def test_orders_of_dimensions_are_numpys(data):
    value, x = data.draw(placed())
    order = data.draw(st.permutations(range(value.ndim)))
    check(np.transpose(x, order), value.transpose(order))
    check(x.T, value.T)
    check(np.permute_dims(x, order), value.transpose(order))
    if value.ndim >= 2:
        i, j = data.draw(st.integers(-value.ndim, value.ndim - 1)), data.draw(st.integers(0, value.ndim - 1))
        check(np.swapaxes(x, i, j), np.swapaxes(value, i, j))
        check(np.moveaxis(x, i, j), np.moveaxis(value, i, j))
        check(np.rollaxis(x, i, j), np.rollaxis(value, i, j))
        check(x.mT, value.mT)


@pytest.mark.usefixtures("no_moves")
@FEW
@given(st.data())
def test_reshape_is_numpys_or_an_error(data):
    value, x = data.draw(placed())
    shape, left = [], value.size
    while left > 1 and len(shape) < 5:
        side = data.draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0]), label="side")
        shape.append(side)
        left //= side
    shape = (*shape, left) if left != 1 or not shape else tuple(shape)
    try:
        with ad.transfers.record() as report:
            got = x.reshape(shape)
    except ShardingTypeError as error:
        assert not x.is_fully_replicated
        message = str(error)
    else:
        message = ""
        check(got, value.reshape(shape))
        assert report.bytes("device-to-device") == 0
        assert len(got.addressable_shards) == len(x.addressable_shards)
    assert not message or ("reshape: the sharding does not carry over" in message and "reshard(x" in message)


@FEW
@given(st.data())
def test_turns_are_numpys(data):
    value, x = data.draw(placed())
    axes = tuple(data.draw(st.lists(st.integers(0, value.ndim - 1), unique=True))) if value.ndim else ()
    if value.ndim:  # without dimensions NumPy gives a scalar, which keeps no bits of a NaN
        check(np.flip(x, axes), np.flip(value, axes))
        check(np.flip(x), np.flip(value))
        check(np.flipud(x), np.flipud(value))
    if axes:
        shifts = tuple(data.draw(st.integers(-10, 10)) for _ in axes)
        check(np.roll(x, shifts, axes), np.roll(value, shifts, axes))
    if value.ndim >= 2:
        k = data.draw(st.integers(-4, 4))
        check(np.rot90(x, k), np.rot90(value, k))
        check(np.triu(x, k), np.triu(value, k))
        check(np.tril(x, k), np.tril(value, k))
        check(np.fliplr(x), np.fliplr(value))


@FEW
@given(st.data())
def test_broadcasts_are_numpys(data):
    value, x = data.draw(placed())
    axis = data.draw(st.integers(0, value.ndim))
    check(np.expand_dims(x, axis), np.expand_dims(value, axis))
    check(np.squeeze(np.expand_dims(x, (0, -1)), -1), value[None])
    shape = (2, *(3 if size == 1 else size for size in value.shape))
    check(np.broadcast_to(x, shape), np.broadcast_to(value, shape))
    for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
        check(function(x), function(value))


@FEW
@given(st.data())
def test_repetitions_are_numpys_where_they_are_local(data):
    value, x = data.draw(placed())
    whole = [d for d, (a, b) in enumerate(zip(value.shape, x.sharding.shard_shape(value.shape), strict=True)) if a == b]
    cut = partition_counts(tuple(x.sharding.spec), dict(x.sharding.mesh.shape)) if hasattr(x.sharding, "spec") else ()
    whole = [d for d in whole if d >= len(cut) or cut[d] == 1]
    counts = [data.draw(st.integers(0, 3)) if d in whole else 1 for d in range(value.ndim)]
    check(np.tile(x, (2, *counts)), np.tile(value, (2, *counts)))
    widths = [(data.draw(st.integers(0, 2)), 1) if d in whole and value.shape[d] else (0, 0) for d in range(value.ndim)]
    if value.ndim and value.dtype.kind in "iuf":
        mode = data.draw(st.sampled_from(["constant", "edge", "wrap"]))
        check(np.pad(x, widths, mode=mode), np.pad(value, widths, mode=mode))


@pytest.mark.parametrize(
    ("shape", "spec", "new", "result"),
    [
        ((8, 4), ("x",), (32,), ("x",)),
        ((8, 4), ("x",), (2, 4, 4), ("x",)),
        ((8, 4), ("y",), (4, 2, 4), ("y",)),
        ((8, 4), ("x", "y"), (8, 1, 4), ("x", None, "y")),
        ((8, 1, 4), ("x", None, "y"), (8, 4), ("x", "y")),
        ((8, 4), (("x", "y"),), (32,), (("x", "y"),)),
        ((8, 4), (("x", "y"),), (2, 4, 4), ("x", "y")),
        ((32,), (("x", "y"),), (2, 16), ("x", "y")),
        ((2, 4, 4), ("x", "y"), (8, 4), (("x", "y"),)),
        ((2, 4, 4), ("x", "y"), (2, 16), ("x", "y")),
        ((8, 6), (None, "x"), (8, 2, 3), (None, "x")),
        ((8, 4), ("x",), (4, 8), ("x",)),
        ((8, 4), (None, "y"), (2, 4, 4), (None, None, "y")),
        ((0, 4), ("x",), (0, 2, 2), ("x",)),
        ((8, 4), (), (4, 8), ()),
    ],
)
def test_the_sharding_of_a_reshaped_array(put, shape, spec, new, result):
    got = put(shape, *spec).reshape(new)
    assert spec_of(got) == result
    check(got, value_of(shape).reshape(new))


@pytest.mark.usefixtures("no_moves")
@pytest.mark.parametrize(
    ("shape", "spec", "new", "message"),
    [
        (
            (8, 4),
            (None, "x"),
            (32,),
            r"dimensions \[0, 1\] of sizes \[8, 4\] becomes sizes \[32\], .* dimension 1 over",
        ),
        ((8, 4), ("y",), (2, 16), r"sizes \[2, 16\], and shards dimension 0 over \('y',\)"),
        ((8, 4), ("x", "y"), (8, 2, 2), r"dimensions \[1\] of sizes \[4\] becomes sizes \[2, 2\]"),
        ((8, 4), ("x", "y"), (32,), r"dimension 0 over \('x',\) and dimension 1 over \('y',\)"),
        ((2, 4, 4), (None, "x"), (8, 4), r"reshard\(x"),
    ],
)
def test_a_reshape_across_devices_is_refused(put, shape, spec, new, message):
    with pytest.raises(ShardingTypeError, match=f"reshape: .*{message}"):
        put(shape, *spec).reshape(new)


def test_shapes_share_the_memory(put, devices):
    x = put((8, 4), "x")
    used = [device.memory_stats()["bytes_in_use"] for device in devices]
    y = x.reshape(2, 4, 4)
    pointers = [[s.data.unsafe_buffer_pointer() for s in array.addressable_shards] for array in (x, y)]
    assert pointers[0] == pointers[1]
    after = [device.memory_stats()["bytes_in_use"] for device in devices]
    assert all(b - a == x.addressable_shards[0].data.nbytes for a, b in zip(used, after, strict=True))
    x.delete()
    check(y, value_of((2, 4, 4)))
    with pytest.raises(RuntimeError, match=r"reshape: .*deleted"):
        x.reshape(-1)
    copied = y.reshape(-1, copy=True)
    assert copied.addressable_shards[0].data.unsafe_buffer_pointer() != pointers[1][0]
    assert y.flatten().addressable_shards[0].data.unsafe_buffer_pointer() != pointers[1][0]
    assert y.reshape(2, 4, 4) is y


def test_a_shard_is_reshaped_by_itself(put):
    shard = put((8, 4), "x").addressable_shards[-1].data
    check(shard.reshape(-1), np.asarray(shard).reshape(-1))
    check(shard.T, np.asarray(shard).T)


@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "complex128", "bool"])
def test_every_dtype_moves(grid, dtype):
    value = value_of((8, 4)).astype(getattr(ml_dtypes, dtype, dtype))
    x = ad.device_put(value, ad.NamedSharding(grid, ad.P("x", "y")))
    check(x.T.reshape(4, 8, 1), value.T.reshape(4, 8, 1))
    assert spec_of(x.T) == ("y", "x")


def test_transposes_of_big_arrays(grid):
    value = np.random.default_rng(0).integers(0, 255, (3, 520, 700), np.uint8)
    x = ad.device_put(value, ad.NamedSharding(grid, ad.P(None, "x", "y")))
    check(x.transpose(2, 0, 1), value.transpose(2, 0, 1))
    check(np.flip(x, 2), np.flip(value, 2))


def test_wrong_shapes_and_axes_are_errors(put):
    x = put((8, 4), "x")
    with pytest.raises(ValueError, match=r"reshape: shape \(5, -1\) is not for 32 elements"):
        x.reshape(5, -1)
    with pytest.raises(ValueError, match=r"reshape: shape \(-1, -1\)"):
        x.reshape(-1, -1)
    with pytest.raises(TypeError, match=r"reshape: shards of Arrays are row-major"):
        x.reshape(32, order="F")
    with pytest.raises(np.exceptions.AxisError):
        np.swapaxes(x, 0, 2)
    with pytest.raises(ValueError, match=r"transpose: axes does not name every dimension"):
        x.transpose(0)
    with pytest.raises(ValueError, match=r"squeeze: dimensions \[0\] are not of size 1"):
        x.squeeze(0)
    with pytest.raises(ValueError, match=r"broadcast_to: shape \(8, 4\)"):
        np.broadcast_to(x, (4, 8))
    with pytest.raises(ValueError, match="matrix_transpose: the operand is not a matrix"):
        _ = put((8,), "x").mT
    with pytest.raises(TypeError):
        x.reshape(2.5, -1)


@pytest.mark.usefixtures("no_moves")
def test_what_a_sharded_dimension_does_not_support_is_an_error(put):
    x = put((8, 4), "x")
    for call in (lambda: np.tile(x, (2, 1)), lambda: np.pad(x, 1)):
        with pytest.raises(ShardingTypeError, match=r"(tile|pad): .*dimension 0 over \('x',\).*reshard\(x"):
            call()
    check(np.tile(x, 2), np.tile(value_of((8, 4)), 2))


def test_rolls_along_explicit_axes_are_refused():
    mesh = ad.make_mesh((2, 4), ("x", "y"))
    x = ad.device_put(value_of((8, 4)), ad.NamedSharding(mesh, ad.P("x")))
    with pytest.raises(ShardingTypeError, match=r"roll: dimensions \[0\] are sharded over Explicit axes"):
        np.roll(x, 1, 0)
    check(np.roll(x, 1, 1), np.roll(value_of((8, 4)), 1, 1))


def test_results_keep_commitment(devices):
    x = ad.device_put(value_of((8, 4)))
    assert not x.T.committed
    assert not x.reshape(-1).committed
    y = ad.device_put(value_of((8, 4)), devices[1])
    assert y.T.committed
    assert y.reshape(-1).devices() == {devices[1]}


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sparse", [False, True])
def test_meshgrid(put, indexing, sparse):
    x, y, z = put((8,), "x"), put((4,), "y"), np.arange(3.0)
    hosts = (value_of((8,)), value_of((4,)), z)
    grids = np.meshgrid(x, y, z, indexing=indexing, sparse=sparse)
    assert isinstance(grids, tuple)
    for grid, expected in zip(grids, np.meshgrid(*hosts, indexing=indexing, sparse=sparse), strict=True):
        check(grid, expected)
    first, second = (1, 0) if indexing == "xy" else (0, 1)
    assert tuple(grids[0].sharding.spec) == (*(None,) * first, "x")
    assert tuple(grids[1].sharding.spec) == (*(None,) * second, "y")
    check(np.meshgrid(x, indexing=indexing)[0], hosts[0])
    with pytest.raises(ValueError, match="Valid values for `indexing`"):
        np.meshgrid(x, y, indexing="yx")


@pytest.mark.parametrize("world", [8, "2 nodes x 4"])
def test_the_only_element_of_a_sharded_dimension_is_broadcast_to_all_devices(world):
    with ad.simulate(world):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        x = ad.device_put(np.array([7]), ad.NamedSharding(mesh, ad.P("x"), uneven="last-short"))
        assert np.broadcast_to(x, (2, 3)).tolist() == [[7, 7, 7], [7, 7, 7]]


def test_broadcast_arrays(put):
    x, y = np.broadcast_arrays(put((8, 1), "x"), put((4,), "y"))
    assert (spec_of(x), spec_of(y)) == (("x",), (None, "y"))
    check(x, np.broadcast_to(value_of((8, 1)), (8, 4)))
    check(y, np.broadcast_to(value_of((4,)), (8, 4)))


def test_a_scalar_is_padded_as_numpy_pads_it():
    value = np.asarray(np.float32(3))
    for place in (ad.devices()[0], ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("x",)), ad.P())):
        x = ad.device_put(value, place)
        for width in (1, (1, 2), ((1, 2),)):
            check(np.pad(x, width), np.pad(value, width))
        with pytest.raises(TypeError, match="pad_width"):
            np.pad(x, 1.5)


@pytest.mark.parametrize("shape", [(0, 2**40, 2**40), (2**40, 2**40, 0), (2**40, 0, 2**40)])
def test_empty_arrays_whose_strides_do_not_fit_are_refused_as_by_numpy(shape):
    empty = np.zeros(0, np.int8)
    for call in (
        lambda x: x.reshape(shape),
        lambda x: np.zeros_like(x, shape=shape),
        lambda x: np.broadcast_to(x.reshape([size and 1 for size in shape]), shape),
    ):
        with pytest.raises(ValueError, match=r"too big|too large|cannot reshape"):
            call(empty)
        with pytest.raises(ValueError, match="more bytes than fit 63 bits, counting sizes of 0 as 1; use smaller"):
            call(ad.device_put(empty))
    assert ad.device_put(empty).reshape(0, 2**62).shape == empty.reshape(0, 2**62).shape
    assert ad.ShapeDtypeStruct(shape, np.int8).size == 0  # what has no memory is a value, as in JAX
    assert ad.device_put(empty).sharding.shard_shape(shape) == shape


def test_flipud_refuses_arrays_without_dimensions():
    with pytest.raises(ValueError, match=r"^flipud: the operand has no dimension; expected at least one, got shape"):
        np.flipud(ad.device_put(1.0))
