# SPDX-License-Identifier: Apache-2.0
"""Random calls of NumPy's functions, of operands that are replicated, evenly and unevenly sharded, against NumPy."""

import random
import warnings

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import NamedSharding, P
from artifex_devices.errors import ShardingTypeError
from numpy_oracle import TOLERANCE

pytestmark = pytest.mark.usefixtures("each_way")

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64")
NUMBERS = (True, 0, 1, -1, 3, 200, -200, 70000, 2**40, -(2**40), 0.5, 2.5, float("nan"))
COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


class Draw:
    """Draws values and arguments, the same for the same seed."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._values = np.random.default_rng(seed)
        self.choice, self.one_in = self._random.choice, lambda n: self._random.randrange(n) == 0

    def shape(self, least=0, most=3):
        return tuple(self.choice((0, 1, 3, 4, 8, 8, 9, 12)) for _ in range(self._random.randint(least, most)))

    def value(self, shape, dtype=None):
        """Quarters between -4 and 4, or integers between -16 and 16; in unsigned integers they wrap round."""
        values = np.asarray(self._values.integers(-16, 17, shape))
        kind = np.dtype(dtype or self.choice(DTYPES))
        return np.asarray(values if kind.kind in "biu" else values / 4).astype(kind)

    def fitting(self, shape):
        """A value that broadcasts to a shape."""
        kept = shape[self._random.randint(0, len(shape)) :] if self.one_in(4) else shape
        return self.value(tuple(1 if self.one_in(8) else size for size in kept))

    def axis(self, ndim):
        return None if self.one_in(4) or not ndim else self._random.randrange(-ndim, ndim)

    def placed(self, value, mesh):
        """The value on the host, replicated, or sharded over one dimension."""
        kind = self.choice(("host", "replicated", "sharded", "sharded"))
        if kind == "host":
            return value
        entries, uneven = [None] * value.ndim, self.one_in(2)
        if kind == "sharded" and value.ndim:
            d = self._random.randrange(value.ndim)
            if uneven or value.shape[d] % mesh.size == 0:
                entries[d] = "x"
        return ad.device_put(value, NamedSharding(mesh, P(*entries), uneven="last-short" if uneven else None))


def elementwise(draw):
    first = draw.value(draw.shape())
    other = draw.choice(NUMBERS) if draw.one_in(3) else draw.fitting(first.shape)
    function = draw.choice((np.add, np.subtract, np.multiply, np.maximum, np.fmin, np.logical_and, *COMPARISONS))
    return function, draw.choice(((first, other), (other, first))), {}


def clip(draw):
    x = draw.value(draw.shape())
    bounds = [draw.choice((None, draw.choice(NUMBERS), draw.fitting(x.shape))) for _ in range(2)]
    return np.clip, (x, *bounds), {}


def where(draw):
    shape = draw.shape()
    choices = [draw.choice((draw.choice(NUMBERS), draw.fitting(shape))) for _ in range(2)]
    return np.where, (draw.value(shape, "bool"), *choices), {}


def joined(draw):
    shape = draw.shape(least=1)
    parts = tuple(draw.value(shape) for _ in range(draw.choice((1, 2, 3))))
    function = draw.choice((np.stack, np.concatenate))
    return (lambda *parts, axis: function(parts, axis=axis)), parts, {"axis": draw.choice((0, -1))}


def product(draw):
    rows, size, columns = (draw.choice((1, 3, 8, 9)) for _ in range(3))
    one, two = draw.value((rows, size)), draw.value((size, columns))
    function = draw.choice((np.matmul, lambda a, b: np.einsum("ij,jk", a, b), lambda a, b: np.outer(a[:, 0], b[0])))
    return function, (one, two), {}


def reduction(draw):
    x = draw.value(draw.shape())
    function = draw.choice((np.sum, np.max, np.any, np.mean, np.cumsum, np.argmax, np.nanmin, np.nancumsum))
    options = {"axis": draw.axis(x.ndim)}
    if draw.one_in(2):
        options["out"] = draw.choice(("float64", "complex128", "int64", "int32"))
    return function, (x,), options


def spread(draw):
    x = draw.value(draw.shape())
    function = draw.choice((np.var, np.nanstd, np.nanvar))
    return function, (x,), {"axis": draw.axis(x.ndim), "ddof": draw.choice((0, 1, 8, 1000))}


def order(draw):
    x = draw.value(draw.shape())
    return draw.choice((np.sort, lambda a, axis: np.argsort(a, axis, stable=True))), (x,), {"axis": draw.axis(x.ndim)}


def triangle(draw):
    return draw.choice((np.triu, np.tril)), (draw.value(draw.shape(least=1)), draw.choice((-1, 0, 2))), {}


def outcome(call):
    try:
        with np.errstate(all="ignore"):
            return call(), None
    except (TypeError, ValueError, OverflowError) as error:
        return None, error


def assert_same(got, expected, message):
    got, expected = np.asarray(got), np.asarray(expected)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), message
    tolerance = TOLERANCE.get(got.dtype.name, 0) if got.dtype.kind in "fc" else 0
    np.testing.assert_allclose(
        got.astype(complex), expected.astype(complex), rtol=tolerance, atol=100 * tolerance, err_msg=message
    )


@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize(
    "family", [elementwise, clip, where, joined, product, reduction, spread, order, triangle], ids=lambda f: f.__name__
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_calls_answer_as_numpy(family, count):
    mesh = ad.Mesh(np.array(ad.devices()[:count]), ("x",))
    compared = 0
    for seed in range(60):
        draw = Draw(seed)
        function, values, options = family(draw)
        arguments = [draw.placed(value, mesh) if isinstance(value, np.ndarray) else value for value in values]
        if not any(isinstance(each, ad.Array) for each in arguments):
            continue
        ours, theirs = dict(options), dict(options)
        if "out" in options:
            plain, error = outcome(lambda: function(*values, axis=options["axis"]))  # noqa: B023 - called at once
            if error is not None:
                continue
            ours["out"], theirs["out"] = (np.zeros(np.shape(plain), options["out"]) for _ in range(2))
        message = f"{family.__name__} {seed}: {[getattr(each, 'sharding', each) for each in arguments]} {options}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, refused = outcome(lambda: function(*values, **theirs))  # noqa: B023
            got, error = outcome(lambda: function(*arguments, **ours))  # noqa: B023
        if isinstance(error, ShardingTypeError):
            continue
        if refused is not None or error is not None:
            kind = next(each for each in type(refused).__mro__ if each.__module__ == "builtins")
            assert isinstance(error, kind), f"{message}: {error!r} instead of {refused!r}"
            continue
        assert_same(got, expected, message)
        compared += 1
    assert compared >= 20, compared
