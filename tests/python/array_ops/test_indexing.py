# SPDX-License-Identifier: Apache-2.0
"""x[...], iteration, take and its kind: NumPy's values and errors, where the result lies, and what is read for it."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices._array_ops.core import blocks
from artifex_devices._array_ops.index import indexing
from artifex_devices.errors import ShardingTypeError
from artifex_devices.testing import assert_same_bits, dtypes, shardable_arrays
from hypothesis import assume, given
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("each_way")

V = np.arange(64.0).reshape(8, 8)


def put(value, sharding):
    return ad.device_put(value, sharding)


def spec_of(x):
    return tuple(x.sharding.spec)


@st.composite
def places(draw, size, ndim=None):
    shape = draw(
        st.lists(st.integers(0 if size == 0 else 1, 3), min_size=ndim or 0, max_size=2 if ndim is None else ndim)
    )
    if not size:
        shape = [*shape[:-1], 0] if shape else [0]
    values = draw(
        st.lists(st.integers(-size, max(size - 1, 0)), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
    )
    return np.array(values, np.intp).reshape(shape)


@st.composite
def indices(draw, shape, *, advanced):
    """A valid index for an array of the shape, unless integer arrays in it do not broadcast."""
    parts = []
    d = 0
    while d < len(shape):
        kinds = ["slice", "slice", "none", "stop"]
        if shape[d]:
            kinds.append("int")
        if advanced:
            kinds += ["places", "places", "mask", "bool"]
        kind = draw(st.sampled_from(kinds))
        if kind == "stop":
            break
        if kind == "none":
            parts.append(None)
            continue
        if kind == "bool":
            parts.append(draw(st.sampled_from([True, np.False_])))
            continue
        if kind == "slice":
            bound = st.none() | st.integers(-shape[d] - 2, shape[d] + 2)
            step = st.sampled_from([None, None, 1, 2, 3, -1, -2, -3])
            parts.append(slice(draw(bound), draw(bound), draw(step)))
        elif kind == "int":
            i = draw(st.integers(-shape[d], shape[d] - 1))
            parts.append(draw(st.sampled_from([i, np.int32(i), np.array(i)])))
        elif kind == "places":
            array = draw(places(shape[d]))
            parts.append(array.tolist() if array.ndim and draw(st.booleans()) else array)
        else:
            rank = draw(st.integers(1, min(2, len(shape) - d)))
            size = int(np.prod(shape[d : d + rank]))
            bits = draw(st.lists(st.booleans(), min_size=size, max_size=size))
            parts.append(np.array(bits, bool).reshape(shape[d : d + rank]))
            d += rank - 1
        d += 1
    if draw(st.booleans()):
        taken = sum(p.ndim if isinstance(p, np.ndarray) and p.dtype == bool else p is not None for p in parts)
        parts.insert(draw(st.integers(0, len(parts))), ...) if taken <= len(shape) else None
    return parts[0] if len(parts) == 1 and draw(st.booleans()) and not isinstance(parts[0], list) else tuple(parts)


def by_numpy(value, index):
    try:
        return value[index], None
    except IndexError as error:
        return None, error


@pytest.mark.parametrize("advanced", [False, True])
@given(data=st.data())
def test_values_are_numpys(advanced, data):
    placement = data.draw(shardable_arrays(dtype=dtypes()))
    x = put(placement.value, placement.sharding)
    index = data.draw(indices(x.shape, advanced=advanced))
    expected, error = by_numpy(placement.value, index)
    if error is not None:
        with pytest.raises(IndexError):
            x[index]
        return
    result = x[index]
    assert isinstance(result, ad.Array)
    assert_same_bits(result, expected)
    assert result.committed == x.committed


@given(data=st.data())
def test_uneven_shards_are_indexed(data):
    mesh = ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))
    shape = data.draw(st.tuples(st.integers(0, 9), st.integers(0, 9)))
    value = np.arange(np.prod(shape)).reshape(shape)
    spec = data.draw(st.sampled_from([("x", "y"), ("y", "x"), (("x", "y"),), (None, "y")]))
    x = put(value, ad.NamedSharding(mesh, ad.P(*spec), uneven="last-short"))
    index = data.draw(indices(shape, advanced=True))
    expected, error = by_numpy(value, index)
    assume(error is None)
    assert_same_bits(x[index], expected)


@pytest.mark.parametrize(
    ("index", "spec"),
    [
        (0, ("y",)),
        ((slice(None), 3), ("x",)),
        (slice(4), (None, "y")),
        (slice(0, 8), ("x", "y")),
        (slice(None, None, -1), ("x", "y")),
        (slice(None, None, 2), (None, "y")),
        ([0, 1], (None, "y")),
        (None, (None, "x", "y")),
        ((..., None), ("x", "y")),
        ((0, 0), ()),
        (np.arange(8) > 3, (None, "y")),
        (([0, 1], [2, 3]), ()),
        ((slice(None), [[0, 1], [2, 3]]), ("x",)),
        ((slice(None), [0], None), ("x",)),
    ],
    ids=str,
)
def test_the_sharding_of_the_result(named, index, spec):
    x = put(V, named("x", "y"))
    result = x[index]
    assert spec_of(result) == spec
    assert result.sharding.mesh is x.sharding.mesh
    assert_same_bits(result, V[index])


def test_a_sharded_index_array_shards_the_result(named):
    x = put(V, named("x"))
    i = put(np.arange(8)[::-1].copy(), named("y"))
    assert spec_of(x[i]) == ("y",)
    assert_same_bits(x[i], V[::-1])
    assert spec_of(x[:, i]) == ("x", "y")
    assert spec_of(put(V, named(None, "y"))[i]) == (None, "y")  # y is taken


def test_a_result_without_dimensions_is_an_array(named):
    result = put(V, named("x", "y"))[3, 4]
    assert isinstance(result, ad.Array)
    assert result.shape == ()
    assert result.item() == 28.0


def test_only_the_shards_that_are_asked_for_are_read(named, monkeypatch):
    x = put(V, named("x", "y"))
    monkeypatch.setattr(indexing, "is_small", lambda *nbytes: False)  # of an Array like this all is one view
    real = blocks.local_arrays

    def only(*allowed):
        def poisoned(operation, array, *options):
            views = real(operation, array, *options)
            if array is not x:
                return views
            return [view if number in allowed else None for number, view in enumerate(views)]  # None cannot be read

        monkeypatch.setattr(blocks, "local_arrays", poisoned)

    only(0)
    assert x[1, 1].item() == 9.0
    assert_same_bits(x[:4, :2], V[:4, :2])
    assert_same_bits(x[[3, 1], [0, 1]], V[[3, 1], [0, 1]])
    with pytest.raises(TypeError):
        np.asarray(x[4, 1])
    only(4, 5, 6, 7)
    assert_same_bits(x[-1], V[-1])
    only(1, 2, 5, 6)
    assert_same_bits(x[::-1, 2:6], V[::-1, 2:6])
    assert_same_bits(np.take(x, [5, 2], axis=1), V[:, [5, 2]])
    only(0, 7)
    assert_same_bits(x[[0, -1], [0, -1]], V[[0, -1], [0, -1]])


def test_masks_on_devices(named):
    x = put(V, named("x"))
    mask = V[0] > 3
    assert_same_bits(x[put(mask, named())], V[mask])  # the mask is whole
    assert_same_bits(x[:, put(mask, named("x"))], V[:, mask])  # the dimension is whole
    assert_same_bits(x[put(mask, named("x"))], V[mask])
    assert_same_bits(x[x > 3], V[V > 3])
    assert x[x > 3].sharding == named()
    assert_same_bits(x[np.asarray(x > 3)], V[V > 3])
    y = ad.device_put(V)
    assert_same_bits(y[y > 3], V[V > 3])


class Foreign:
    """An array of another library: NumPy reads it, and one with a single element is also an index."""

    def __init__(self, value):
        self.value = np.asarray(value)

    def __array__(self, dtype=None, copy=None):
        return self.value

    def __index__(self):
        return int(self.value.item())


def test_arrays_of_other_libraries_are_indices_and_masks(named):
    x = put(V, named("x", "y"))
    rows = np.array([3, 0])
    assert_same_bits(x[Foreign(rows)], V[rows])
    assert_same_bits(x[Foreign([5])], V[[5]])
    assert_same_bits(x[Foreign(5)], V[5])
    assert_same_bits(x[:, Foreign(rows), None], V[:, rows, None])
    assert_same_bits(x[Foreign(V > 7)], V[V > 7])
    assert_same_bits(np.take(x, Foreign(rows), axis=1), V[:, rows])
    with pytest.raises(IndexError, match="an array of dtype float64 is not an index"):
        x[Foreign([1.0])]


@pytest.mark.parametrize(
    "index",
    [
        *(8, -9, (0, 8), (0, 0, 0), [8], ([0, 1], [0, 1, 2]), np.array([1.0]), "a", 1.5, [0.5], (..., ...), object()),
        *(np.ones(7, bool), np.ones((8, 7), bool), [True], np.array([]), ad),
    ],
)
def test_wrong_indices_are_index_errors_as_in_numpy(named, index):
    x = put(V, named("x", "y"))
    with pytest.raises(IndexError):
        V[index]
    with pytest.raises(IndexError, match="expected"):
        x[index]


def test_slices_are_checked_by_python(named):
    x = put(V, named("x"))
    with pytest.raises(TypeError, match="slice indices"):
        x[0.5:]
    with pytest.raises(ValueError, match="step"):
        x[::0]


def test_the_error_names_the_dimension(named):
    x = put(V, named("x"))
    with pytest.raises(IndexError, match=r"8 is out of range in dimension 1 of shape \(8, 8\); expected -8 to 7"):
        x[0, 8]


def test_parts_of_explicit_axes_are_refused(devices):
    mesh = ad.make_mesh((2, 4), ("x", "y"), axis_types=(ad.sharding.AxisType.Explicit,) * 2)
    x = put(V, ad.NamedSharding(mesh, ad.P("x")))
    with pytest.raises(ShardingTypeError, match="reshard"):
        x[0]
    assert_same_bits(x[:, 0], V[:, 0])
    assert_same_bits(x[::-1], V[::-1])
    for row, expected in zip(x, V, strict=True):  # iteration takes all rows
        assert_same_bits(row, expected)


def test_arrays_are_immutable(named):
    x = put(V, named("x"))
    with pytest.raises(TypeError, match=r"are immutable.*x = x\.at\[0\]\.set\(1\)"):
        x[0] = 1
    with pytest.raises(TypeError, match="are immutable"):
        del x[0]
    assert_same_bits(x, V)


def test_iteration(named):
    x = put(V, named("x", "y"))
    rows = list(x)
    assert len(rows) == len(x) == 8
    assert all(spec_of(row) == ("y",) for row in rows)
    for row, expected in zip(rows, V, strict=True):
        assert_same_bits(row, expected)
    assert [row[0].item() for row in reversed(x)] == V[::-1, 0].tolist()
    first, *_ = x[0]
    assert first.item() == 0.0
    with pytest.raises(TypeError, match="without dimensions"):
        iter(x[0, 0])
    with pytest.raises(TypeError, match="no length"):
        len(x[0, 0])


def test_contains(named):
    x = put(V, named("x", "y"))
    assert 63.0 in x
    assert 64 not in x
    assert float("nan") not in x
    assert 0 not in put(V[:0], named())


def test_a_deleted_array_cannot_be_indexed(named):
    x = put(V, named("x"))
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x[0]


def test_big_buffers_are_worked_on_in_pieces(named):
    value = np.arange(3 << 20, dtype=np.int32).reshape(3, 1 << 10, 1 << 10)
    assert_same_bits(put(value, named())[::-1, 1:, ::2], value[::-1, 1:, ::2])
    assert_same_bits(ad.device_put(value)[:, ::-1], value[:, ::-1])
    i = np.arange(1 << 10)[::-1]
    assert_same_bits(put(value, named(None, "x"))[:, i, i], value[:, i, i])


@given(data=st.data())
def test_take(data):
    placement = data.draw(shardable_arrays(dtype=dtypes()))
    value = placement.value
    x = put(value, placement.sharding)
    axis = data.draw(st.none() | st.integers(-value.ndim, value.ndim - 1)) if value.ndim else None
    size = value.size if axis is None else value.shape[axis]
    mode = data.draw(st.sampled_from(["raise", "wrap", "clip"]))
    i = data.draw(places(size)) * (3 if mode != "raise" else 1)
    expected = np.take(value, i, axis, mode=mode)
    assert_same_bits(np.take(x, i, axis, mode=mode), expected)
    assert_same_bits(x.take(i.tolist() if i.size else i, axis, mode=mode), expected)  # a list has no shape (0, 0)
    out = np.empty_like(expected, order="C")
    assert np.take(x, i, axis, out, mode) is out
    assert_same_bits(out, expected)


def test_take_refuses(named):
    x = put(V, named("x"))
    for axis in (0, None):
        with pytest.raises(IndexError, match="out of range"):
            x.take([64], axis)
    with pytest.raises(TypeError, match="integer"):
        x.take([0.5], 0)
    with pytest.raises(ValueError, match="mode"):
        x.take([0], 0, mode="nearest")
    with pytest.raises(np.exceptions.AxisError):
        x.take([0], 2)
    with pytest.raises(TypeError, match="out is not an ndarray"):
        np.take(x, [0], 0, out=x)
    with pytest.raises(ValueError, match=r"expected \(1, 8\)"):
        np.take(x, [0], 0, out=np.empty(3))


@pytest.mark.usefixtures("no_moves")
@given(data=st.data())
def test_take_along_axis(data):
    placement = data.draw(shardable_arrays(dtype="int64"))
    value = placement.value
    assume(value.ndim)
    axis = data.draw(st.integers(-value.ndim, value.ndim - 1))
    assume(value.shape[axis])
    i = np.argsort(value, axis)[
        tuple(slice(0, 2) if d == axis % value.ndim else slice(None) for d in range(value.ndim))
    ]
    x = put(value, placement.sharding)
    if x.sharding.shard_shape(x.shape)[axis] < x.shape[axis]:
        with pytest.raises(ShardingTypeError, match="reshard"):
            np.take_along_axis(x, i, axis)
    else:
        assert_same_bits(np.take_along_axis(x, i, axis), np.take_along_axis(value, i, axis))


@pytest.mark.usefixtures("no_moves")
def test_take_along_axis_keeps_the_other_cuts(named):
    i = np.argsort(-V, axis=1)
    result = np.take_along_axis(put(V, named("x")), put(i, named("x")), axis=1)
    assert spec_of(result) == ("x",)
    assert_same_bits(result, -np.sort(-V, axis=1))
    with pytest.raises(ShardingTypeError, match="dimension 0"):
        np.take_along_axis(put(V, named("x")), i, axis=0)
    with pytest.raises(IndexError, match="out of range"):
        np.take_along_axis(put(V, named("x")), i + 1, axis=1)


def test_repeat(named):
    x = put(V, named("x", "y"))
    result = np.repeat(x, 3, axis=0)
    assert spec_of(result) == ("x", "y")
    assert_same_bits(result, np.repeat(V, 3, axis=0))
    counts = [0, 1, 2, 0, 1, 2, 3, 0]
    assert spec_of(x.repeat(counts, 0)) == (None, "y")
    assert_same_bits(x.repeat(counts, 0), np.repeat(V, counts, 0))


def test_compress(named):
    x = put(V, named("x", "y"))
    condition = [True, False, True]
    assert_same_bits(np.compress(condition, x, axis=1), np.compress(condition, V, axis=1))
    assert_same_bits(x.compress(condition), V.compress(condition))
    with pytest.raises(TypeError, match="not known"):
        x.compress(put(V[0] > 3, named("x")), axis=0)


def test_select(named):
    x = put(V, named("x", "y"))
    result = np.select([x < 10, x > 40], [x, -x], 5)
    assert spec_of(result) == ("x", "y")
    assert_same_bits(result, np.select([V < 10, V > 40], [V, -V], 5))


@pytest.mark.usefixtures("no_moves")
def test_searchsorted(named):
    x = put(V, named("x", "y"))
    keys = np.array([3.0, 9.0, 40.0])
    for side in ("left", "right"):
        result = np.searchsorted(keys, x, side)
        assert spec_of(result) == ("x", "y")
        assert_same_bits(result, np.searchsorted(keys, V, side))
    assert_same_bits(np.searchsorted(put(keys, named()), V), np.searchsorted(keys, V))
    with pytest.raises(ShardingTypeError, match="searchsorted: a is sharded"):
        np.searchsorted(put(V[0], named("x")), keys)


@pytest.mark.usefixtures("no_moves")
def test_results_of_unknown_size_are_refused(named):
    with pytest.raises(TypeError, match=r"not known.*np.trim_zeros\(np.asarray\(x\)\)"):
        np.trim_zeros(put(V[0], named("x")))


def test_an_ellipsis_that_stands_for_nothing_parts_index_arrays(named):
    host = np.arange(32).reshape(8, 4)
    x = ad.device_put(host, named("x", "y"))
    rows, columns = np.array([1, 5, 2]), np.array([0, 3, 3])
    assert_same_bits(x[None, rows, ..., columns], host[None, rows, ..., columns])
    assert x[None, rows, ..., columns].shape == (3, 1)
    assert x[None, rows, columns].shape == (1, 3)


@pytest.mark.parametrize("mode", ["raise", "clip"])
@pytest.mark.parametrize("shape", [(0, 3), (0, 0), (3, 0), (2, 0, 3), (2, 3, 0), (0,)])
@pytest.mark.parametrize("indices", [[], [5], [0, -1], 3])
def test_take_of_nothing_looks_at_the_indices_that_numpy_looks_at(shape, indices, mode):
    value, places = np.zeros(shape), np.array(indices, int)
    for axis in range(len(shape)):
        for x in (ad.device_put(value), ad.device_put(value, ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P()))):
            try:
                expected = np.take(value, places, axis=axis, mode=mode)
            except IndexError:
                with pytest.raises(IndexError, match=r"take|index"):
                    np.take(x, places, axis=axis, mode=mode)
            else:
                assert_same_bits(np.take(x, places, axis=axis, mode=mode), expected)


@pytest.mark.parametrize(
    ("shape", "names", "order"),
    [((4, 2), "xy", 1), ((2, 4), "yx", 1), ((2, 4), "xy", -1), ((2, 2), "xy", 1)],
    ids=["another shape", "other names", "another order", "fewer devices"],
)
def test_an_index_array_on_another_mesh_gives_its_values_only(devices, named, shape, names, order):
    x = put(V, named(None, "y"))
    other = ad.Mesh(np.array(devices[: np.prod(shape)])[::order].reshape(shape), tuple(names))
    i = put(np.arange(8)[::-1].copy(), ad.NamedSharding(other, ad.P("x")))
    assert_same_bits(x[i], V[::-1])
    assert x[i].sharding == named(None, "y")  # not sharded over the x of the other mesh
    on_this_mesh = put(np.arange(8), named("x"))
    assert x[i, on_this_mesh].sharding == named("x")  # the first index Array on the mesh of x decides
    assert_same_bits(x[i, on_this_mesh], V[::-1].diagonal().copy())


def test_an_index_array_on_a_mesh_does_not_shard_an_array_on_one_device(devices, named):
    x = put(V, devices[2])
    i = put(np.arange(8)[::-1].copy(), named("x"))
    assert x[i].sharding == ad.SingleDeviceSharding(devices[2])
    assert_same_bits(x[i], V[::-1])
    j = put(np.arange(8)[::-1].copy(), devices[3])
    assert put(V, named("x"))[:, j].sharding == named("x")


@pytest.mark.parametrize("entries", [(), ("y",)], ids=["whole mask", "sharded mask"])
@pytest.mark.parametrize(
    ("before", "spec"),
    [
        ((None, slice(None)), (None, "x")),
        ((slice(None), ...), ("x",)),
        ((slice(None), None, ...), ("x",)),
        ((None, slice(None), ..., None), (None, "x")),
        ((None, 3), ()),
        ((3, ..., None), ()),
    ],
    ids=str,
)
def test_none_and_an_empty_ellipsis_before_a_mask(named, before, spec, entries):
    value = np.arange(32.0).reshape(8, 4)
    x = put(value, named("x"))
    mask = np.array([True, False, True, True])
    index = (*before, put(mask, named(*entries)))
    assert_same_bits(x[index], value[(*before, mask)])
    assert spec_of(x[index]) == spec
    assert_same_bits(x[(*before, mask)], value[(*before, mask)])


def test_a_sharded_mask_after_none_is_compared_with_the_dimension_that_it_selects_from(named):
    x = put(np.arange(32.0).reshape(8, 4), named("x"))
    assert_same_bits(x[None, put(np.ones(8, bool), named("x"))], np.asarray(x)[None])
    with pytest.raises(IndexError, match=r"expected shape \(8,\) .* got \(4,\)"):
        x[None, put(np.ones(4, bool), named("y"))]
