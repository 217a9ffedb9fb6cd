# SPDX-License-Identifier: Apache-2.0
"""Views of views over DLPack and the buffer protocol, ours and NumPy's in turn, let go of in any order."""

import gc
import random
import threading

import numpy as np
import pytest
import tour

CHAINS = 100
VALUE = np.arange(1 << 12, dtype=np.int64)


def in_use():
    """Bytes that each device is charged."""
    import artifex_devices as ad

    gc.collect()
    return [each.memory_stats()["bytes_in_use"] for each in ad.devices()]


def view_of(last, draw):
    """The next one of a chain: ours of NumPy's, or NumPy's of ours."""
    from artifex_devices.dlpack import from_dlpack

    if isinstance(last, np.ndarray):
        return from_dlpack(last, copy=False)
    return np.asarray(memoryview(last)) if draw.random() < 0.2 else np.from_dlpack(last)


def forget(box):
    """What a thread of its own lets go of."""
    box.clear()


def chains(begin):
    """1 to 7 views of one value; each that is left has it; when the last is gone, nothing is charged."""
    import artifex_devices as ad

    for seed in range(CHAINS):
        draw = random.Random(seed)
        held = [ad.device_put(VALUE, ad.devices()[draw.randrange(8)]) if begin == "ours" else VALUE.copy()]
        for _ in range(draw.randint(1, 6)):
            held.append(view_of(held[-1], draw))
            assert np.shares_memory(np.asarray(held[-1]), np.asarray(held[0])), seed
        if draw.random() < 0.5:
            held[-1].__dlpack__(max_version=(1, 0))  # nobody takes it
        while len(held) > 1:
            gone = held.pop(draw.randrange(len(held)))
            if not isinstance(gone, np.ndarray) and draw.random() < 0.5:
                gone.delete()
                assert gone.is_deleted()
            if draw.random() < 0.3:
                thread = threading.Thread(target=forget, args=([gone],))
                del gone
                thread.start()
                thread.join()
            else:
                del gone
            for each in held:
                if isinstance(each, np.ndarray) or not each.is_deleted():
                    tour.equal(each, VALUE)
            del each
        held.clear()
        assert in_use() == [0] * 8, seed
    assert ad.live_arrays() == []


@pytest.mark.parametrize("begin", ["ours", "numpy"])
def test_views_of_views_go_in_any_order(own_process, begin):
    own_process(chains, begin)
