# SPDX-License-Identifier: Apache-2.0
"""64-bit data where jax_enable_x64 is False: narrowed as NumPy's astype does, and said so once."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings

import artifex_devices as ad
import numpy as np
import pytest
from many_threads import INHERITS_CONTEXT


@pytest.fixture(autouse=True)
def warned_before():
    """The one warning of the process is over: each test sees what comes after it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ad.enable_x64(False):
            ad.device_put(np.zeros(1))


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**63, 2**64, -(2**70)])
def test_a_python_int_that_does_not_fit_is_an_error(value):
    with ad.enable_x64(False), pytest.raises(OverflowError, match=r"^leaf |^device_put: the Python int") as caught:
        ad.device_put(value)
    assert str(value) in str(caught.value) or "64 bits" in str(caught.value)


def test_arrays_stay_what_they_are(devices):
    x = ad.device_put(np.arange(3))
    with ad.enable_x64(False):
        assert ad.device_put(x) is x
        assert ad.device_put(x, devices[1]).dtype == np.int64


def test_narrowed_data_aliases_nothing():
    source = np.arange(4)
    with ad.enable_x64(False):
        placed = ad.device_put(source, may_alias=True)
    assert source.flags.writeable
    source[:] = 9
    assert np.asarray(placed).tolist() == [0, 1, 2, 3]


def test_strides_are_kept_in_order():
    source = np.arange(24.0).reshape(2, 3, 4)[::-1, :, ::2].transpose(2, 0, 1)
    with ad.enable_x64(False):
        assert np.asarray(ad.device_put(source)).tolist() == source.tolist()


@pytest.mark.parametrize(("wide", "narrow"), [(np.int64, np.int32), (np.float16, np.float16)])
def test_blocks_of_a_callback_are_narrowed(devices, wide, narrow):
    def dtype_of_array():
        return ad.make_array_from_callback((3,), ad.SingleDeviceSharding(devices[0]), lambda _: np.ones(3, wide)).dtype

    assert dtype_of_array() == wide
    with ad.enable_x64(False):
        assert dtype_of_array() == narrow


def test_scopes_nest_decorate_and_stay_in_their_thread():
    @ad.enable_x64(False)
    def narrow():
        with ad.enable_x64(True):
            inner = ad.device_put(1).dtype
        return ad.device_put(1).dtype, inner

    assert narrow() == (np.int32, np.int64)
    assert ad.enable_x64()(lambda: ad.device_put(1).dtype)() == np.int64
    found = []
    with ad.enable_x64(False):
        thread = threading.Thread(target=lambda: found.append(ad.device_put(1).dtype))
        thread.start()
        thread.join()
        assert ad.config.jax_enable_x64 is False
    assert found == [np.int32 if INHERITS_CONTEXT else np.int64]
    with ad.experimental.disable_x64():
        assert ad.device_put(1.0).dtype == np.float32
        with ad.experimental.enable_x64():
            assert ad.device_put(1.0).dtype == np.float64


def test_the_option_is_for_all_threads():
    found = []
    ad.config.update("jax_enable_x64", False)
    try:
        assert ad.config.jax_enable_x64 is False
        thread = threading.Thread(target=lambda: found.append(ad.device_put(1.0).dtype))
        thread.start()
        thread.join()
    finally:
        ad.config.update("jax_enable_x64", True)
    assert found == [np.float32]
    assert ad.device_put(1.0).dtype == np.float64


@pytest.mark.parametrize("value", ["maybe", "False", "", None, 2, 0.5, [True]])
def test_what_is_not_a_truth(value):
    with pytest.raises(ValueError, match="expected True or False"):
        ad.enable_x64(value)
    with pytest.raises(ValueError, match=r"config\.update: jax_enable_x64 is "):
        ad.config.update("jax_enable_x64", value)
    assert ad.config.jax_enable_x64 is True


@pytest.mark.parametrize("value", [0, np.False_, False])
def test_other_spellings_of_false(value):
    with ad.enable_x64(value):
        assert ad.config.jax_enable_x64 is False


FIRST = """
import warnings
import numpy as np, artifex_devices as ad
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught, ad.enable_x64(False):
    ad.device_put([1, 2.5, np.ones(3, np.float32)])
    print(len(caught))
    ad.device_put({"w": np.ones(3, np.float32), "b": [np.arange(2)]})
    ad.device_put(np.ones(3))
for warning in caught:
    print(warning.category.__name__, warning.filename, warning.lineno, warning.message)
"""
STRICT = """
import warnings
import numpy as np, artifex_devices as ad
warnings.simplefilter("error")
for _ in range(2):
    try:
        with ad.enable_x64(False):
            ad.device_put(np.ones(3))
    except UserWarning as error:
        print(error)
print(len(ad.live_arrays()))
"""


def output_of(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_first_narrowing_in_the_process_warns_and_names_the_leaf():
    assert output_of(FIRST) == [
        "0",
        "UserWarning <string> 8 device_put: leaf ['b'][0] is int64 and was narrowed to int32, because jax_enable_x64 "
        "is False; later arrays are narrowed without a warning; convert them yourself, or keep 64 bits by "
        "config.update('jax_enable_x64', True)",
    ]


def test_where_warnings_are_errors_nothing_is_narrowed():
    lines = output_of(STRICT)
    assert [line.partition(" and ")[0] for line in lines[:2]] == ["device_put: the data is float64"] * 2
    assert lines[2] == "0"


def test_a_callbacks_blocks_are_narrowed(line):
    sharding = ad.NamedSharding(line, ad.P("x"))
    source = np.arange(8) + 2**32
    with ad.enable_x64(False):
        for dtype in (None, np.int64, np.int32):
            made = ad.make_array_from_callback((8,), sharding, lambda index: source[index], dtype)
            assert made.dtype == np.int32
            assert np.asarray(made).tolist() == list(range(8))
        assert ad.make_array_from_process_local_data(sharding, source).dtype == np.int32
    assert ad.make_array_from_callback((8,), sharding, lambda index: source[index]).dtype == np.int64
