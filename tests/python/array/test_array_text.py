# SPDX-License-Identifier: Apache-2.0
"""repr and str of Arrays: NumPy's text of the value, of which only the shown elements are read."""

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest

DTYPES = [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float64, np.complex64, ml_dtypes.bfloat16]


def value_of(shape, dtype):
    return (np.arange(np.prod(shape), dtype=np.float64).reshape(shape) % 97 - 40).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize(
    "shape", [(), (8,), (8, 16), (8, 4, 2), (2000,), (40, 80), (8, 1, 400), (4, 8, 4, 16)], ids=str
)
def test_a_sharded_array_prints_as_the_global_array(named, shape, dtype):
    value = value_of(shape, dtype)
    entries = [(), ("y",), ("x", "y"), ("x", None, "y"), ("y", "x")]
    for spec in entries:
        if len(spec) > len(shape) or any(
            axis and size % {"x": 2, "y": 4}[axis] for axis, size in zip(spec, shape, strict=False)
        ):
            continue
        array = ad.device_put(value, named(*spec))
        assert str(array) == str(value)
        whole = np.array2string(value, prefix="Array(", suffix=",", separator=", ")
        assert repr(array).startswith(f"Array({whole}, ")
        assert repr(array).endswith(f" dtype={value.dtype.name})")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros((0, 3), np.float32), "Array([], shape=(0, 3), dtype=float32)"),
        (np.float32(2.5), "Array(2.5, dtype=float32)"),
        (np.array([1, 2], ml_dtypes.bfloat16), "Array([1, 2], dtype=bfloat16)"),
        (np.arange(18) > 3, None),
    ],
)
def test_texts(value, text):
    if text is None:  # no room for the dtype: six blanks, as JAX writes it
        assert repr(ad.device_put(value)).endswith("True],      dtype=bool)")
    else:
        assert repr(ad.device_put(value)) == text


def test_str_of_an_empty_array():
    assert str(ad.device_put(np.zeros((0, 3)))) == "[]"


@pytest.mark.thread_unsafe(reason="it counts the transfers of all threads")
def test_only_the_edges_of_a_big_array_are_read(named, settled):
    array = ad.device_put(value_of((1024, 512), np.float32), named("x", "y"))
    in_use = ad.devices()[0].memory_stats()["pool_bytes_in_use"]
    with ad.transfers.record() as report:
        text = repr(array)
    assert text.count("...") == 7
    assert report.bytes() == 0  # nothing was gathered
    assert ad.devices()[0].memory_stats()["pool_bytes_in_use"] == in_use  # nor kept


def test_uneven_shards_print_as_the_global_array(line):
    value = value_of((2003,), np.int32)
    array = ad.device_put(value, ad.NamedSharding(line, ad.P("x"), uneven="last-short"))
    assert str(array) == str(value)
    assert len(repr(array)) < 200


def test_a_deleted_array_can_be_printed(named):
    array = ad.device_put(np.zeros((8, 4), np.float32), named("x", "y"))
    array.delete()
    assert repr(array) == "Array(shape=(8, 4), deleted, dtype=float32)"
    assert str(array) == repr(array)


def test_a_shard_prints_its_part(named):
    array = ad.device_put(np.arange(4000, dtype=np.int32), named("x"))
    assert str(array.addressable_shards[7].data) == "[2000 2001 2002 ... 3997 3998 3999]"


def test_numbers_have_formats():
    x = ad.device_put(np.float32(1.2345))
    assert f"{x:.2f}" == "1.23"
    assert f"{x}" == str(x)
    assert f"{ad.device_put(np.array(1.5, ml_dtypes.bfloat16)):.1f}" == "1.5"
    assert f"{ad.device_put(np.arange(3))}" == "[0 1 2]"
    with pytest.raises(TypeError, match=r"format: .* expected shape \(\), got \(3,\)"):
        f"{ad.device_put(np.arange(3)):.2f}"
