# SPDX-License-Identifier: Apache-2.0
"""NumPy functions that cannot use the sharding of their operands: over Auto axes the operands move."""

from __future__ import annotations

import collections
import inspect
import re
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


# By function: a call, the spec of x, the spec of the result, and the bytes of the moved operands on each device.
# x has shape (8, 8), and m, a stack of matrices, shape (4, 8, 8); mesh axis "x" has size 4 and "y" size 2.
ALONG_DIMENSION_0 = {
    "sort": lambda np, x: np.sort(x, axis=0),
    "argsort": lambda np, x: np.argsort(x, axis=0),
    "diff": lambda np, x: np.diff(x, axis=0),
    "cumulative_sum": lambda np, x: np.cumulative_sum(x, axis=0, include_initial=True),
    "partition": lambda np, x: np.partition(x, 3, axis=0)[3:4],
    "argpartition": lambda np, x: np.argpartition(x, 3, axis=0)[3:4],
    "fft": lambda np, x: np.fft.fft(x, axis=0),
    "rfft": lambda np, x: np.fft.rfft(x, axis=0),
    "gradient": lambda np, x: np.gradient(x, 0.5, axis=0, edge_order=2),
    "pad": lambda np, x: np.pad(x, ((1, 2), (0, 0))),
    "tile": lambda np, x: np.tile(x, (2, 1)),
    "median": lambda np, x: np.median(x, axis=0, keepdims=True),
    "nanmedian": lambda np, x: np.nanmedian(x, axis=0, keepdims=True),
    "quantile": lambda np, x: np.quantile(x, 0.3, axis=0, keepdims=True),
    "nanquantile": lambda np, x: np.nanquantile(x, 0.3, axis=0, keepdims=True),
    "percentile": lambda np, x: np.percentile(x, 30, axis=0, keepdims=True),
    "nanpercentile": lambda np, x: np.nanpercentile(x, 30, axis=0, keepdims=True),
    "trapezoid": lambda np, x: np.trapezoid(x, axis=0)[None],
    "subtract.reduce": lambda np, x: np.subtract.reduce(x, axis=0, keepdims=True),
    "subtract.accumulate": lambda np, x: np.subtract.accumulate(x, axis=0),
}
MATRICES = {
    "inv": lambda np, m: np.linalg.inv(m),
    "pinv": lambda np, m: np.linalg.pinv(m),
    "matrix_power": lambda np, m: np.linalg.matrix_power(m, 3),
    "solve": lambda np, m: np.linalg.solve(m, np.ones(8)),
    "det": lambda np, m: np.linalg.det(m),
    "slogdet": lambda np, m: np.linalg.slogdet(m).logabsdet,
    "qr": lambda np, m: np.linalg.qr(m).R,
    "svd": lambda np, m: np.linalg.svd(m).S,
    "svdvals": lambda np, m: np.linalg.svdvals(m),
    "cholesky": lambda np, m: np.linalg.cholesky(m),
    "eigh": lambda np, m: np.linalg.eigh(m).eigenvalues,
    "eigvalsh": lambda np, m: np.linalg.eigvalsh(m),
    "matrix_rank": lambda np, m: np.linalg.matrix_rank(m),
    "norm": lambda np, m: np.linalg.matrix_norm(m, ord=2),
    "fft2": lambda np, m: np.fft.fft2(m),
}
FLAT = {
    "reshape": lambda np, x: np.reshape(x, (-1,)),
    "ravel": lambda np, x: np.ravel(x),
    "cumsum": lambda np, x: np.cumsum(x),
    "nancumprod": lambda np, x: np.nancumprod(x),
    "repeat": lambda np, x: np.repeat(x, 2),
    "append": lambda np, x: np.append(x, np.ones(8)),
    "delete": lambda np, x: np.delete(x, slice(0, 8)),
    "insert": lambda np, x: np.insert(x, [1, 5, 5, 9], 1.0),
}
MOVES = {
    **{f"{name} of x and y": (call, P("x", "y"), P(None, "y"), 256) for name, call in ALONG_DIMENSION_0.items()},
    **{f"{name} of x": (call, P("x"), P(None, "x"), 128) for name, call in ALONG_DIMENSION_0.items()},
    **{f"{name} of y": (call, P(None, "x", "y"), P("x"), 512) for name, call in MATRICES.items()},
    **{f"{name} of a stack": (call, P("x", "y"), P("x"), 512) for name, call in MATRICES.items()},
    **{f"{name} of all": (call, P(None, ("x", "y")), P(), 2048) for name, call in MATRICES.items()},
    **{f"{name}, flat": (call, P("x", "y"), P("x"), 128) for name, call in FLAT.items()},
    "reshape, a group": (lambda np, m: np.reshape(m, (4, 64)), P("y", "x", None), P("y", "x"), 0),
    "reshape, two groups": (lambda np, m: np.reshape(m, (2, 2, 64)), P("y", None, "x"), P("y"), 1024),
    "roll": (lambda np, x: np.roll(x, 3), P("x", "y"), P("x"), 128),
    "sort, flat": (lambda np, x: np.sort(x, axis=None), P("x", "y"), P(), 512),
    "median, flat": (lambda np, x: np.median(x), P("x", "y"), P(), 512),
    "fftn": (lambda np, x: np.fft.fftn(x), P("x", "y"), P(), 512),
    "fftn, s": (lambda np, m: np.fft.fftn(m, s=(8, 4), axes=(1, 2)), P("x", "y"), P("x"), 512),
    "pad, both": (lambda np, x: np.pad(x, 1), P("x", "y"), P(), 512),
    "trace": (lambda np, m: np.trace(m, 1, 1, 2), P("x", "y"), P("x"), 512),
    "diagonal": (lambda np, m: np.diagonal(m, 1, 1, 2), P("x", "y"), P("x"), 512),
    "take_along_axis": (
        lambda np, x: np.take_along_axis(x, (x > 0).astype(int), axis=0), P("x", "y"), P(None, "y"), 512,
    ),
    "diff, both ends": (
        lambda np, x: np.diff(x, axis=0, prepend=x[:4], append=x[4:]), P("x", "y"), P(None, "y"), 512,
    ),
    "solve, two operands": (lambda np, m: np.linalg.solve(m, m[:, :, :2]), P("x", "y"), P("x"), 512 + 128),
    "searchsorted": (lambda np, x: np.searchsorted(np.sort(x[0]), x), P("x"), P("x"), 0),
    "gradient, both": (lambda np, x: np.stack(np.gradient(x)), P("x", "y"), P(None, "x", "y"), 256 + 128),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("namespace", [np, array_api])
def test_only_the_dimensions_that_must_be_whole_move(name, namespace, grid):
    call, spec, result_spec, nbytes = MOVES[name]
    is_stack = "m" in inspect.signature(call).parameters
    host = np.stack([V @ V.T] * 4) + np.arange(4)[:, None, None] if is_stack else V
    x = ad.device_put(host, NamedSharding(grid, spec))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call(namespace, x)
    texts = [str(warning.message) for warning in caught]
    if nbytes:
        verb = "replicated" if result_spec == P() else "gathered"
        assert [text.split(", because")[0] for text in texts] == [
            f"{texts[0].split(':')[0]}: {nbytes} bytes are {verb} on each device"
        ]
        assert caught[0].filename == __file__
    else:
        assert texts == []
    assert found.sharding == NamedSharding(grid, result_spec)
    assert found.committed
    np.testing.assert_allclose(np.asarray(found), call(np, host), rtol=1e-9, atol=1e-9)
    explicit = ad.Mesh(grid.devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    if nbytes:
        with pytest.raises(ShardingTypeError):
            call(namespace, ad.device_put(host, NamedSharding(explicit, spec)))


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


@pytest.mark.thread_unsafe(reason="it changes an option of the process")
def test_the_setting_allows_moves_or_makes_them_errors(x, no_moves):
    with pytest.raises(ShardingTypeError, match=r"^sort: a dimension that it works along is sharded"):
        np.sort(x, axis=0)
    with pytest.raises(TypeError, match=r"^histogram: this NumPy function does not support Arrays"):
        np.histogram(x)
    ad.config.update("auto_axes_moves", "allow")
    np.testing.assert_array_equal(np.asarray(np.sort(x, axis=0)), np.sort(V, axis=0))
    with pytest.raises(ValueError, match="auto_axes_moves"):
        ad.config.update("auto_axes_moves", "silent")


@pytest.mark.parametrize(("spec", "target"), [(P("x"), "ad.P(None, 'x')"), (P("x", "y"), "ad.P(None, 'y')")])
def test_the_text_names_the_sharding_that_the_move_gives(spec, target, grid, no_moves):
    with pytest.raises(ShardingTypeError, match=re.escape(f"NamedSharding(x.sharding.mesh, {target}))")):
        np.sort(ad.device_put(V, NamedSharding(grid, spec)), axis=0)


@pytest.mark.filterwarnings("ignore:sort")
def test_guards_and_records_see_the_moves(x):
    with ad.transfers.record() as moves:
        np.sort(x, axis=0)
    assert moves.bytes("device-to-device") == 512  # two tiles, which replicas on one arena share
    with ad.transfer_guard_device_to_device("disallow"), pytest.raises(Exception, match="disallow"):
        np.sort(x, axis=0)


def test_arrays_that_do_not_fit_on_each_device_are_the_error_without_the_move():
    with ad.simulate(4, bytes_limit=1 << 20):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        big = ad.device_put(np.zeros((256, 512)), NamedSharding(mesh, P("x")))
        with pytest.warns(UserWarning, match="262144 bytes are gathered"):
            assert np.sort(big, axis=0).sharding == NamedSharding(mesh, P(None, "x"))
        with pytest.raises(ShardingTypeError, match="move it first") as caught:
            np.median(big)
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


PROCESSES = {  # in each call, x is sharded over a mesh axis that spans the processes
    "exchanged": (lambda x: np.sort(x, axis=0), P(None, "x")),
    "whole": (lambda x: np.sort(x, axis=1), P("x")),
    "not associative": (lambda x: np.subtract.accumulate(x, axis=0), P(None, "x")),
    "reduced": (lambda x: np.subtract.reduce(x, axis=0), P("x")),
    "replicated": (lambda x: np.linalg.inv(x), P()),
    "on the host": (lambda x: np.histogram(x, bins=4)[0], P()),
    "deleted": (lambda x: np.delete(x, 1, axis=0), P()),
    "inserted": (lambda x: np.insert(x, 1, V[:1], axis=0), P()),
    "interpolated": (lambda x: np.interp(x, [0.0, 9.0], [0.0, 18.0]), P("x")),
    "two gradients": (lambda x: np.gradient(x)[0], P(None, "x")),
    "read by elements": (lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0), P()),
    "off the diagonal": (lambda x: np.diagonal(np.expand_dims(x, 0), 1, 0, 2), P()),
}


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.filterwarnings("ignore:.*on each device")
def test_all_processes_of_a_job_move_alike(name):
    call, spec = PROCESSES[name]
    expected = call(V)

    def program():
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        found = call(ad.make_array_from_callback((8, 8), NamedSharding(mesh, P("x")), V.__getitem__))
        assert found.sharding == NamedSharding(mesh, spec)
        for shard in found.addressable_shards:
            np.testing.assert_allclose(np.asarray(shard.data), expected[shard.index], rtol=1e-12)

    run_processes(program, processes=2)


@pytest.mark.parametrize("name", FLAT)
def test_flattened_arrays_that_span_processes_are_replicated(name):
    def program():
        mesh = ad.Mesh(np.array(ad.devices()).reshape(2, 2), ("x", "y"))
        x = ad.make_array_from_callback((8, 8), NamedSharding(mesh, P("x", "y")), V.__getitem__)
        with pytest.warns(UserWarning, match="^[a-z]+: 512 bytes are replicated"):
            return np.asarray(FLAT[name](np, x))

    for found in run_processes(program, processes=2).results:
        np.testing.assert_allclose(found, FLAT[name](np, V), rtol=1e-12)


def test_what_no_element_needs_from_other_shards_moves_nothing(x, grid):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "numpy.fix is deprecated")  # since NumPy 2.5
        for call in (
            lambda x: np.interp(x, [-1.0, 9.0], [0.0, 5.0]),
            lambda x: np.digitize(x, [-1.0, 0.0, 8.0]),
            lambda x: np.isin(x, V[0]),
            lambda x: np.isin(x, V[0], invert=True),
            np.sinc, np.i0, np.fix,
        ):  # fmt: skip
            found = call(x)
            assert found.sharding == x.sharding
            check_equal(found, call(V))


