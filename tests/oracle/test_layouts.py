# SPDX-License-Identifier: Apache-2.0
"""Layouts beside jaxlib's: text, methods, and the bytes that XLA really puts into memory."""

import ctypes

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.layout import Format as OurFormat
from artifex_devices.layout import Layout as OurJaxLayout
from artifex_devices.xla_client import Layout, PjRtLayout
from both import jax
from jax.experimental.layout import Format
from jax.experimental.layout import Layout as JaxLayout
from jaxlib import xla_client

GIVEN = [
    ((1, 0),),
    ((),),
    ([2, 0, 1],),
    ((1, 0), [(8, 128)], 0),
    ((1, 0), ((8, 128), (2, 1)), 4),
    ((0, 1), [], 32),
    ((1, 0), [(Layout.COMBINE, 8)], 0),
    ((1, 0), [()], 0),
    ((0,), [(4, 8, 128)], 0),
]


@pytest.mark.parametrize("args", GIVEN)
def test_text_and_methods_agree(args):
    ours, theirs = Layout(*args), xla_client.Layout(*args)
    for name in ("to_string", "__str__", "minor_to_major", "tiling", "element_size_in_bits"):
        assert getattr(ours, name)() == getattr(theirs, name)()
    assert (ours == Layout((1, 0))) == (theirs == xla_client.Layout((1, 0)))


def their_parse(text):
    """jaxlib reads the text of a layout only where a PjRtLayout comes out of a pickle."""
    made = xla_client.PjRtLayout.__new__(xla_client.PjRtLayout)
    made.__setstate__((text.encode(),))
    return made


@pytest.mark.parametrize(
    "text",
    [
        "{1,0:T(8,128)(2,1)E(4)}",
        "{1,0:T(*,8)}",
        "{ 1 , 0 : T ( 8 , 128 ) }",
        "{1,0:T(8,128)L(2)E(4)}",
        "{1,0:}",
        "{}",
        "{:T(8)}",
        "{1,0} ",
        "{01,0}",
        "{1,0:L(1)E(0)S(0)}",
        "{1,0:L(1024)}",
    ],
)
def test_jaxlib_reads_the_same_from_text(text):
    theirs = their_parse(text)
    assert str(PjRtLayout(Layout.parse(text))) == str(theirs)
    assert str(theirs._xla_layout()) == str(Layout.parse(text))


@pytest.mark.parametrize(
    "text",
    ["", "1,0", "{1,,0}", "{1,0,}", "{1,0}x", "{+1,0}", "{1,0:T(8 128)}", "{1,0:E(4)T(8)}", "{1,0:S(1)E(4)}",
     "{99999999999999999999}", "{1,0:T(8,128)T(2,1)}", "{1,0:E(4)E(8)}"],
)  # fmt: skip
def test_both_refuse(text):
    with pytest.raises(jax.errors.JaxRuntimeError):
        their_parse(text)
    with pytest.raises(ValueError, match=r"Layout\.parse: character"):
        Layout.parse(text)


def test_layouts_that_jaxlib_takes_and_cannot_use_are_errors_here():
    for order in ((0, 0), (-1,), (5,)):
        assert xla_client.Layout(order).minor_to_major() == order
        with pytest.raises(ValueError, match="minor_to_major"):
            Layout(order)


@pytest.mark.parametrize(("shape", "tile"), [((3, 5), (2, 2)), ((3, 5), (8, 4)), ((4, 8), (2, 4)), ((7,), (4,))])
@pytest.mark.parametrize("turned", [False, True])
def test_tiles_take_the_bytes_that_xla_gives_them(shape, tile, turned):
    """Sizes only: the CPU backend reserves the padding, and stores the elements without tiles."""
    x = np.arange(1, np.prod(shape) + 1, dtype=np.int32).reshape(shape)
    order = tuple(range(x.ndim))[:: -1 if turned else 1]
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    theirs = jax.device_put(x, Format(JaxLayout(order, (tile,)), device))
    ours = OurJaxLayout(order, (tile,))._to_xla_layout(x.dtype)
    assert str(ours) == str(JaxLayout(order, (tile,))._to_xla_layout(x.dtype))
    assert ours.byte_size(shape, x.dtype) == theirs.on_device_size_in_bytes()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_bytes_without_tiles_are_where_xla_puts_them(order):
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    theirs = jax.device_put(x, Format(JaxLayout(order), device))
    memory = ctypes.string_at(theirs.unsafe_buffer_pointer(), x.nbytes)
    assert OurJaxLayout(order)._to_xla_layout(x.dtype).pack(x).tobytes() == memory


def test_small_elements_are_packed_in_xlas_order():
    x = np.array([1, 2, 3, -4, 5], ml_dtypes.int4)
    theirs = jax.device_put(x)
    memory = ctypes.string_at(theirs.unsafe_buffer_pointer(), 3)
    assert Layout((0,), [], 4).pack(x).tobytes() == memory


def described(x, again):
    return (
        repr(x.format.layout),
        str(x._pjrt_layout),
        np.asarray(x).strides,
        np.from_dlpack(x).strides,
        repr(again.format.layout),
        repr((x + x).format.layout),
        repr(x[0].format.layout),
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
