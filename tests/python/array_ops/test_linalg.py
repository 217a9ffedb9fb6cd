# SPDX-License-Identifier: Apache-2.0
"""numpy.linalg on stacks of matrices: NumPy's values, and results that are sharded as the stack."""

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.errors import ShardingTypeError
from artifex_devices.testing import assert_same_bits
from numpy_oracle import outcome

pytestmark = pytest.mark.usefixtures("each_way")


def matrices(*shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    value = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        value = value + 1j * rng.normal(size=shape)
    return value.astype(dtype)


def positive(*stack, n=3, dtype=np.float64):
    root = matrices(*stack, n, n, dtype=dtype)
    return (root @ root.conj().swapaxes(-1, -2) + np.eye(n)).astype(dtype)


def parts(value):
    return value if isinstance(value, tuple) else (value,)


def assert_like_numpy(call, x, host, spec):
    """Same classes, dtypes, shapes and values; each result is sharded by `spec` in its leading dimensions."""
    got, expected = call(x), call(host)
    assert type(got) is (ad.Array if not isinstance(expected, tuple) else type(expected))
    for one, two in zip(parts(got), parts(expected), strict=True):
        assert isinstance(one, ad.Array)
        assert (one.shape, one.dtype) == (np.shape(two), np.asarray(two).dtype)
        assert tuple(one.sharding.spec) == spec
        assert one.committed
        np.testing.assert_allclose(np.asarray(one), two, rtol=1e-5 if one.dtype.itemsize < 8 else 1e-10, atol=1e-6)


SQUARE = {
    "cholesky": np.linalg.cholesky,
    "upper cholesky": lambda x: np.linalg.cholesky(x, upper=True),
    "det": np.linalg.det,
    "eigh": np.linalg.eigh,
    "eigh of the upper half": lambda x: np.linalg.eigh(x, "U"),
    "eigvalsh": np.linalg.eigvalsh,
    "inv": np.linalg.inv,
    "matrix_power": lambda x: np.linalg.matrix_power(x, -2),
    "slogdet": np.linalg.slogdet,
    "hermitian svd": lambda x: np.linalg.svd(x, hermitian=True),
}
ANY = {
    "qr": np.linalg.qr,
    "complete qr": lambda x: np.linalg.qr(x, mode="complete"),
    "r of qr": lambda x: np.linalg.qr(x, "r"),
    "raw qr": lambda x: np.linalg.qr(x, mode="raw"),
    "svd": np.linalg.svd,
    "reduced svd": lambda x: np.linalg.svd(x, full_matrices=False),
    "singular values": lambda x: np.linalg.svd(x, compute_uv=False),
    "svdvals": np.linalg.svdvals,
    "pinv": np.linalg.pinv,
    "pinv with a tolerance": lambda x: np.linalg.pinv(x, rtol=0.3),
    "pinv by position": lambda x: np.linalg.pinv(x, 0.3),
    "matrix_rank": np.linalg.matrix_rank,
    "matrix_rank with a tolerance": lambda x: np.linalg.matrix_rank(x, tol=1.5),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices(name, dtype, named):
    host = positive(4, 8, dtype=dtype)
    assert_like_numpy(SQUARE[name], ad.device_put(host, named("x", "y")), host, ("x", "y"))


@pytest.mark.parametrize("shape", [(8, 3, 5), (8, 5, 3), (8, 3, 3)])
@pytest.mark.parametrize("name", ANY)
def test_matrices_of_any_shape(name, shape, named):
    host = matrices(*shape)
    assert_like_numpy(ANY[name], ad.device_put(host, named(("x", "y"))), host, (("x", "y"),))


@pytest.mark.parametrize("name", [*SQUARE, *ANY])
def test_one_matrix_uneven_stacks_and_empty_stacks(name, line, named):
    call = {**SQUARE, **ANY}[name]
    uneven = ad.NamedSharding(line, ad.P("x"), uneven="last-short")
    host = positive(3)
    assert_like_numpy(call, ad.device_put(host, uneven), host, ("x",))
    assert_like_numpy(call, ad.device_put(host[0], named()), host[0], ())
    assert_like_numpy(call, ad.device_put(host[:0], named("x")), host[:0], ("x",))


def test_integers_are_computed_in_float64(named):
    host = np.arange(16).reshape(4, 2, 2)
    assert_like_numpy(np.linalg.det, ad.device_put(host, named("y")), host, ("y",))


def test_big_stacks_are_worked_on_in_pieces(devices, line):
    host = positive(1200, n=16)
    for sharding in (devices[1], ad.NamedSharding(line, ad.P("x"))):
        x = ad.device_put(host, sharding)
        np.testing.assert_allclose(np.asarray(np.linalg.inv(x)), np.linalg.inv(host), rtol=1e-9)
        assert_same_bits(np.linalg.svdvals(x)[:7], np.linalg.svdvals(host)[:7])


@pytest.mark.usefixtures("no_moves")
def test_a_sharded_matrix_is_refused_and_the_repair_works(named, grid):
    host = positive(n=8)
    x = ad.device_put(host, named("x", "y"))
    for name in ("inv", "qr", "svd", "eigh", "det", "cholesky", "pinv", "matrix_rank"):
        with pytest.raises(ShardingTypeError, match=rf"^linalg\.{name}: a dimension that it works along is sharded"):
            getattr(np.linalg, name)(x)
    with pytest.raises(ShardingTypeError, match=r"^linalg\.solve: a dimension that it works along is sharded"):
        np.linalg.solve(host, x)
    assert_same_bits(np.linalg.inv(ad.reshard(x, ad.NamedSharding(grid, ad.P(None, None)))), np.linalg.inv(host))


@pytest.mark.parametrize(
    "call",
    [
        lambda put: np.linalg.inv(put(np.zeros((8, 2, 2)))),
        lambda put: np.linalg.cholesky(put(-np.ones((8, 2, 2)))),
        lambda put: np.linalg.solve(put(np.zeros((8, 2, 2))), put(np.ones((8, 2, 1)))),
        lambda put: np.linalg.inv(put(np.ones((8, 2, 3)))),
        lambda put: np.linalg.det(put(np.ones(8))),
        lambda put: np.linalg.solve(put(np.ones((8, 2, 2))), put(np.ones((8, 3, 1)))),
        lambda put: np.linalg.inv(put(np.ones((8, 2, 2), np.float16))),
        lambda put: np.linalg.eigh(put(np.ones((8, 2, 2))), "Q"),
        lambda put: np.linalg.qr(put(np.ones((8, 2, 2))), mode="none"),
        lambda put: np.linalg.inv(put(np.ones((8, 2, 2))), 1),
        lambda put: np.linalg.pinv(put(np.ones((8, 2, 2))), 0.1, rtol=0.1),
        lambda put: np.linalg.matrix_rank(put(np.ones((8, 2, 2))), 0.1, rtol=0.1),
    ],
)
def test_errors_are_numpys(call, named):
    expected = outcome(lambda: call(np.asarray))
    assert isinstance(expected, Exception)
    with pytest.raises(type(expected)):
        call(lambda value: ad.device_put(value, named("x")))


def test_bfloat16_as_numpy(named):
    host = positive(4).astype(ml_dtypes.bfloat16)
    got = np.linalg.det(ad.device_put(host, named("x")))
    assert (got.dtype, got.sharding) == (np.linalg.det(host).dtype, named("x"))
    np.testing.assert_allclose(np.asarray(got), np.linalg.det(host))


class TestSolve:
    def test_stacks_broadcast(self, named):
        a, b = positive(4, 8), matrices(8, 3, 2)
        x, y = ad.device_put(a, named("x", "y")), ad.device_put(b, named("y"))
        for got in (np.linalg.solve(x, y), np.linalg.solve(x, b), np.linalg.solve(a, y)):
            assert isinstance(got, ad.Array)
            np.testing.assert_allclose(np.asarray(got), np.linalg.solve(a, b), rtol=1e-10)
        assert tuple(np.linalg.solve(x, y).sharding.spec) == ("x", "y")
        assert tuple(np.linalg.solve(x, b).sharding.spec) == ("x", "y")

    def test_a_vector_is_one_right_hand_side(self, named):
        a, b = positive(8), matrices(3)
        got = np.linalg.solve(ad.device_put(a, named("x")), b)
        assert tuple(got.sharding.spec) == ("x",)
        np.testing.assert_allclose(np.asarray(got), np.linalg.solve(a, b), rtol=1e-10)

    def test_dtypes(self, named):
        a, b = positive(8, dtype=np.complex64), np.arange(48).reshape(8, 3, 2)
        assert np.linalg.solve(ad.device_put(a, named("x")), b).dtype == np.linalg.solve(a, b).dtype == np.complex128


def test_a_tolerance_for_each_matrix(named):
    host = positive(8)
    x, each = ad.device_put(host, named("x")), np.linspace(0.01, 0.9, 8)
    for tolerance in (each, ad.device_put(each, named("x")), ad.device_put(each, named("y"))):
        ranks = np.linalg.matrix_rank(x, rtol=tolerance)
        assert tuple(ranks.sharding.spec) == ("x",)
        assert np.asarray(ranks).tolist() == np.linalg.matrix_rank(host, rtol=each).tolist()
        inverse = np.linalg.pinv(x, rtol=tolerance)
        assert tuple(inverse.sharding.spec) == ("x",)
        np.testing.assert_allclose(np.asarray(inverse), np.linalg.pinv(host, rtol=each), rtol=1e-9, atol=1e-12)
    assert np.linalg.matrix_rank(ad.device_put(np.zeros(8), named("x"))).tolist() == 0
    assert np.linalg.matrix_rank(ad.device_put(np.ones(8), named("x"))).tolist() == 1


class TestCross:
    def test_vectors_in_any_dimension(self, named):
        a, b = matrices(3, 8), matrices(3, 8, seed=1)
        x, y = ad.device_put(a, named(None, "y")), ad.device_put(b, named(None, "y"))
        got = np.linalg.cross(x, y, axis=0)
        assert tuple(got.sharding.spec) == (None, "y")
        assert_same_bits(got, np.linalg.cross(a, b, axis=0))
        assert_same_bits(np.cross(x, y, axisa=0, axisb=0, axisc=1), np.cross(a, b, axisa=0, axisb=0, axisc=1))
        assert_same_bits(np.cross(x, b[:, :1], axis=0), np.cross(a, b[:, :1], axis=0))

    def test_other_sizes_are_refused(self, named):
        with pytest.raises(ValueError, match=r"cross: Both input arrays must be .*3 elements"):
            np.linalg.cross(ad.device_put(np.ones((8, 2)), named("x")), np.ones((8, 2)))


@pytest.mark.parametrize(("function", "name"), [("pinv", "rcond"), ("pinv", "rtol"), ("matrix_rank", "tol")])
def test_tolerances_of_matrices_may_be_a_list(function, name):
    value = np.stack([np.diag([4.0, 2.0, 1.0]), np.diag([4.0, 2.0, 1.0])])
    function = getattr(np.linalg, function)
    for tolerance in ([0.1, 0.4], [0.3, 3.0]):
        got = function(ad.device_put(value), **{name: tolerance})
        np.testing.assert_array_equal(np.asarray(got), function(value, **{name: tolerance}))