ROWS = np.arange(16.0).reshape(2, 8)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: np.delete(x, 3, 0),
        lambda x, y: np.delete(x, [-1, 0, 0, 3, 4, 5], 1),
        lambda x, y: np.delete(x, slice(None, None, -2), 1),
        lambda x, y: np.delete(x, np.arange(8) > 3, 0),
        lambda x, y: np.delete(x, [], 0),
        lambda x, y: np.insert(x, 2, y[0], 0),
        lambda x, y: np.insert(x, 2, y[0], 1),
        lambda x, y: np.insert(x, [2], y.T, 1),
        lambda x, y: np.insert(x, [2], y, 0),
        lambda x, y: np.insert(x, [-1, 2], y, 0),
        lambda x, y: np.insert(x, slice(0, 8, 4), y, 0),
        lambda x, y: np.insert(x, np.arange(8) % 4 == 1, 7, 1),
        lambda x, y: np.insert(x, [], np.ones((8, 0)), 1),
        lambda x, y: np.insert(x.astype(int), 1, 2.7, -1),
    ],
)
def test_delete_and_insert_keep_the_shardings_that_divide_the_new_size(call, grid):
    x = ad.device_put(V, NamedSharding(grid, P("x", "y")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in (ROWS, ad.device_put(ROWS, NamedSharding(grid, P("y")))):
            found = call(x, y)
            check_equal(found, call(V, ROWS))
            rows, columns = (size % grid.shape[name] == 0 for size, name in zip(found.shape, ("x", "y"), strict=True))
            spec = P("x" if rows else None, "y") if columns else P("x") if rows else P()
            assert found.sharding == NamedSharding(grid, spec)
    with pytest.raises(IndexError, match="out of bounds"):
        np.delete(x, 8, 0)
    with pytest.raises(IndexError, match="out of bounds"):
        np.insert(x, 9, 0, 0)
