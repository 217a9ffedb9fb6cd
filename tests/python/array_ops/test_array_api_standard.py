# SPDX-License-Identifier: Apache-2.0
"""Every function of the Array API 2024.12 is there and returns NumPy's answer, on one device and sharded over 8."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import array_api as xp

FLOATS = np.linspace(0.25, 0.75, 32).reshape(4, 8)
INTS = np.arange(32).reshape(4, 8) % 5
BOOLS = INTS > 2
COMPLEX = FLOATS + 1j * INTS
SYMMETRIC = np.stack([np.eye(3) * (k + 2) + 0.25 for k in range(4)])


def words(text):
    return text.split()


def unary(name):
    return lambda xp, put: getattr(xp, name)(put(FLOATS))


def binary(name, one=FLOATS, other=FLOATS[::-1]):
    return lambda xp, put: getattr(xp, name)(put(one), put(other))


def of(name, value, *args, **options):
    return lambda xp, put: getattr(xp, name)(put(value), *args, **options)


def linalg(name, *args, **options):
    return lambda xp, put: getattr(xp.linalg, name)(put(SYMMETRIC), *args, **options)


def transform(name, value=COMPLEX, **options):
    return lambda xp, put: getattr(xp.fft, name)(put(value), **options)


# All functions of the standard by name, each with a call. None is missing; of the methods one has no meaning, below.
FUNCTIONS = {
    "arange": lambda xp, put: xp.arange(3, 20, 4),
    "ones": lambda xp, put: xp.ones((2, 3)),
    "zeros": lambda xp, put: xp.zeros(3, dtype=xp.int16),
    "empty": lambda xp, put: xp.zeros_like(xp.empty((2, 3))),
    "eye": lambda xp, put: xp.eye(3, 4, k=1),
    "full": lambda xp, put: xp.full((2, 3), 7),
    "linspace": lambda xp, put: xp.linspace(0, 1, 5),
    "asarray": of("asarray", FLOATS),
    "from_dlpack": lambda xp, put: xp.from_dlpack(FLOATS),
    "empty_like": lambda xp, put: xp.zeros_like(xp.empty_like(put(FLOATS))),
    "full_like": of("full_like", FLOATS, 7.0),
    "ones_like": of("ones_like", INTS),
    "zeros_like": of("zeros_like", INTS),
    "meshgrid": lambda xp, put: xp.meshgrid(put(FLOATS[0]), put(INTS[:, 0])),
    "tril": of("tril", FLOATS),
    "triu": of("triu", FLOATS, k=1),
    "astype": lambda xp, put: xp.astype(put(FLOATS), xp.int8),
    "can_cast": lambda xp, put: xp.can_cast(put(INTS), xp.float32),
    "finfo": lambda xp, put: xp.finfo(xp.float32).bits,
    "iinfo": lambda xp, put: xp.iinfo(xp.int16).max,
    "isdtype": lambda xp, put: xp.isdtype(put(INTS).dtype, "integral"),
    "result_type": lambda xp, put: xp.result_type(put(INTS), xp.float32),
    **{
        name: unary(name)
        for name in words(
            "abs acos asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 log10 "
            "logical_not negative positive reciprocal round sign signbit sin sinh square sqrt tan tanh trunc"
        )
    },
    **{
        name: binary(name)
        for name in words(
            "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp "
            "maximum minimum multiply nextafter not_equal pow remainder subtract"
        )
    },
    **{
        name: binary(name, INTS, INTS[::-1])
        for name in ("bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor")
    },
    **{name: binary(name, BOOLS, BOOLS[::-1]) for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: of(name, COMPLEX) for name in ("conj", "imag", "real")},
    "acosh": of("acosh", FLOATS + 1),
    "bitwise_invert": of("bitwise_invert", INTS),
    "clip": of("clip", FLOATS, 0.3, 0.6),
    "take": lambda xp, put: xp.take(put(FLOATS), put(np.array([2, 0])), axis=0),
    "take_along_axis": lambda xp, put: xp.take_along_axis(put(FLOATS), put(INTS), axis=1),
    "matmul": lambda xp, put: xp.matmul(put(INTS), put(INTS.T)),
    "matrix_transpose": of("matrix_transpose", FLOATS),
    "tensordot": lambda xp, put: xp.tensordot(put(INTS), put(INTS.T), axes=1),
    "vecdot": binary("vecdot", INTS, INTS[::-1]),
    "broadcast_arrays": lambda xp, put: xp.broadcast_arrays(put(FLOATS), put(INTS[:1])),
    "broadcast_to": of("broadcast_to", FLOATS, (3, 4, 8)),
    "concat": lambda xp, put: xp.concat([put(FLOATS), put(FLOATS)], axis=1),
    "expand_dims": of("expand_dims", FLOATS, axis=1),
    "flip": of("flip", FLOATS),
    "moveaxis": of("moveaxis", FLOATS, 0, 1),
    "permute_dims": of("permute_dims", FLOATS, (1, 0)),
    "repeat": of("repeat", FLOATS, 2, axis=0),
    "reshape": of("reshape", FLOATS, (4, 2, 4)),
    "roll": of("roll", FLOATS, 3, axis=0),
    "squeeze": of("squeeze", FLOATS[:, None], axis=1),
    "stack": lambda xp, put: xp.stack([put(FLOATS), put(FLOATS)], axis=1),
    "tile": of("tile", FLOATS, (1, 2)),
    "unstack": of("unstack", FLOATS, axis=0),
    **{name: of(name, FLOATS, axis=0) for name in ("argmax", "argmin", "count_nonzero")},
    "nonzero": of("nonzero", INTS),
    "searchsorted": lambda xp, put: xp.searchsorted(xp.asarray(np.array([1, 3])), put(INTS)),
    "where": lambda xp, put: xp.where(put(BOOLS), put(FLOATS), put(-FLOATS)),
    **{f"unique_{name}": of(f"unique_{name}", INTS) for name in ("all", "counts", "inverse")},
    "unique_values": lambda xp, put: xp.sort(xp.unique_values(put(INTS))),
    **{name: of(name, INTS, axis=1, stable=True) for name in ("argsort", "sort")},
    **{name: of(name, FLOATS, axis=0) for name in ("cumulative_sum", "cumulative_prod", "max", "mean", "min", "prod")},
    **{name: of(name, FLOATS, axis=0, correction=1) for name in ("std", "var")},
    "sum": of("sum", INTS, axis=0),
    **{name: of(name, BOOLS, axis=0) for name in ("all", "any")},
    "diff": lambda xp, put: xp.diff(put(FLOATS), prepend=put(FLOATS[:, :1]), append=put(FLOATS[:, :2])),
    "__array_namespace_info__": lambda xp, put: xp.__array_namespace_info__().default_dtypes()["integral"],
}
LINALG = {
    **{
        name: linalg(name)
        for name in words(
            "cholesky det diagonal eigh eigvalsh inv matrix_norm matrix_rank matrix_transpose pinv qr slogdet svd "
            "svdvals trace vector_norm"
        )
    },
    "cross": lambda xp, put: xp.linalg.cross(put(SYMMETRIC), put(SYMMETRIC[::-1])),
    "matmul": lambda xp, put: xp.linalg.matmul(put(SYMMETRIC), put(SYMMETRIC)),
    "matrix_power": linalg("matrix_power", 3),
    "outer": lambda xp, put: xp.linalg.outer(put(FLOATS[0]), put(FLOATS[1])),
    "solve": lambda xp, put: xp.linalg.solve(put(SYMMETRIC), put(SYMMETRIC[:, :, :2])),
    "tensordot": lambda xp, put: xp.linalg.tensordot(put(INTS), put(INTS.T), axes=1),
    "vecdot": lambda xp, put: xp.linalg.vecdot(put(INTS), put(INTS)),
}
FFT = {
    **{name: transform(name) for name in ("fft", "ifft", "irfft", "hfft")},
    **{name: transform(name, FLOATS) for name in ("rfft", "ihfft")},
    **{name: transform(name, axes=(1,)) for name in ("fftn", "ifftn", "irfftn")},
    "rfftn": transform("rfftn", FLOATS, axes=(1,)),
    "fftshift": transform("fftshift"),
    "ifftshift": transform("ifftshift"),
    "fftfreq": lambda xp, put: xp.fft.fftfreq(5, d=0.5),
    "rfftfreq": lambda xp, put: xp.fft.rfftfreq(5, d=0.5),
}
METHODS = set(
    words(
        """
    __abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __eq__ __float__
    __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__
    __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ T device dtype mT
    ndim shape size to_device
    """
    )
)


def leaves(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("call", [pytest.param(c, id=n) for n, c in FUNCTIONS.items()])
@pytest.mark.parametrize("spec", ["one device", "even", "uneven"])
def test_function(call, spec, line):
    check(call, spec, line)


@pytest.mark.parametrize("call", [pytest.param(c, id=n) for n, c in {**LINALG, **FFT}.items()])
@pytest.mark.parametrize("spec", ["one device", "even", "uneven"])
def test_function_of_an_extension(call, spec, line):
    check(call, spec, line)


def check(call, spec, line):
    def put(value):
        if spec == "one device":
            return ad.device_put(value)
        if spec == "uneven":
            return ad.device_put(value, ad.NamedSharding(line, ad.P("x"), uneven="last-short"))
        half = ad.Mesh(line.devices.reshape(4, 2), ("x", "y"))
        return ad.device_put(value, ad.NamedSharding(half, ad.P("x" if len(value) % 4 == 0 else None)))

    for got, expected in zip(leaves(call(xp, put)), leaves(call(np, np.asarray)), strict=True):
        if not isinstance(expected, np.ndarray | np.generic):
            assert got == expected
            continue
        assert isinstance(got, ad.Array)
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12, atol=1e-14)


def test_the_namespaces_have_all_functions_of_the_standard():
    for space, table in ((xp, FUNCTIONS), (xp.linalg, LINALG), (xp.fft, FFT)):
        assert {name for name in table if hasattr(space, name)} == set(table)
        assert set(table) - {"__array_namespace_info__"} <= set(dir(space))
    assert (len(FUNCTIONS), len(LINALG), len(FFT)) == (134, 23, 14)


def test_arrays_have_the_methods_and_attributes_of_the_standard_and_do_not_change():
    x = ad.device_put(INTS)
    assert {name for name in METHODS if hasattr(x, name)} == METHODS
    with pytest.raises(TypeError, match="are immutable"):
        x[0] = 1
    before = x
    x += 1  # a new Array, as of immutable numbers
    assert x is not before
    assert np.asarray(before).tolist() == INTS.tolist()
