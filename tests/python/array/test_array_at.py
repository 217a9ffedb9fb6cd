# SPDX-License-Identifier: Apache-2.0
"""x.at[index], x.view, x.clone and out_sharding=: values of NumPy, shards as those of x."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P

X = np.arange(32, dtype=np.float32).reshape(8, 4)
MASK = np.arange(32).reshape(8, 4) % 3 == 0


@pytest.fixture(autouse=True)
def eight_devices():
    with ad.simulate(8):
        yield


def placements():
    mesh = ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))
    for entries in ((), ("x",), ("x", "y"), (None, "y"), (("y", "x"),)):
        yield ad.NamedSharding(mesh, P(*entries))
    yield ad.SingleDeviceSharding(ad.devices()[3])
    line = ad.Mesh(np.array(ad.devices()[:3]), ("z",))
    yield ad.NamedSharding(line, P("z"), uneven="last-short")


INDICES = {
    "row": (1, 5.0),
    "element": ((-1, 2), 9.0),
    "strided": ((slice(1, 7, 3), slice(None, None, 2)), 1.5),
    "backwards": (slice(None, None, -1), X * 2),
    "part backwards": ((slice(6, 1, -2), 1), np.arange(3, dtype=np.float32)),
    "repeated rows": (np.array([0, 0, 3]), np.arange(3, dtype=np.float32)[:, None]),
    "pairs": ((np.array([0, 7, 0]), np.array([2, 3, 2])), np.array([7, 8, 9], np.float32)),
    "rows of columns": ((np.array([[0], [5]]), slice(1, 3)), np.array([[[1, 2]], [[3, 4]]], np.float32)),
    "columns by an array": ((slice(2, 4), np.array([3, 0])), np.array([[1, 2], [3, 4]], np.float32)),
    "mask": (MASK, 2.0),
    "mask of rows": (np.array([True, False] * 4), np.ones(4, np.float32)),
    "new dimension": ((None, 0), np.full((1, 4), 3, np.float32)),
    "new dimension among arrays": ((np.array([0, 1]), None, slice(None)), np.full((2, 1, 4), 3, np.float32)),
    "ellipsis": ((..., 0), 1.0),
    "nothing": (slice(3, 3), 1.0),
    "True": (True, 2.0),
    "False": (False, 2.0),
    "leading ones": (0, np.full((1, 1, 4), 6, np.float32)),
}
METHODS = {
    "set": None,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "mul": np.multiply,
    "divide": np.true_divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("name", INDICES)
def test_values_are_those_of_an_assignment(name):
    index, values = INDICES[name]
    whole = X.copy()
    whole[index] = values
    for sharding in placements():
        x = ad.device_put(X, sharding)
        result = x.at[index].set(values)
        np.testing.assert_array_equal(np.asarray(result), whole)
        assert (result.sharding, result.dtype, result.committed) == (sharding, np.float32, True)
        np.testing.assert_array_equal(np.asarray(x), X)  # x does not change
        np.testing.assert_array_equal(np.asarray(x.at[index].get()), X[index])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["row", "repeated rows", "pairs", "strided", "backwards", "mask", "True"])
def test_every_update_is_applied(name, method):
    index, values = INDICES[name]
    ufunc, whole = METHODS[method], X + 1
    with np.errstate(all="ignore"):
        if ufunc is None:
            whole[index] = values
        elif isinstance(index, (np.ndarray, bool)) or (isinstance(index, tuple) and type(index[0]) is np.ndarray):
            ufunc.at(whole, index, values)
        else:
            whole[index] = ufunc(whole[index], values)
        for sharding in placements():
            result = getattr(ad.device_put(X + 1, sharding).at[index], method)(values)
            if method == "power":  # NumPy's last bit depends on where an element is in memory
                np.testing.assert_allclose(np.asarray(result), whole, rtol=1e-6)
            else:
                np.testing.assert_array_equal(np.asarray(result), whole)


def test_values_and_masks_may_be_arrays_on_devices():
    for sharding in placements():
        x = ad.device_put(X, sharding)
        values = ad.device_put(X[0] * 10, ad.NamedSharding(sharding.mesh, P())) if hasattr(sharding, "mesh") else X[0]
        whole = X.copy()
        whole[2] = X[0] * 10 if hasattr(sharding, "mesh") else X[0]
        np.testing.assert_array_equal(np.asarray(x.at[2].set(values)), whole)
        np.testing.assert_array_equal(np.asarray(x.at[x > 9].set(0)), np.where(X > 9, 0, X))
        np.testing.assert_array_equal(np.asarray(x.at[x > 9].add(1)), np.where(X > 9, X + 1, X))
    sharded = ad.device_put(X, next(iter(placements())))
    rows = ad.NamedSharding(sharded.sharding.mesh, P("x", "y"))
    np.testing.assert_array_equal(np.asarray(sharded.at[::-1].set(ad.device_put(X, rows))), X[::-1])


def test_an_uncommitted_array_stays_so_and_goes_to_committed_values():
    x = ad.device_put(X)
    result = x.at[0].set(1.0)
    assert (result.committed, result.sharding) == (False, x.sharding)
    there = ad.device_put(X[0], ad.devices()[3])
    moved = x.at[1].set(there)
    assert (moved.committed, moved.devices()) == (True, {ad.devices()[3]})
    with pytest.raises(ValueError, match=r"at\[\.\.\.\]\.set: the operands are on incompatible devices"):
        ad.device_put(X, ad.devices()[1]).at[1].set(there)


def test_big_arrays_are_updated_in_pieces():
    big = np.zeros((2048, 1024), np.float32)
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    rows = np.arange(0, 2048, 3)
    whole = big.copy()
    whole[rows] += np.arange(1024)
    x = ad.device_put(big, ad.NamedSharding(mesh, P("x")))
    np.testing.assert_array_equal(np.asarray(x.at[rows].add(np.arange(1024, dtype=np.float32))), whole)


WRONG = {
    "beyond the shape": (lambda x: x.at[99].set(1), IndexError, "99 is out of range"),
    "too many": (lambda x: x.at[0, 0, 0].set(1), IndexError, "too many indices"),
    "shape": (lambda x: x.at[0].set(np.ones(3)), ValueError, r"do not broadcast; expected shape \(4,\)"),
    "leading": (lambda x: x.at[0].set(np.ones((2, 4))), ValueError, r"got \(2, 4\)"),
    "dtype": (lambda x: x.astype(int).at[0].add(1.5), TypeError, "is of dtype float64; expected a dtype that"),
    "divided ints": (lambda x: x.astype(int).at[0].divide(2), TypeError, "result is of dtype float64"),
    "objects": (lambda x: x.at[0].set([object()]), TypeError, "not an array of numbers"),
    "masked": (lambda x: x.at[0].set(np.ma.array([1.0] * 4)), ValueError, "masked array"),
    "mode": (lambda x: x.at[9].set(1, mode="drop"), ValueError, "indices beyond the shape are an IndexError"),
    "option": (lambda x: x.at[0].set(1, moed="clip"), TypeError, "unknown arguments moed"),
    "guard": (lambda x: x.at[0].set(np.ones(4)), RuntimeError, "disallowed implicit host-to-device"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name):
    call, kind, text = WRONG[name]
    x = ad.device_put(X)
    with ad.transfer_guard("disallow" if name == "guard" else "allow"), pytest.raises(kind, match=text):
        call(x)


def test_out_sharding_places_results():
    mesh = ad.make_mesh((8,), ("x",))
    rows, columns = ad.NamedSharding(mesh, P("x")), ad.NamedSharding(mesh, P(None, "x"))
    x = ad.device_put(X, rows)
    with pytest.raises(ad.errors.ShardingTypeError):
        x.reshape(4, 8)  # devices would need elements of each other
    results = {
        "reshape": (x.reshape(4, 8, out_sharding=columns), X.reshape(4, 8), P(None, "x")),
        "spec": (x.reshape(4, 8, out_sharding=P(None, "x")), X.reshape(4, 8), P(None, "x")),
        "ravel": (x.ravel(out_sharding=rows), X.ravel(), P("x")),
        "repeat": (x.repeat(2, axis=0, out_sharding=P()), X.repeat(2, axis=0), P(None, None)),
        "at": (x.at[0].set(3, out_sharding=P()), np.vstack([X[:1] * 0 + 3, X[1:]]), P(None, None)),
        "get": (x.at[:].get(out_sharding=P()), X, P(None, None)),
    }
    for result, value, spec in results.values():
        np.testing.assert_array_equal(np.asarray(result), value)
        assert result.sharding == ad.NamedSharding(mesh, spec)
    with pytest.raises(TypeError, match="expected a NamedSharding"):
        x.reshape(32, out_sharding=ad.SingleDeviceSharding(ad.devices()[0]))


VIEWS = ["int32", "uint8", "int16", "float64", "complex64", "bfloat16", "float32"]


@pytest.mark.parametrize("dtype", VIEWS)
def test_a_view_has_the_bits(dtype):
    import ml_dtypes

    dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    for sharding in placements():
        if getattr(sharding, "uneven", None):
            continue
        x = ad.device_put(X, sharding)
        cut = isinstance(sharding, ad.NamedSharding) and len(sharding.spec) == 2
        if cut and np.dtype(dtype).itemsize > 4:
            with pytest.raises(ValueError, match="the bytes of a shard are not a multiple of the 8"):
                x.view(dtype)
            continue
        result = x.view(dtype)
        np.testing.assert_array_equal(np.asarray(result).view(np.uint8), X.view(np.uint8))
        assert (result.dtype, result.shape) == (np.dtype(dtype), X.view(dtype).shape)
        assert (result.sharding, result.committed) == (sharding, True)


def test_views_to_and_from_bool_and_without_dimensions():
    flags = ad.device_put(np.array([1, 0, 2], np.int8)).view(bool)
    assert np.asarray(flags).tobytes() == b"\1\0\1"
    assert np.asarray(ad.device_put(np.array([True, False])).view(np.int8)).tolist() == [1, 0]
    assert ad.device_put(np.float32(1)).view(np.int32).item() == 1065353216
    x = ad.device_put(X)
    assert x.view() is x
    assert x.view(np.float32) is x
    uneven = ad.NamedSharding(ad.Mesh(np.array(ad.devices()[:3]), ("z",)), P("z"), uneven="last-short")
    x = ad.device_put(np.arange(5, dtype=np.int16), uneven)  # 2, 2 and 1 elements
    assert np.asarray(x.view(np.int16)).tolist() == list(range(5))
    assert ad.device_put(np.arange(6, dtype=np.int32), uneven).view(np.int16).tolist()[:4] == [0, 0, 1, 0]
    with pytest.raises(ad.errors.ShardingTypeError, match="bytes of a shard"):
        ad.device_put(np.arange(4, dtype=np.int32), uneven).view(np.int16)  # 4, 4 and 0 are not the parts of 8


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda x: x[0, 0].view(np.int8), ValueError, "without dimensions keeps its item size"),
        (lambda x: x[:, :3].view(np.float64), ValueError, "the last dimension has 12 bytes"),
        (lambda x: x.view("S4"), TypeError, "S4"),
        (lambda x: x.view(np.int32, np.ndarray), NotImplementedError, "leave type out"),
    ],
)
def test_views_that_are_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call(ad.device_put(X))


def test_a_clone_is_another_array_of_the_same_memory():
    for sharding in placements():
        x = ad.device_put(X, sharding)
        other = x.clone()
        assert other is not x
        assert (other.sharding, other.committed) == (sharding, True)
        assert other.addressable_data(0).unsafe_buffer_pointer() == x.addressable_data(0).unsafe_buffer_pointer()
        x.delete()
        np.testing.assert_array_equal(np.asarray(other), X)
    assert not ad.device_put(X).clone().committed
    with pytest.raises(RuntimeError, match="clone"):
        x.clone()


def test_an_update_of_no_elements_raises_no_error_of_a_value(named):
    value = np.arange(32).reshape(8, 4)
    x = ad.device_put(value, named("x", "y"))
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        x.at[0:1].power(-1)
    assert np.array_equal(x.at[0:0].power(-1), value)
    with pytest.raises(
        TypeError, match="the result is of dtype float64; expected a dtype that converts to the int64 of"
    ):
        x.at[0:0].divide(2)


BOOLS = [True, False, np.bool_(True), np.bool_(False), np.array(True), np.array(False)]
ZERO_D_INDICES = [
    *BOOLS, (), ..., None, (None, True), (True, None), (True, True), (True, False), (..., True), (False, ...),
    (None, None), (..., None), (np.array(True), None, False),
]  # fmt: skip
BOOL_INDICES = [
    *BOOLS, (True, slice(1, 3)), (slice(None), True), (0, True), (True, -1), ([0, 1, 0], True), (False, [0]),
    (1, None, True), (np.array(True), np.array([2, 0])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "value", "indices"),
    [
        *((method, np.float32(3), ZERO_D_INDICES) for method in METHODS),
        *((method, np.int16(3), ZERO_D_INDICES) for method in METHODS if method != "divide"),
        *((method, X[:, 0] + 1, BOOL_INDICES) for method in METHODS),
    ],
)
def test_bool_scalars_and_numbers_without_dimensions(method, value, indices):
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    placed = [ad.device_put(value), ad.device_put(value, ad.NamedSharding(mesh, P(*("x",) * value.ndim)))]
    ufunc = METHODS[method]
    for index in indices:
        whole = np.array(value)
        if ufunc is None:
            whole[index] = 2
        else:
            ufunc.at(whole, index, value.dtype.type(2))
        own = ad.device_put(index) if type(index) is np.ndarray else index
        for x in placed:
            for two in (2, value.dtype.type(2), np.full((), 2, value.dtype), ad.device_put(value.dtype.type(2))):
                result = getattr(x.at[own], method)(two)
                assert (result.shape, result.dtype, result.sharding) == (x.shape, x.dtype, x.sharding)
                np.testing.assert_allclose(np.asarray(result), whole, rtol=1e-6 if method == "power" else 0)
            np.testing.assert_array_equal(np.asarray(x.at[own].get()), value[index])


@pytest.mark.parametrize("method", ["add", "subtract", "multiply", "divide", "min", "max"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
def test_a_python_number_is_applied_in_the_dtype_of_the_array(method, dtype):
    rows = np.arange(8)
    start = (np.arange(1, 33) / 7).reshape(8, 4).astype(dtype)
    x = ad.device_put(start)
    for number in (0.1, 1 / 3, 3):
        expected = METHODS[method](start, number)
        assert expected.dtype == dtype
        np.testing.assert_array_equal(np.asarray(getattr(x.at[rows], method)(number)), expected)
        np.testing.assert_array_equal(np.asarray(getattr(x.at[:], method)(number)), expected)
