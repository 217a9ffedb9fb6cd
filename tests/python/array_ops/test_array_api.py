# SPDX-License-Identifier: Apache-2.0
"""Array API code runs on Arrays and its results stay where they are."""

import subprocess
import sys
import warnings

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import array_api as xp
from artifex_devices.testing import assert_same_bits

V = np.arange(64.0).reshape(8, 8)


def on(x):
    return x.__array_namespace__()


def moving_difference(x):
    """Written as scipy writes for all arrays: no name of a library in it."""
    space = on(x)
    wide = space.concat([x[:1, ...], x], axis=0)
    steps = wide[1:, ...] - wide[:-1, ...]
    return space.astype(space.where(space.isnan(steps), space.zeros_like(steps), steps), space.float32)


def softmax(x, axis=-1):
    space = on(x)
    power = space.exp(x - space.max(x, axis=axis, keepdims=True))
    return power / space.sum(power, axis=axis, keepdims=True)


def standardise(x):
    space = on(x)
    if not space.isdtype(x.dtype, "real floating"):
        x = space.astype(x, space.float64)
    mean = space.mean(x, axis=0, keepdims=True)
    spread = space.std(x, axis=0, keepdims=True)
    return (x - mean) / space.where(spread == 0, space.ones_like(spread), spread)


def test_code_for_all_arrays_runs(named):
    x = ad.device_put(V, named("x", "y"))
    result = moving_difference(x)
    assert isinstance(result, ad.Array)
    assert_same_bits(result, np.diff(V, axis=0, prepend=V[:1]).astype(np.float32))
    assert tuple(result.sharding.spec) == (None, "y")


@pytest.mark.parametrize("function", [softmax, standardise])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_code_with_reductions_runs(named, function, dtype):
    x = ad.device_put(V.astype(dtype), named("x", "y"))
    result = function(x)
    assert isinstance(result, ad.Array)
    assert result.sharding == x.sharding
    value = V.astype(dtype)
    if function is softmax:
        powers = np.exp(value - value.max(-1, keepdims=True))
        expected = powers / powers.sum(-1, keepdims=True)
    else:
        expected = (value - value.mean(0)) / value.std(0)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5)


def test_the_namespace_is_found():
    x = ad.device_put(V)
    assert on(x) is xp
    for version in ("2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is xp
    assert xp.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match=r"api_version '1999' is not known; expected one of 2021.12"):
        x.__array_namespace__(api_version="1999")


def test_all_that_is_offered_takes_arrays():
    for space, source in ((xp, np), (xp.fft, np.fft), (xp.linalg, np.linalg)):
        for name in set(dir(space)) - set(space.__all__):
            assert getattr(space, name) is getattr(source, name)
    assert set(xp.__all__) <= set(dir(xp))
    assert not {"np", "Any", "dispatch"} & set(dir(xp))
    assert {"add", "exp", "where", "concat", "stack", "take", "unstack", "zeros_like", "astype"} <= set(dir(xp))


def test_other_functions_of_numpy_that_take_arrays_are_there_too():
    names = {"pad", "transpose", "nanmean", "einsum", "arcsin", "concatenate", "split", "median", "isclose", "around"}
    assert names <= set(dir(xp))
    assert names & set(dir(xp.linalg)) == set()
    x = ad.device_put(np.arange(3))
    assert xp.pad(x, 1).tolist() == [0, 0, 1, 2, 0]
    assert xp.transpose(ad.device_put(V)).shape == (8, 8)
    assert xp.linalg.norm(ad.device_put(np.array([3.0, 4.0]))).tolist() == 5.0


@pytest.mark.parametrize(
    ("space", "name"), [(xp, "extract"), (xp, "put"), (xp.linalg, "eig"), (xp.linalg, "lstsq"), (xp, "save")]
)
def test_unsupported_functions_are_absent_and_the_error_has_the_reason(space, name):
    assert not hasattr(space, name)
    assert name not in dir(space)
    full = f"np.linalg.{name}" if space is xp.linalg else f"np.{name}"
    with pytest.raises(AttributeError, match=rf"{full}\(np.asarray\(x\)\)"):
        getattr(space, name)


@pytest.mark.parametrize("name", ["cos_sin", "load", "ndarray", "random", "_core"])
def test_names_of_other_objects_are_absent(name):
    assert not hasattr(xp, name)
    assert name not in dir(xp)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(xp, name)


