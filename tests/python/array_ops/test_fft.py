# SPDX-License-Identifier: Apache-2.0
"""numpy.fft on Arrays: NumPy's values along dimensions that are not sharded, other dimensions stay sharded."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.errors import ShardingTypeError
from artifex_devices.testing import assert_same_bits

pytestmark = pytest.mark.usefixtures("each_way")

REAL = np.random.default_rng(0).normal(size=(8, 6, 5))
COMPLEX = REAL + 1j * REAL[::-1]
ONE = ["fft", "ifft", "irfft", "hfft"]
SEVERAL = ["fftn", "ifftn", "irfftn", "fft2", "ifft2", "irfft2"]


def assert_like_numpy(name, x, host, *args, **options):
    function = getattr(np.fft, name)
    got, expected = function(x, *args, **options), function(host, *args, **options)
    assert isinstance(got, ad.Array)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    assert tuple(got.sharding.spec) == tuple(x.sharding.spec)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12 if got.dtype.itemsize > 8 else 1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [*ONE, "rfft", "ihfft"])
@pytest.mark.parametrize("options", [{}, {"n": 4}, {"n": 9, "axis": 1, "norm": "ortho"}, {"norm": "forward"}])
def test_along_one_dimension(name, options, named):
    host = REAL if name in ("rfft", "ihfft") else COMPLEX
    assert_like_numpy(name, ad.device_put(host, named("x")), host, **options)


@pytest.mark.parametrize("name", [*SEVERAL, "rfftn", "rfft2"])
@pytest.mark.parametrize("options", [{"axes": (1, 2)}, {"axes": (2,), "s": (4,)}, {"axes": (-1, -2), "s": (3, 8)}])
def test_along_several_dimensions(name, options, named):
    host = REAL if name in ("rfftn", "rfft2") else COMPLEX
    assert_like_numpy(name, ad.device_put(host, named("x")), host, **options)


def test_all_dimensions_where_none_is_sharded(named, devices):
    for place in (named(), devices[2]):
        assert_same_bits(np.fft.fftn(ad.device_put(COMPLEX, place)), np.fft.fftn(COMPLEX))


@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.float32, np.complex64, bool])
def test_dtypes_are_numpys(dtype, named):
    host = REAL.real.astype(dtype)
    assert_like_numpy("fft", ad.device_put(host, named("x")), host)


def test_uneven_and_big(line):
    host = np.random.default_rng(1).normal(size=(300, 1000))
    x = ad.device_put(host, ad.NamedSharding(line, ad.P("x"), uneven="last-short"))
    got = np.fft.rfft(x)
    assert got.sharding == x.sharding
    np.testing.assert_allclose(np.asarray(got), np.fft.rfft(host), rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("no_moves")
def test_a_sharded_dimension_is_refused(named):
    x = ad.device_put(COMPLEX, named("x"))
    for name in ("fft", "rfft", "fftn"):
        value = ad.device_put(REAL, named("x")) if name == "rfft" else x
        options = {} if name == "fftn" else {"axis": 0}
        with pytest.raises(ShardingTypeError, match=rf"^fft\.{name}: a dimension .* is sharded.*reshard"):
            getattr(np.fft, name)(value, **options)


def test_out_is_an_ndarray(named):
    x, out = ad.device_put(COMPLEX, named("x")), np.empty_like(COMPLEX)
    assert np.fft.fft(x, out=out) is out
    np.testing.assert_allclose(out, np.fft.fft(COMPLEX))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.fft.fft(x, 0),
        lambda x: np.fft.fft(x, axis=3),
        lambda x: np.fft.fft(x, norm="no"),
        lambda x: np.fft.fftn(x, axes=(0, 5)),
        lambda x: np.fft.fftn(x, s=(3, 3), axes=(1,)),
        lambda x: np.fft.rfft(x),
    ],
)
def test_errors_are_numpys(call, named):
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whichever NumPy raises
        call(COMPLEX)
    with pytest.raises(expected.type):
        call(ad.device_put(COMPLEX, named()))


@pytest.mark.parametrize("axes", [None, 0, (1, 2), -1])
def test_shifts_move_elements_also_along_sharded_dimensions(axes, named):
    x = ad.device_put(REAL, named("x"))
    for shift in (np.fft.fftshift, np.fft.ifftshift):
        got = shift(x, axes)
        assert got.sharding == x.sharding
        assert_same_bits(got, shift(REAL, axes))
