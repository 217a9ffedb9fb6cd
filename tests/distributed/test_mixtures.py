# SPDX-License-Identifier: Apache-2.0
"""Processes that raise, leave early, disagree, nest or are killed, in seeded mixtures: a value or an error in all."""

import sys

import numpy as np
import pytest
from launching import end_without_notice

OPERATIONS = ["sum", "sum in threads", "reshard", "gather", "barrier"]
FAULTS = ["none", "raise", "leave", "other operation", "killed", "one more"]


class OwnError(Exception):
    pass


def drawn(seed, count):
    """The steps of all processes, and who does what wrong at which of them."""
    random = np.random.default_rng(seed)
    steps = [str(each) for each in random.choice(OPERATIONS, int(random.integers(2, 6)))]
    return steps, FAULTS[seed % len(FAULTS)], int(random.integers(count)), int(random.integers(len(steps)))


def do(operation):
    """One operation of all processes, its value checked; one of them runs a program within a program."""
    import artifex_devices as ad
    from artifex_devices import P, lax, multihost_utils

    devices = ad.devices()
    size = len(devices)
    mesh = ad.Mesh(np.array(devices), ("x",))
    if operation.startswith("sum"):

        def body(block):
            local = ad.Mesh(np.array(ad.local_devices()), ("y",))
            nested = ad.shard_map(lambda b: lax.psum(b, "y"), local, P("y"), P())(np.ones(local.size))
            assert np.asarray(nested).tolist() == [local.size]
            return lax.psum(block, "x")

        executor = "threads" if operation.endswith("threads") else "cooperative"
        made = ad.shard_map(body, mesh, in_specs=P("x"), out_specs=P(), executor=executor)(np.arange(float(size)))
        assert np.asarray(made.addressable_data(0)).tolist() == [size * (size - 1) / 2]
    elif operation == "reshard":
        value = np.arange(size * size * 3).reshape(size, size * 3)
        rows = ad.device_put(value, ad.NamedSharding(mesh, P("x")))
        for shard in ad.device_put(rows, ad.NamedSharding(mesh, P(None, "x"))).addressable_shards:
            assert np.asarray(shard.data).tolist() == value[shard.index].tolist()
    elif operation == "gather":
        found = multihost_utils.process_allgather(np.array([ad.process_index()]))
        assert np.asarray(found).ravel().tolist() == list(range(ad.process_count()))
    else:
        multihost_utils.sync_global_devices("here")


def mixture(seed, count):
    import artifex_devices as ad

    steps, fault, who, when = drawn(seed, count)
    for number, operation in enumerate(steps):
        if (ad.process_index(), number) == (who, when):
            if fault == "raise":
                raise OwnError(seed)
            if fault == "leave":
                sys.exit(0)
            if fault == "killed":
                end_without_notice()
            if fault == "other operation":
                do("gather" if operation == "barrier" else "barrier")
            if fault == "one more":
                do("reshard" if operation == "gather" else "gather")
        do(operation)
    do("barrier")
    return "done"


@pytest.mark.parametrize("seed", range(12))
def test_any_mixture_of_faults_is_a_value_or_an_error_everywhere(processes, seed):
    count = 2 + seed % 3
    _, fault, who, _ = drawn(seed, count)
    job = processes(count, mixture, seed, count, shielded=True)
    if fault == "none":
        assert job.values == ["done"] * count
        return
    errors = job.errors
    own = {"raise": ("OwnError", str(seed)), "leave": ("SystemExit", "0"), "killed": None}
    if fault in own:
        assert errors[who] == own[fault], str(job)
    for number, error in enumerate(errors):
        if number != who or fault not in own:
            assert error is not None, str(job)
            assert error[0] == "CollectiveError", str(job)
            assert f"process {who}" in error[1], str(job)