def test_names_of_the_standard(named):
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (np.e, np.pi, np.inf, None)
    assert np.isnan(xp.nan)
    x = ad.device_put(V, named("x"))
    assert x.dtype == xp.float64
    assert xp.isdtype(x.dtype, "real floating")
    assert xp.result_type(x, xp.complex64) == xp.complex128
    assert xp.finfo(xp.float32).bits == 32
    assert xp.iinfo(xp.int8).max == 127
    assert xp.bool is np.bool_


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda **o: xp.zeros((2, 4), **o), np.zeros((2, 4))),
        (lambda **o: xp.ones(4, dtype=xp.int8, **o), np.ones(4, np.int8)),
        (lambda **o: xp.full((4,), 2, **o), np.full(4, 2)),
        (lambda **o: xp.arange(4, **o), np.arange(4)),
        (lambda **o: xp.arange(1, 9, 2, dtype=xp.float32, **o), np.arange(1, 9, 2, np.float32)),
        (lambda **o: xp.linspace(0, 1, 8, endpoint=False, **o), np.linspace(0, 1, 8, endpoint=False)),
        (lambda **o: xp.eye(4, 3, k=1, **o), np.eye(4, 3, 1)),
        (lambda **o: xp.asarray([[1, 2], [3, 4]], **o), np.array([[1, 2], [3, 4]])),
    ],
)
def test_creation(call, expected, named, devices):
    free = call()
    assert isinstance(free, ad.Array)
    assert_same_bits(free, expected)
    assert not free.committed
    assert free.devices() == {devices[0]}
    assert call(device=devices[2]).devices() == {devices[2]}
    cut = call(device=named("x"))
    assert cut.sharding == named("x")
    assert_same_bits(cut, expected)
    with pytest.raises(TypeError, match=r"device is 'cpu' \(str\); write ad\.devices\('cpu'\)\[0\]"):
        call(device="cpu")


def test_empty(named):
    x = xp.empty((4, 2), dtype=xp.int16, device=named("x"))
    assert (x.shape, x.dtype, x.sharding) == ((4, 2), np.int16, named("x"))


def test_asarray(named, devices):
    x = ad.device_put(V, named("x"))
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=False) is x
    copied = xp.asarray(x, copy=True)
    assert not np.shares_memory(copied, x)
    assert copied.sharding == x.sharding
    assert_same_bits(copied, V)
    assert xp.asarray(x, dtype=xp.float32).dtype == np.float32
    assert xp.asarray(x, device=devices[1]).devices() == {devices[1]}
    assert xp.asarray(x, device=x.device) is x
    assert_same_bits(xp.asarray([x[0, 1], x[0, 2]]), np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray(x, dtype=xp.float32, copy=False)
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray(V, copy=False)
    with pytest.raises(TypeError):
        xp.asarray(["a"])
    assert_same_bits(xp.from_dlpack(V), V)


@pytest.mark.parametrize("descending", [False, True])
def test_sort_and_argsort_are_stable_in_both_directions(descending, named):
    host = np.array([[3, 1, 2, 1], [0.5, np.inf, -1, 0.5]] * 4)
    x = ad.device_put(host, named("x"))
    sign = -1 if descending else 1
    got = xp.sort(x, descending=descending)
    assert_same_bits(got, sign * np.sort(sign * host))
    order = xp.argsort(x, axis=-1, descending=descending)
    assert_same_bits(order, np.argsort(sign * host, stable=True))
    assert got.sharding == order.sharding == named("x")
    whole = ad.reshard(x, named())
    assert_same_bits(xp.argsort(whole, axis=0, descending=descending), np.argsort(sign * host, axis=0, stable=True))


def test_to_device(named, devices):
    x = ad.device_put(V, named("x"))
    y = x.to_device(devices[5])
    assert y.device == devices[5]
    assert_same_bits(y, V)
    assert y.to_device(x.device).sharding == x.sharding
    with pytest.raises(ValueError, match="stream"):
        x.to_device(devices[0], stream=1)
    with pytest.raises(TypeError, match=r"device is 'cpu' \(str\); write ad\.devices\('cpu'\)\[0\]"):
        x.to_device("cpu")


def test_info(devices):
    info = xp.__array_namespace_info__()
    assert info.devices() == devices
    assert info.default_device() == devices[0]
    assert info.capabilities()["data-dependent shapes"] is True
    assert info.default_dtypes()["real floating"] == np.float64
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert len(info.dtypes()) == 13
    limit = info.capabilities()["max dimensions"]
    assert xp.zeros((1,) * limit).ndim == limit


def test_importing_the_package_does_not_load_it():
    code = (
        "import sys, artifex_devices\n"
        "late = ('artifex_devices.array_api', 'artifex_devices._array_ops')\n"
        "loaded = [name for name in sys.modules if name.startswith(late)]\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_has_the_module_without_an_import_of_its_own():
    code = "import artifex_devices as ad; assert ad.array_api.ones(2).tolist() == [1.0, 1.0]"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: xp.ones(2), "float32"),
        (lambda: xp.eye(2), "float32"),
        (lambda: xp.asarray([1.0, 2]), "float32"),
        (lambda: xp.asarray([[1], [2]]), "int32"),
        (lambda: xp.asarray([True]), "bool"),
        (lambda: xp.arange(3), "int32"),
        (lambda: xp.linspace(0, 1, 3), "float32"),
        (lambda: xp.full(2, 1j), "complex64"),
        (lambda: xp.full(2, 3, dtype=xp.int8), "int8"),
    ],
)
def test_numbers_are_32_bit_without_x64(make, dtype):
    wide = make().dtype
    with ad.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make().dtype == dtype
    assert wide == {"float32": "float64", "int32": "int64", "complex64": "complex128"}.get(dtype, dtype)


