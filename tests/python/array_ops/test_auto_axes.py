# SPDX-License-Identifier: Apache-2.0
"""NumPy functions that cannot use the sharding of their operands: over Auto axes the operands move."""

from __future__ import annotations

import collections
import inspect
import warnings

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import array_api
from artifex_devices.errors import ShardingTypeError
from artifex_devices.sharding import AxisType, NamedSharding, P
from artifex_devices.testing import run_processes

V = np.random.default_rng(0).normal(size=(8, 8)) + 8 * np.eye(8)


@pytest.fixture(scope="module")
def grid():
    with ad.simulate(8):
        yield ad.Mesh(np.array(ad.devices()).reshape(4, 2), ("x", "y"))


@pytest.fixture
def x(grid):
    return ad.device_put(V, NamedSharding(grid, P("x", "y")))


MOVES = {
    "reshape": lambda np, x: np.reshape(x, (-1,)),
    "sort": lambda np, x: np.sort(x, axis=0),
    "argsort": lambda np, x: np.argsort(x, axis=0),
    "diff": lambda np, x: np.diff(x, axis=0),
    "take_along_axis": lambda np, x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0),
    "median": lambda np, x: np.median(x, axis=0),
    "inv": lambda np, x: np.linalg.inv(x),
    "qr": lambda np, x: np.linalg.qr(x).R,
    "fftn": lambda np, x: np.fft.fftn(x),
    "pad": lambda np, x: np.pad(x, 1),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("namespace", [np, array_api])
