# SPDX-License-Identifier: Apache-2.0
"""NamedSharding and SingleDeviceSharding: which device holds what."""

import pickle

import numpy as np
from artifex_devices.sharding import NamedSharding, P
from artifex_devices.testing import assert_shards_tile, mesh_layouts, shardings, spec_entries
from artifex_devices.testing.sharding_strategies import partition_counts
from hypothesis import given
from hypothesis import strategies as st

WHOLE = slice(None, None, None)


@given(shardings(), shardings())
def test_equal_shardings_hash_alike_and_survive_pickling(left, right):
    assert left == left
    assert (left == right) is (right == left)
    assert left != right or hash(left) == hash(right)
    again = pickle.loads(pickle.dumps(left))
    assert again == left
    assert hash(again) == hash(left)
    assert repr(again) == repr(left)


@given(st.data(), mesh_layouts())
def test_last_short_cuts_into_chunks_of_the_rounded_up_size(data, layout):
    entries = data.draw(spec_entries(layout.axis_names, min_rank=1))
    shape = tuple(data.draw(st.lists(st.integers(0, 11), min_size=len(entries), max_size=4)))
    sharding = NamedSharding(layout.mesh(), P(*entries), uneven="last-short")
    for position, index in enumerate(sharding.devices_indices_map(shape).values()):
        where = dict(zip(layout.axis_names, np.unravel_index(position, layout.axis_sizes), strict=True))
        for dimension, parts in enumerate(partition_counts(entries, layout.sizes_by_name)):
            if parts == 1:
                assert index[dimension] == WHOLE
                continue
            entry = entries[dimension]
            part = 0
            for axis in entry if isinstance(entry, tuple) else (entry,):
                part = part * layout.sizes_by_name[axis] + int(where[axis])
            chunk = -(-shape[dimension] // parts)
            begin, end = (min(shape[dimension], chunk * at) for at in (part, part + 1))
            assert len(range(*index[dimension].indices(shape[dimension]))) == end - begin
            if end > begin:
                assert index[dimension] == slice(begin, end, None)
    assert_shards_tile(sharding, shape)


def test_last_short_keeps_its_option(named):
    sharding = named("y", uneven="last-short")
    assert sharding.uneven == "last-short"
    assert named("y").uneven is None
    assert sharding.shard_shape((10,)) == (3,)
    sizes = [s[0].stop - s[0].start for s in sharding.devices_indices_map((10,)).values()]
    assert sizes == [3, 3, 3, 1, 3, 3, 3, 1]
    assert pickle.loads(pickle.dumps(sharding)).uneven == "last-short"


def test_shapes_may_be_numpy_integers_lists_and_arrays(named):
    for shape in ((np.int64(8),), [8], np.array([8])):
        answer = named("x").shard_shape(shape)
        assert answer == (4,)
        assert type(answer[0]) is int