def test_a_dtype_of_64_bits_is_narrowed_as_placing_does():
    with ad.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert xp.zeros(2, dtype=xp.int64).dtype == "int32"
        assert xp.asarray(np.ones(2)).dtype == "float32"
        assert xp.__array_namespace_info__().default_dtypes()["integral"] == "int32"


@pytest.mark.parametrize("make", [lambda: xp.asarray([2**40]), lambda: xp.full(2, -(2**40))])
def test_an_int_of_64_bits_is_an_overflow_without_x64(make):
    with ad.enable_x64(False), pytest.raises(OverflowError, match="an int is too large for int32"):
        make()


@pytest.mark.parametrize(
    "create",
    [
        lambda shape, device: xp.ones(shape, device=device),
        lambda shape, device: xp.empty(shape, device=device),
        lambda shape, device: xp.full(shape, 2.5, device=device),
        lambda shape, device: xp.asarray(np.ones(shape), device=device),
        lambda shape, device: xp.asarray(ad.device_put(np.ones(shape)), device=device),
        lambda shape, device: xp.ones(shape).to_device(device),
        lambda shape, device: xp.zeros_like(ad.device_put(np.ones(shape)), device=device),
    ],
)
def test_the_device_of_a_sharded_array_takes_any_shape(create, named):
    x = ad.device_put(V, named("x", "y"))
    for shape, spec in (((4, 12), ("x", "y")), ((3, 4), ()), ((4,), ()), ((), ()), ((4, 8, 3), ("x", "y"))):
        made = create(shape, x.device)
        assert made.shape == shape
        assert made.sharding == named(*spec)
        assert made.committed
    assert tuple((x + create((8, 1), x.device)).sharding.spec) == ("x", "y")


def test_ranges_and_frequencies_take_the_device_of_a_sharded_array(named):
    device = ad.device_put(V, named("x")).device
    for made, spec in (
        (xp.arange(4, device=device), ("x",)),
        (xp.arange(5, device=device), ()),
        (xp.linspace(0, 1, 3, device=device), ()),
        (xp.eye(3, device=device), ()),
        (xp.fft.fftfreq(3, device=device), ()),
        (xp.fft.rfftfreq(6, d=2.0, dtype=xp.float32, device=device), ("x",)),
    ):
        assert made.sharding == named(*spec)
    assert made.dtype == np.float32
    assert_same_bits(made, np.fft.rfftfreq(6, 2.0).astype(np.float32))


def test_what_is_not_in_the_way_stays_as_it_is(named):
    x = ad.device_put(V, named("x"))
    assert xp.sort(x, axis=1).sharding == named("x")
    assert xp.fft.fft(x).sharding == named("x")
    assert xp.stack([x, x]).sharding == named(None, "x")
