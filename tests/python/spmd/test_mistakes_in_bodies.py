# SPDX-License-Identifier: Apache-2.0
"""Errors that NumPy raises in bodies for what JAX allows say what to write."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import P


def test_a_write_to_a_block_is_explained():
    def in_place(x):
        x += 1
        return x

    def by_at(x):
        return x.at[0].set(1.0)

    repairs = {
        in_place: ("output array is read-only", "copy the block first: x = x.copy()"),
        by_at: ("has no attribute 'at'", "write x = x.copy(); x[i] = v"),
    }
    with ad.simulate(8):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        for body, (cause, repair) in repairs.items():
            for function in (ad.shard_map(body, mesh, P("x"), P("x")), ad.pmap(body)):
                with pytest.raises((ValueError, AttributeError), match=cause) as raised:
                    function(np.zeros((8, 2)))
                assert str(raised.value).endswith(repair)
                assert len(raised.value.__notes__) == 1  # the table of the participants
                block = np.zeros(2)
                block.flags.writeable = False
                names = {"x": block, "i": 0, "v": 1.0}
                exec(repair.partition("x = ")[1] + repair.partition("x = ")[2], names)
                names["x"] += 1
