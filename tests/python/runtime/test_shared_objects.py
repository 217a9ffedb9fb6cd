# SPDX-License-Identifier: Apache-2.0
"""Eight threads use the same objects, caches and registries at once, with exact results.

With the GIL these tests find a wait that drops it in the middle of a change; without it they find data that nothing
guards.
"""

import dataclasses
import warnings

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices._core import internal
from artifex_devices.prefetch import prefetch_to_device
from artifex_devices.testing import assert_same_bits
from many_threads import THREADS, together

ROUNDS = 40
SMALL = np.arange(64, dtype=np.float32).reshape(8, 8)


def one(objects):
    """The object that all of them are."""
    assert all(each is objects[0] for each in objects), {id(each) for each in objects}
    return objects[0]


def test_the_parts_of_one_array_are_the_same_in_all_threads(named):
    for _ in range(ROUNDS):
        x = ad.device_put(SMALL, named("x", "y"))

        def look(_, x=x):
            assert_same_bits(np.asarray(x), SMALL)
            assert (x.shape, x.dtype, x.size, x.is_deleted()) == ((8, 8), np.float32, 64, False)
            shards = x.addressable_shards
            for shard in shards:
                assert_same_bits(np.asarray(shard.data), SMALL[shard.index])
            return shards, [shard.data for shard in shards], x.sharding.device_set, x.sharding.spec

        shards, parts, devices, specs = zip(*together(look), strict=True)
        for at in range(8):
            one([each[at] for each in shards])
            one([each[at] for each in parts])
        assert devices == (set(ad.devices()),) * THREADS
        assert specs == (ad.P("x", "y"),) * THREADS


def test_equal_meshes_made_at_once_are_one_object_and_caches_give_each_thread_what_it_asked_for():
    names = [f"axis{number}" for number in range(THREADS)]
    for round_ in range(ROUNDS):
        with ad.simulate(8, all_threads=True):

            def make(number, round_=round_):
                shared = ad.Mesh(np.array(ad.devices()).reshape(4, 2), (f"shared{round_}", "y"))
                own = ad.Mesh(np.array(ad.devices()), (names[number],))
                for _ in range(20):
                    for at, name in enumerate(names):
                        spec = ad.P(None, name) if (number + at) % 2 else ad.P(name)
                        assert spec.partitions == ((None, name) if (number + at) % 2 else (name,))
                    assert ad.NamedSharding(own, ad.P(names[number])).mesh is own
                    assert own.devices[number] is ad.devices()[number]
                index = ad.NamedSharding(shared, ad.P("y")).devices_indices_map((4 + 2 * number, 3))
                assert {each[0].stop for each in index.values()} == {2 + number, 4 + 2 * number}
                return shared, ad.devices()

            meshes, devices = zip(*together(make), strict=True)
            assert len(one(meshes).devices.flat) == 8
            for at in range(8):
                one([each[at] for each in devices])


def test_a_sharding_that_threads_receive_at_once_has_its_value():
    with ad.simulate(8, all_threads=True):
        mesh = ad.Mesh(np.array(ad.devices()).reshape(4, 2), ("x", "y"))
        x = ad.device_put(SMALL, ad.NamedSharding(mesh, ad.P("x")))

    def work(_):
        for _ in range(2000):
            sharding = x.sharding  # a new object unless another thread has one: caches keep those of open worlds only
            assert internal.sharding_with(sharding, (("y",),)).spec == ad.P("y")
            del sharding

    together(work)


def test_a_report_counts_the_transfers_of_all_threads(devices):
    with ad.transfers.record() as report:
        together(lambda number: [ad.device_put(SMALL + i, devices[number]) for i in range(20)])
    assert (report.calls("host-to-device"), report.bytes("host-to-device")) == (20 * THREADS, 20 * THREADS * 256)
    assert sum(line.calls for line in report.lines) == 20 * THREADS


def test_scopes_hold_in_their_thread_only(devices):
    def work(number):
        for _ in range(ROUNDS):
            with ad.default_device(devices[number]):
                x = ad.device_put(SMALL)
                assert x.devices() == {devices[number]}
                with ad.enable_x64(number % 2 == 0):
                    expected = np.float64 if number % 2 == 0 else np.float32
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        assert ad.device_put(np.ones(3)).dtype == expected
                with ad.transfer_guard("disallow"):
                    if number % 2:
                        with pytest.raises(Exception, match="disallow"):
                            x + SMALL
        assert ad.device_put(SMALL).devices() == {devices[0]}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first narrowing warns
        together(work)


