# SPDX-License-Identifier: Apache-2.0
"""Layouts beside jaxlib's: text, methods, and the bytes that XLA really puts into memory."""

import ctypes

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.layout import Format as OurFormat
from artifex_devices.layout import Layout as OurJaxLayout
from artifex_devices.xla_client import Layout, PjRtLayout
from both import jax
from jax.experimental.layout import Format
from jax.experimental.layout import Layout as JaxLayout
from jaxlib import xla_client


@pytest.mark.parametrize("order", [(1, 0), (), [2, 0, 1]])
def test_text_and_methods_agree(order):
    ours, theirs = Layout(order), xla_client.Layout(order)
    for name in ("to_string", "__str__", "minor_to_major"):
        assert getattr(ours, name)() == getattr(theirs, name)()
    assert (ours == Layout((1, 0))) == (theirs == xla_client.Layout((1, 0)))


def their_parse(text):
    """jaxlib reads the text of a layout only where a PjRtLayout comes out of a pickle."""
    made = xla_client.PjRtLayout.__new__(xla_client.PjRtLayout)
    made.__setstate__((text.encode(),))
    return made


@pytest.mark.parametrize("text", ["{1,0}", "{}", "{1,0} ", "{01,0}", "{ 1 , 0 }"])
def test_jaxlib_reads_the_same_from_text(text):
    theirs = their_parse(text)
    assert str(PjRtLayout(Layout.parse(text))) == str(theirs)
    assert str(theirs._xla_layout()) == str(Layout.parse(text))


@pytest.mark.parametrize(
    "text",
    ["", "1,0", "{1,,0}", "{1,0,}", "{1,0}x", "{+1,0}", "{1,0:T(8 128)}", "{1,0:E(4)T(8)}", "{99999999999999999999}"],
)
def test_both_refuse(text):
    with pytest.raises(jax.errors.JaxRuntimeError):
        their_parse(text)
    with pytest.raises(ValueError, match=r"Layout\.parse: "):
        Layout.parse(text)


def test_layouts_that_jaxlib_takes_and_cannot_use_are_errors_here():
    for order in ((0, 0), (-1,), (5,)):
        assert xla_client.Layout(order).minor_to_major() == order
        with pytest.raises(ValueError, match="minor_to_major"):
            Layout(order)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_bytes_are_where_xla_puts_them(order):
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    theirs = jax.device_put(x, Format(JaxLayout(order), device))
    ours = ad.device_put(x, OurFormat(OurJaxLayout(order), ad.devices()[0]))
    memory = [ctypes.string_at(each.unsafe_buffer_pointer(), x.nbytes) for each in (ours, theirs)]
    assert memory[0] == memory[1]


def described(x, again):
    return (
        x.format.layout.major_to_minor,
        str(x._pjrt_layout),
        np.asarray(x).strides,
        np.from_dlpack(x).strides,
        again.format.layout.major_to_minor,
        (x + x).format.layout.major_to_minor,
        x[0].format.layout.major_to_minor,
        x.on_device_size_in_bytes(),
    )


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_arrays_are_stored_alike(order):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    theirs = jax.device_put(x, Format(JaxLayout(order), place))
    ours = ad.device_put(x, OurFormat(OurJaxLayout(order), ad.devices()[0]))
    assert described(ours, ad.device_put(ours, ad.devices()[1])) == described(
        theirs, jax.device_put(theirs, jax.devices()[1])
    )