def test_operands_are_replicated_with_a_warning_and_refused_over_explicit_axes(name, namespace, x, grid):
    call = MOVES[name]
    with pytest.warns(UserWarning, match=": 512 bytes are replicated on each device, because .* sharded") as caught:
        found = call(namespace, x)
    assert {warning.filename for warning in caught} == {__file__}
    assert found.sharding == NamedSharding(grid, P())
    assert found.committed
    np.testing.assert_allclose(np.asarray(found), call(np, V), rtol=1e-10, atol=1e-10)
    explicit = ad.Mesh(grid.devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    with pytest.raises(ShardingTypeError):
        call(namespace, ad.device_put(V, NamedSharding(explicit, P("x", "y"))))


def test_functions_without_an_implementation_run_on_the_host_and_their_arrays_are_placed(x, grid):
    with pytest.warns(UserWarning, match=r"^histogram: 512 bytes are replicated on each device, because this NumPy f"):
        counts, edges = np.histogram(x, bins=4)
    for found, expected in zip((counts, edges), np.histogram(V, bins=4), strict=True):
        assert isinstance(found, ad.Array)
        assert found.sharding == NamedSharding(grid, P())
        np.testing.assert_array_equal(np.asarray(found), expected)
    with pytest.warns(UserWarning, match="multiply.reduceat: 512 bytes"):
        found = np.multiply.reduceat(x, [0, 3])
    np.testing.assert_array_equal(np.asarray(found), np.multiply.reduceat(V, [0, 3]))
    explicit = ad.Mesh(grid.devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    with pytest.raises(TypeError, match=r"gather first: np\.histogram\(np\.asarray\(x\)\)"):
        np.histogram(ad.device_put(V, NamedSharding(explicit, P("x"))))


def test_what_is_replicated_or_on_one_device_runs_without_a_warning(grid):
    for placement in (NamedSharding(grid, P()), ad.devices()[1]):
        x = ad.device_put(V, placement)
        found = np.trim_zeros(np.interp(x, [0.0, 9.0], [0.0, 18.0])[0])
        assert found.sharding == x.sharding
        np.testing.assert_array_equal(np.asarray(found), np.trim_zeros(np.interp(V, [0.0, 9.0], [0.0, 18.0])[0]))


def test_the_warning_is_shown_once_for_each_call_site(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            np.sort(x, axis=0)
        np.sort(x, axis=0)
    assert len(caught) == 2


def test_the_setting_allows_moves_or_makes_them_errors(x, no_moves):
    with pytest.raises(ShardingTypeError, match=r"^sort: a dimension that it works along is sharded"):
        np.sort(x, axis=0)
    with pytest.raises(TypeError, match=r"^histogram: this NumPy function does not support Arrays"):
        np.histogram(x)
    ad.config.update("auto_axes_moves", "allow")
    np.testing.assert_array_equal(np.asarray(np.sort(x, axis=0)), np.sort(V, axis=0))
    with pytest.raises(ValueError, match="auto_axes_moves"):
        ad.config.update("auto_axes_moves", "silent")


@pytest.mark.filterwarnings("ignore:sort")
def test_guards_and_records_see_the_moves(x):
    with ad.transfers.record() as moves:
        np.sort(x, axis=0)
    assert moves.bytes("device-to-device") > 0
    with ad.transfer_guard_device_to_device("disallow"), pytest.raises(Exception, match="disallow"):
        np.sort(x, axis=0)


def test_arrays_that_do_not_fit_on_each_device_are_the_error_without_the_move():
    with ad.simulate(4, bytes_limit=1 << 20):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        big = ad.device_put(np.zeros((512, 512)), NamedSharding(mesh, P("x")))
        with pytest.raises(ShardingTypeError, match="move it first") as caught:
            np.sort(big, axis=0)
        assert isinstance(caught.value.__cause__, ad.errors.ResourceExhaustedError)


def test_arrays_in_a_container_that_numpy_only_iterates_are_the_error_with_the_repair(x):
    with pytest.raises(TypeError, match=r"^linalg\.multi_dot: this NumPy function does not support Arrays"):
        np.linalg.multi_dot(collections.deque([x, x, x]))


def test_a_view_that_is_required_is_not_moved(x):
    with pytest.raises(ShardingTypeError):
        np.reshape(x, (64,), copy=False)


ARGUMENTS = {
    "allclose": "x, x", "append": "x, x", "apply_along_axis": "np.sum, 0, x", "apply_over_axes": "np.sum, x, [0]",
    "array_equal": "x, x", "array_equiv": "x, x", "array_split": "x, 3", "average": "x, 0", "bincount": "k",
    "block": "[x, x]", "broadcast_arrays": "x, x", "broadcast_to": "x, (2, 8, 8)", "can_cast": "x.dtype, float",
    "choose": "b.astype(int), [x, x]", "clip": "x, 0, 1", "column_stack": "[x, x]", "common_type": "x",
    "compress": "[True, False], x, 0", "concat": "[x, x]", "concatenate": "[x, x]", "convolve": "k, k",
    "copyto": "np.ones((8, 8)), x", "correlate": "k, k", "cross": "x[:, :3], x[:, :3]", "delete": "x, 1, 0",
    "diag_indices_from": "x", "digitize": "x, [0.0, 1.0]", "dot": "x, x", "dsplit": "x.reshape(4, 2, 8), 2",
    "dstack": "[x, x]", "einsum": "'ij,jk', x, x", "einsum_path": "'ij,jk', x, x", "expand_dims": "x, 0",
    "extract": "b, x", "flip": "x", "full_like": "x, 3", "geomspace": "abs(x) + 1, 9", "gradient": "x",
    "histogram2d": "x[0], x[1]", "histogramdd": "x[:, :2]", "hsplit": "x, 2", "hstack": "[x, x]", "inner": "x, x",
    "insert": "x, 1, 0", "interp": "x, [0.0, 1.0], [0.0, 1.0]", "intersect1d": "x, x", "isclose": "x, x",
    "isin": "x, x", "kron": "x, x", "lexsort": "(x[0], x[1])", "linspace": "x, 9", "logspace": "x, 2",
    "moveaxis": "x, 0, 1", "nanpercentile": "x, 30, 0", "nanquantile": "x, 0.3, 0", "outer": "x, x", "packbits": "b",
    "pad": "x, 1", "partition": "x, 2, 0", "argpartition": "x, 2, 0", "percentile": "x, 30, 0",
    "piecewise": "x, [x > 0], [1, 2]", "polyadd": "x[0], x[1]", "polydiv": "x[0], x[1]", "polyfit": "x[0], x[1], 2",
    "polymul": "x[0], x[1]", "polysub": "x[0], x[1]", "polyval": "x[0], x", "quantile": "x, 0.3, 0",
    "ravel_multi_index": "(k, k), (99, 99)", "repeat": "x, 2", "reshape": "x, (4, 16)", "resize": "x, (3, 3)",
    "roll": "x, 3", "rollaxis": "x, 1", "searchsorted": "np.sort(x[0]), x", "select": "[x > 0], [x]",
    "setdiff1d": "x, x[0]", "setxor1d": "x, x[0]", "sort_complex": "x", "split": "x, 2", "stack": "[x, x]",
    "swapaxes": "x, 0, 1", "take": "x, [0, 1], 0", "take_along_axis": "x, np.argsort(x, 0), 0", "tensordot": "x, x",
    "tile": "x, 2", "trim_zeros": "x[0]", "union1d": "x, x", "unpackbits": "b.view('u1')",
    "unravel_index": "k, (99, 99)",
    "vander": "x[0]", "vdot": "x, x", "vsplit": "x, 2", "vstack": "[x, x]", "where": "b, x, x",
    "roots": "x[0]", "polyder": "x[0]", "polyint": "x[0]", "real_if_close": "x", "require": "x", "astype": "x, 'f4'",
    "put_along_axis": "np.ones((8, 8)), np.argsort(x, 0), 1.0, 0", "put": "np.ones(64), k, 1.0",
    "place": "np.ones((8, 8)), b, [1.0]", "putmask": "np.ones((8, 8)), b, 1.0", "squeeze": "x[None]",
    "linalg.cholesky": "x @ x.T", "linalg.cross": "x[:, :3], x[:, :3]", "linalg.eigh": "x + x.T",
    "linalg.eigvalsh": "x + x.T", "linalg.lstsq": "x, x", "linalg.matmul": "x, x", "linalg.matrix_power": "x, 3",
    "linalg.multi_dot": "[x, x, x]", "linalg.outer": "x[0], x[1]", "linalg.solve": "x, x", "linalg.tensordot": "x, x",
    "linalg.tensorinv": "x.reshape(4, 2, 4, 2)", "linalg.tensorsolve": "x, x[0]", "linalg.vecdot": "x, x",
    "linalg.eig": "x + x.T", "linalg.eigvals": "x + x.T", "fft.irfft": "x", "fft.hfft": "x",
    "may_share_memory": "x, x", "shares_memory": "x, x", "matmul": "x, x", "vecdot": "x, x", "matvec": "x, x[0]",
    "vecmat": "x[0], x", "unstack": "x", "result_type": "x, x", "ix_": "k", "cumulative_sum": "x, axis=0",
    "cumulative_prod": "x, axis=0",
}  # fmt: skip
INTEGERS = {"gcd", "lcm", "invert", "bitwise_not", "bitwise_invert", "bitwise_and", "bitwise_or", "bitwise_xor",
            "left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift", "bitwise_count",
            "ldexp"}  # fmt: skip
OTHER = {  # functions of files, dates and texts, and of undefined values
    "empty_like", "busday_count", "busday_offset", "is_busday", "datetime_as_string", "isnat", "save", "savetxt",
    "savez",
    "savez_compressed", "array2string", "array_repr", "array_str", "fill_diagonal", "iscomplexobj", "isrealobj",
}  # fmt: skip


def public_functions():
    """Yields the public functions on arrays of numpy, numpy.linalg and numpy.fft: full name and function."""
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name in module.__all__:
            function = getattr(module, name)
            if (isinstance(function, np.ufunc) or hasattr(function, "_implementation")) and name not in OTHER:
                yield f"{prefix}{name}", function


def call_text(name, function):
    if name in ARGUMENTS:
        return f"np.{name}({ARGUMENTS[name]})"
    if isinstance(function, np.ufunc):
        operand = "k" if name in INTEGERS else "x"
        return f"np.{name}({', '.join([operand] * function.nin)})"
    required = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return f"np.{name}({', '.join(['x'] * max(1, len(required)))})"


def check_equal(found, expected):
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, two in zip(found, expected, strict=True):
            check_equal(one, two)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert isinstance(found, ad.Array)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-8, atol=1e-8)


def test_numpys_public_functions_work_over_auto_axes(grid):
    """The call of each is in ARGUMENTS, or has the array for each required argument."""
    host = {"x": V, "k": np.arange(8) % 3, "b": V > 0}
    placed = {
        name: ad.device_put(value, NamedSharding(grid, P(*("x", "y")[: value.ndim]))) for name, value in host.items()
    }
    failed, count = [], 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, function in public_functions():
            text = call_text(name, function)
            expected = eval(text, {"np": np, **host})
            count += 1
            try:
                check_equal(eval(text, {"np": np, **placed}), expected)
            except Exception as error:
                failed.append(f"{text}: {type(error).__name__}: {error}"[:200])
    assert count > 300
    assert not failed, "\n".join(failed)


def test_all_processes_of_a_job_move_alike():
    def program():
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        x = ad.make_array_from_callback((8, 8), NamedSharding(mesh, P("x")), V.__getitem__)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(np.sort(x, axis=0)), np.asarray(np.histogram(x, bins=4)[0])

    for ordered, counts in run_processes(program, processes=2).results:
        np.testing.assert_array_equal(ordered, np.sort(V, axis=0))
        np.testing.assert_array_equal(counts, np.histogram(V, bins=4)[0])
