# SPDX-License-Identifier: Apache-2.0
"""Python ints that 64 bits do not hold: an OverflowError with their size, wherever they become arrays."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import lax
from artifex_devices.sharding import P

BIG = 2**70
FITS = "the Python int does not fit 64 bits; expected an int from -2**63 to 2**64 - 1, got one of {} bits; pass {}"
FLOAT = "float(x), or several integers"


def big(_):
    return BIG


@pytest.mark.parametrize(
    ("call", "place", "bits"),
    [
        (lambda mesh: ad.device_put(BIG), "device_put: ", 71),
        (lambda mesh: ad.device_put(-(2**63) - 1), "device_put: ", 65),
        (lambda mesh: ad.device_put({"a": [1, BIG]}), "leaf ['a'][1]: device_put: ", 71),
        (lambda mesh: ad.jit(lambda a: a)(BIG), "jit(<lambda>): args[0]: ", 71),
        (lambda mesh: ad.jit(lambda a, b: b)([BIG], np.zeros(8)), "jit(<lambda>): args[0][0]: ", 71),
        (lambda mesh: ad.jit(lambda a: BIG)(np.zeros(8)), "jit(<lambda>): output: ", 71),
        (lambda mesh: ad.shard_map(lambda a: a, mesh, P(), P())(BIG), "shard_map(<lambda>): args[0]: ", 71),
        (lambda mesh: ad.shard_map(big, mesh, P("x"), P())(np.zeros(8)), "shard_map(big): output on cpu:0: ", 71),
        (lambda mesh: ad.pmap(lambda a, b: a, in_axes=(0, None))(np.zeros(8), BIG), "pmap(<lambda>): args[1]: ", 71),
        (lambda mesh: ad.pmap(lambda a: lax.psum(BIG, "i"), "i")(np.zeros(8)), "psum: ", 74),
        (lambda mesh: ad.pmap(lambda a: lax.psum({"k": BIG}, "i"), "i")(np.zeros(8)), "psum: ", 71),
        (lambda mesh: ad.pmap(lambda a: lax.pmax(BIG, "i"), "i")(np.zeros(8)), "pmax: ", 71),
        (lambda mesh: ad.pmap(lambda a: lax.all_gather(-BIG, "i"), "i")(np.zeros(8)), "all_gather: ", 72),
    ],
)  # fmt: skip
def test_ints_of_more_than_64_bits_are_refused_with_their_size(call, place, bits):
    with ad.simulate(8):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        with pytest.raises(OverflowError) as raised:
            call(mesh)
    assert str(raised.value) == place + FITS.format(bits, FLOAT)


def test_ints_beyond_every_float_are_refused_without_advice_to_convert_them():
    with pytest.raises(OverflowError) as raised:
        ad.device_put(10**5000)
    assert str(raised.value) == "device_put: " + FITS.format(16610, "several integers")
    assert ad.device_put(2**64 - 1).dtype == np.uint64
    assert ad.device_put(-(2**63)).item() == -(2**63)


def test_an_update_by_an_int_that_the_dtype_does_not_hold_is_refused():
    x = ad.device_put(np.zeros(3, np.uint8))
    with pytest.raises(OverflowError) as raised:
        x.at[0].set(256)
    assert str(raised.value) == (
        "at[...].set: a Python int does not fit the uint8 of the Array; expected 0 to 255, got 256; convert the Array "
        "first: x = x.astype(np.int64)"
    )
    names = {"x": x, "np": np}
    exec(str(raised.value).partition("first: ")[2], names)
    assert names["x"].at[0].set(256).tolist() == [256, 0, 0]
    with pytest.raises(OverflowError, match=r"got 1180591620717411303424, of 71 bits; .* x = x.astype\(float\)"):
        x.at[0].add(BIG)
