# SPDX-License-Identifier: Apache-2.0
"""Numbers at the ends of what an argument takes, and those just beyond."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint, cluster, models
from artifex_devices.calibration import calibrate
from artifex_devices.planner import (
    TrainingConfig,
    plan_collective,
    plan_inference,
    plan_reshard,
    suggest,
)
from artifex_devices.prefetch import prefetch_to_device
from artifex_devices.testing import kill, run_processes, stall

NODE = cluster.dgx("h100")
LLAMA = "llama-2-7b"
INT = 2**31
FIELDS = ("tensor", "context", "pipeline", "expert", "chunks", "microbatch", "data", "zero_shards", "expert_tensor")
OF_INFERENCE = ("batch", "prompt", "output", "tensor", "pipeline", "expert")


def opened(*arguments, **options):
    with ad.simulate(*arguments, **options):
        return ad.device_count()


def searched(**options):
    options = {"batch": 8, "sequence": 512, "tensor": 1, "pipeline": 1, "context": 1, "zero": 3, **options}
    return suggest(LLAMA, NODE, progress=False, **options)


def configured(**options):
    return TrainingConfig(batch=1, sequence=1, **options)


def inferred(**options):
    return plan_inference(LLAMA, NODE, **{"batch": 1, "prompt": 1, "output": 1, **options})


def reshard(**options):
    with ad.simulate(2):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        source, target = ad.NamedSharding(mesh, ad.P("x")), ad.NamedSharding(mesh, ad.P(None, "x"))
        return plan_reshard((4, 4), "float32", source, target, **options)


def nothing():
    return None


# A call with a number, and the least and the greatest number that it takes; None for any, or where that takes long.
TAKEN = {
    "seed of a world": (lambda n: opened(2, seed=n), 0, 2**64 - 1),
    "bytes of a world": (lambda n: opened(2, bytes_limit=n), 0, 2**63 - 1),
    "processes of a world": (lambda n: opened(2**16, processes=n), 1, 2**16),
    "seed of processes": (lambda n: run_processes(nothing, processes=2, seed=n), 0, 2**64 - 1),
    "devices of a process": (lambda n: run_processes(nothing, processes=1, devices=n), 1, 2**16),
    "process of a fault": (lambda n: stall(n, at="psum", seconds=1.0), 0, None),
    "call of a fault": (lambda n: kill(0, at="psum", call=n), 1, None),
    "bytes of a collective": (lambda n: plan_collective("all_gather", n, "chip", NODE), 0, 2**63),
    "top of a search": (lambda n: searched(top=n), 1, 1000),
    "largest tensor parallelism": (lambda n: searched(max_tensor=n), 1, 2**20),
    "top of meshes": (lambda n: suggest(models.transformer(LLAMA, batch=8, sequence=64), NODE, top=n), 1, 1000),
    "recomputed layers": (lambda n: configured(recompute="full", recompute_layers=n), 0, INT),
    "stage of ZeRO": (lambda n: configured(zero=n), 0, 3),
    "imbalance of experts": (lambda n: configured(expert_imbalance=n), 1, None),
    "tokens of a cache": (lambda n: models.SHAPES[LLAMA].cache_bytes(n), 1, INT),
    "nodes": (lambda n: cluster.dgx("h100", nodes=n), 1, None),
    "rows of a report": (lambda n: ad.memory.memory_report(top=n), 0, None),
    "batches ahead": (lambda n: prefetch_to_device(iter([]), buffer_size=n), 1, None),
    **{f"{name} of a configuration": (lambda n, name=name: configured(**{name: n}), 1, INT) for name in FIELDS},
    **{f"{name} of inference": (lambda n, name=name: inferred(**{name: n}), 1, None) for name in OF_INFERENCE},
}
# A call, and numbers that it refuses.
REFUSED = {
    "processes": (lambda n: run_processes(nothing, processes=n, devices=1), (0, 257)),
    "rounds of a calibration": (lambda n: calibrate(rounds=n), (0, 101)),
    "memory of a reshard": (lambda n: reshard(memory_limit=n), (-1, 2**63)),
    "step of a checkpoint": (lambda n: checkpoint.Manager("never made").restore(n), (-1, 10**18)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_numbers_at_the_ends_are_taken_and_those_beyond_are_refused(name):
    call, least, most = TAKEN[name]
    call(least)
    ends = [least - 1]
    if most is not None:
        call(most)
        ends.append(most + 1)
    for number in ends:
        with pytest.raises(ValueError, match=r": .*expected"):
            call(number)


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_beyond_the_ends_are_refused(name):
    call, numbers = REFUSED[name]
    for number in numbers:
        with pytest.raises(ValueError, match=r": .*expected"):
            call(number)
