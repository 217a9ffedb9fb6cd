# SPDX-License-Identifier: Apache-2.0
"""Layouts and formats compare by value, and one that does not say the order fits all ranks."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P
from artifex_devices.layout import Format, Layout


@pytest.fixture(scope="module")
def rows():
    with ad.simulate(2):
        yield ad.NamedSharding(ad.make_mesh((2,), ("x",)), P("x"))


def test_equal_formats_are_one_key(rows):
    formats = [
        Format(Layout((0, 1)), rows),
        Format(Layout([0, 1]), rows),
        Format(Layout((1, 0)), rows),
        Format(None, rows),
        Format(Layout((0, 1)), ad.NamedSharding(rows.mesh, P())),
    ]
    assert formats[0] == formats[1]
    assert hash(formats[0]) == hash(formats[1])
    assert len(set(formats)) == 4
    assert formats[0] != formats[0].layout
    assert Layout((0, 1)) != (0, 1)
    assert repr(formats[3]) == f"Format(layout=None, sharding={rows!r})"


def test_a_format_without_an_order_fits_each_rank(rows):
    for shape in ((4,), (4, 2)):
        struct = ad.ShapeDtypeStruct(shape, np.float32, sharding=Format(None, rows))
        assert (struct.shape, struct.sharding) == (shape, rows)
    with pytest.raises(ValueError, match=r"^ShapeDtypeStruct: "):
        ad.ShapeDtypeStruct((4,), np.float32, sharding=Format(Layout((0, 1)), rows))
