# SPDX-License-Identifier: Apache-2.0
"""NumPy's calls that write to an argument: refused for an Array, with code that gives the values of the call."""

import artifex_devices as ad
import numpy as np
import pytest

X = np.arange(16.0).reshape(4, 4)
H = np.array([[5.0, 1.0, 9.0, 0.0]] * 4)

# The call, where x is an Array and y and z are what the message calls the other arrays; then y and z.
ON_A_COPY = [
    ("np.put(x, [0, 1], 5.0)",),
    ("np.put(a=x, ind=[3, 3], v=[1.0, 2.0], mode='clip')",),
    ("np.place(x, y, [1.0, 2.0])", X > 3),
    ("np.putmask(x, y, z)", X > 3, H),
    ("np.put_along_axis(x, y, 7.0, axis=1)", np.array([[0], [1], [0], [2]])),
    ("np.fill_diagonal(x, 0.0)",),
    ("np.fill_diagonal(x, float('nan'), wrap=True)",),
    ("np.copyto(x, y)", H),
    ("np.copyto(x, 1.0, where=y)", X > 3),
    ("np.copyto(dst=x, src=y)", H),
    ("np.negative.at(x, [0])",),
    ("np.logical_and.at(x, (0, [1, 2]), True)",),
    ("np.remainder.at(x, ([0, 0], [1, 2]), 2.0)",),
]
UPDATES = [
    ("np.add.at(x, [0, 0, 1], 1.0)",),
    ("np.subtract.at(x, ([0, 1], [1, 1]), 1.5)",),
    ("np.multiply.at(x, y, 2.0)", X > 3),
    ("np.divide.at(x, (0, slice(None, None, 2)), 4)",),
    ("np.power.at(x, slice(1), 2)",),
    ("np.minimum.at(x, ..., y)", H),
    ("np.maximum.at(x, y, z)", np.array([0, 2]), H[:2]),
]
# out= with x, whose values are those of the result.
RESULTS = [
    ("np.add(x, 1, out=x)",),
    ("np.add(x, 1, x)",),
    ("np.add(x, y, out=x, where=z)", H, X > 3),
    ("np.clip(x, 2, 5, out=x)",),
    ("np.cumsum(x, axis=0, out=x)",),
    ("np.matmul(x, x, out=x)",),
    ("np.dot(x, x, out=x)",),
    ("np.take(x, [3, 2, 1, 0], axis=0, out=x)",),
    ("np.round(x, -1, out=x)",),
    ("np.add.accumulate(x, axis=1, out=x)",),
    ("np.compress([True, True, True, True], x, axis=0, out=x)",),
    ("np.linalg.multi_dot([x, x, x], out=x)",),
]
# out= with y, an Array that is not an operand.
RESULTS_OF_HOST_ARRAYS = [
    "np.exp(x, out=y)",
    "np.add.accumulate(x, axis=1, out=y)",
    "np.linalg.multi_dot([x, x], out=y)",
]


@pytest.fixture
def x():
    with ad.simulate(4):
        mesh = ad.make_mesh((4,), ("x",), (ad.AxisType.Auto,))
        yield ad.device_put(X, ad.NamedSharding(mesh, ad.P("x")))


def advice(call, names, start):
    """The code after `start` in the message of a refused call."""
    before = {name: np.array(value) for name, value in names.items() if name in "xyz"}
    with pytest.raises(TypeError) as caught:
        eval(call, names)
    for name, value in before.items():
        np.testing.assert_array_equal(np.asarray(names[name]), value)
    return str(caught.value).partition(start)[2]


def changed(call, others, x, start):
    """The Array x after the code of the message, and what NumPy makes of an ndarray."""
    others = dict(zip("yz", others, strict=False))
    names = {"ad": ad, "np": np, "x": x, **others}
    exec(advice(call, names, start), names)
    host = {"np": np, "x": X.copy(), **others}
    eval(call, host)
    return names["x"], host["x"]


@pytest.mark.parametrize(("call", "others"), [(call, others) for call, *others in ON_A_COPY + UPDATES])
def test_the_advice_changes_a_copy_as_numpy_would(call, others, x):
    result, expected = changed(
        call,
        others,
        x,
        "not supported on Arrays, which are immutable; expected an ndarray, got an Array; change a copy: ",
    )
    np.testing.assert_array_equal(np.asarray(result), expected)
    assert (type(result), result.sharding) == (ad.Array, x.sharding)


@pytest.mark.parametrize(("call", "others"), [(call, others) for call, *others in UPDATES])
def test_an_update_by_a_ufunc_of_x_at_stays_on_the_devices(call, others, x):
    names = {"ad": ad, "np": np, "x": x, **dict(zip("yz", others, strict=False))}
    assert advice(call, names, "change a copy: ").startswith("x = x.at[")


@pytest.mark.parametrize(("call", "others"), [(call, others) for call, *others in RESULTS])
def test_the_advice_for_out_has_the_values_of_the_call(call, others, x):
    result, expected = changed(call, others, x, "got an Array; use the result: ")
    np.testing.assert_array_equal(np.asarray(result), expected)
    assert type(result) is ad.Array


@pytest.mark.parametrize("call", RESULTS_OF_HOST_ARRAYS)
def test_the_result_of_host_arrays_is_placed_like_out(call, x):
    names = {"ad": ad, "np": np, "x": H, "y": x}
    exec(advice(call, names, "got an Array; use the result: "), names)
    expected = eval(call.partition(", out")[0] + ")", {"np": np, "x": H})
    np.testing.assert_array_equal(np.asarray(names["y"]), expected)
    assert names["y"].sharding == x.sharding


def test_several_results_are_assigned_together(x):
    names = {"ad": ad, "np": np, "x": x, "y": x + 1}
    exec(advice("np.divmod(x, 3, out=(x, y))", names, "use the result: "), names)
    np.testing.assert_array_equal(np.asarray(names["x"]), X // 3)
    np.testing.assert_array_equal(np.asarray(names["y"]), X % 3)


@pytest.mark.usefixtures("no_moves")
@pytest.mark.parametrize(
    ("call", "gathered"),
    [
        ("np.copyto(x, y)", "np.copyto(x, np.asarray(y))"),
        ("np.add.at(x, [0, 0, 1, 2], y)", "np.add.at(x, [0, 0, 1, 2], np.asarray(y))"),
        ("np.put(x, [0], y)", "np.put(x, [0], np.asarray(y))"),
    ],
)
def test_an_ndarray_is_written_after_the_other_arrays_are_gathered(call, gathered, x):
    names = {"ad": ad, "np": np, "x": H.copy(), "y": x}
    assert advice(call, names, "gather first: ") == gathered
    eval(gathered, names)
    host = {"np": np, "x": H.copy(), "y": X}
    eval(call, host)
    np.testing.assert_array_equal(names["x"], host["x"])


def test_elements_are_assigned_by_at_and_deleted_on_the_host(x):
    names = {"ad": ad, "np": np, "x": x, "i": 1, "v": 9.0}
    with pytest.raises(TypeError, match="cannot be assigned") as caught:
        x[1] = 9.0
    exec(str(caught.value).partition("; write ")[2].partition(", or change a copy")[0], names)
    expected = X.copy()
    expected[1] = 9.0
    np.testing.assert_array_equal(np.asarray(names["x"]), expected)
    with pytest.raises(TypeError, match="cannot be deleted") as caught:
        del x[1]
    exec(str(caught.value).partition("leave them out: ")[2], names)
    np.testing.assert_array_equal(np.asarray(names["x"]), np.delete(expected, 1, axis=0))