def test_each_thread_prefetches_its_own_batches(named):
    def work(number):
        batches = [SMALL * number + i for i in range(30)]
        placed = list(prefetch_to_device(iter(batches), named("x"), 3))
        for batch, array in zip(batches, placed, strict=True):
            assert_same_bits(np.asarray(array), batch)

    together(work)


@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_one_mapped_function_runs_in_all_threads(line, executor):
    @ad.shard_map(mesh=line, in_specs=ad.P("x"), out_specs=(ad.P(), ad.P("x")), executor=executor)
    def sums(block):
        total = ad.lax.psum(block, "x")
        return total, ad.lax.all_gather(block, "x", tiled=True)[:1] + total

    def work(number):
        x = SMALL + number
        for _ in range(10):
            total, rows = sums(x)
            assert_same_bits(np.asarray(total), x.sum(axis=0, keepdims=True))
            assert_same_bits(np.asarray(rows), np.repeat(x[:1] + x.sum(axis=0), 8, axis=0))

    together(work)


def test_programs_of_two_sessions_meet_only_themselves(line):
    @ad.shard_map(mesh=line, in_specs=ad.P("x"), out_specs=ad.P())
    def inner(block):
        return ad.lax.psum(block, "x")

    @ad.shard_map(mesh=line, in_specs=ad.P("x"), out_specs=ad.P("x"), executor="threads")
    def outer(block):
        return ad.lax.psum(block, "x") + np.asarray(inner(np.repeat(block, 8, axis=0)))

    def work(number):
        x = SMALL[:, :1] + number
        for _ in range(3):
            expected = x.sum() + 8 * x
            assert_same_bits(np.asarray(outer(x)), expected)

    together(work, threads=4)


def test_types_are_registered_while_trees_are_flattened():
    kinds = [dataclasses.make_dataclass(f"Kind{number}", ["a", "b"]) for number in range(THREADS)]

    def work(number):
        kind = kinds[number]
        ad.tree_util.register_dataclass(kind, ["b"], ["a"])
        tree = {f"key{i}": kind(i, [number, {"z": i, "y": None}]) for i in range(number + 1)}
        for _ in range(ROUNDS):
            leaves, treedef = ad.tree.flatten(tree)
            expected = [leaf for key in sorted(tree) for leaf in (number, int(key[3:]))]
            assert leaves == expected
            assert ad.tree.unflatten(treedef, leaves) == tree
            assert len(ad.tree_util.tree_flatten_with_path(tree)[0]) == 2 * (number + 1)

    together(work)


def test_a_dict_that_another_thread_changes_is_flattened_as_it_was_at_one_moment():
    shared = {"a": 0, "b": 0}

    def work(number):
        for i in range(2000):
            if number == 0:
                shared["b"] = i
                shared.pop("c", None) if i % 2 else shared.setdefault("c", i)
                continue
            leaves, treedef = ad.tree.flatten(shared)
            keys = treedef.node_data()[1]
            assert (len(leaves), leaves[0], keys) in ((2, 0, ["a", "b"]), (3, 0, ["a", "b", "c"]))

    together(work, threads=4)


def test_a_list_that_another_thread_changes_is_flattened_without_a_crash():
    shared = [[1], 2, {"a": 3}]

    def work(number):
        for i in range(2000):
            if number == 0:
                shared.pop() if len(shared) > 3 else shared.append([i])
                continue
            assert len(ad.tree.leaves(shared)) in (3, 4)

    together(work, threads=4)


def test_caches_are_cleared_and_options_change_while_other_threads_use_them(line):
    @ad.shard_map(mesh=line, in_specs=ad.P("x"), out_specs=ad.P())
    def total(block):
        return ad.lax.psum(block, "x")

    before = ad.config.spmd_threads_bytes

    def work(number):
        for i in range(ROUNDS):
            if number == 0:
                ad.clear_caches()
                ad.config.update("spmd_threads_bytes", (1, 1 << 20)[i % 2])  # the executor of the program
                continue
            mesh = ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("a", "b"))
            spec = ad.P("b", ("a",) if i % 2 else None)
            x = ad.reshard(ad.device_put(SMALL, ad.NamedSharding(mesh, spec)), ad.NamedSharding(mesh, ad.P("a")))
            assert (x.sharding.mesh, x.sharding.spec) == (mesh, ad.P("a", None))
            assert_same_bits(np.asarray(x), SMALL)
            tree = {"b": x, "a": [number, i]}
            assert ad.tree.leaves(tree) == [number, i, x]
            assert_same_bits(np.asarray(total(SMALL + number)), (SMALL + number).sum(axis=0, keepdims=True))

    try:
        together(work, threads=4)
    finally:
        ad.config.update("spmd_threads_bytes", before)
