# SPDX-License-Identifier: Apache-2.0
"""Client.get_default_layout: row-major."""

from __future__ import annotations

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import xla_client


@pytest.fixture(scope="module")
def client():
    """A client of 2 devices."""
    return xla_client.make_cpu_client(num_devices=2)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), [4, 0, 1]])
@pytest.mark.parametrize("dtype", [np.float32, "int8", np.dtype("complex128"), bool])
def test_is_row_major(client, dtype, shape) -> None:
    layout = client.get_default_layout(dtype, shape, client.devices()[1])
    assert isinstance(layout, xla_client.PjRtLayout)
    assert layout._xla_layout() == xla_client.Layout(tuple(range(len(shape)))[::-1])


def test_takes_the_types_of_ml_dtypes(client) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed").bfloat16
    assert str(client.get_default_layout(bfloat16, (2, 3), client.devices()[0])) == "{1,0}"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("text", (2,)), TypeError, "text"),
        ((object, (2,)), TypeError, "object"),
        (("S3", (2,)), TypeError, "S3"),
        (("f4,i4", (2,)), TypeError, "dtype"),
        (("M8[s]", (2,)), TypeError, "datetime64"),
        (("f4", 2), TypeError, "shard_shape is the number 2"),
        (("f4", (2.0,)), TypeError, "shard_shape"),
        (("f4", (2, -1)), ValueError, r"negative size; expected sizes of 0 or more, got \(2, -1\)"),
    ],
)
def test_refuses(client, arguments, error, text) -> None:
    with pytest.raises(error, match=text):
        client.get_default_layout(*arguments, client.devices()[0])


def test_refuses_other_devices(client) -> None:
    with pytest.raises(TypeError, match="device is of type int"):
        client.get_default_layout("f4", (2,), 0)
    with pytest.raises(ValueError, match="another client"):
        client.get_default_layout("f4", (2,), ad.devices()[0])
