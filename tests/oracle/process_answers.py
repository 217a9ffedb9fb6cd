# SPDX-License-Identifier: Apache-2.0
"""One process of two with two CPU devices each, of JAX or of ours: prints its answers to the questions, a JSON line.

An answer is ["value", v] or ["error", names of the exception's class and its bases]. Both processes ask all questions
in this order. test_process_deviations.py starts them: `jax RANK PORT` here, `ours` under mpiexec.
"""

import json
import os
import sys

import numpy as np

X = np.arange(16, dtype=np.float32).reshape(4, 4)


def start_jax(rank, port):
    """JAX's package, joined to the other process over gloo, and the number of this process."""
    import jax
    from jax import sharding

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank)
    return jax, sharding, rank


def start_ours():
    """Our package, joined to the other process over MPI, and the number of this process."""
    import artifex_devices
    from artifex_devices import sharding

    artifex_devices.distributed.initialize()
    return artifex_devices, sharding, artifex_devices.process_index()


def parts_here(x):
    return [np.asarray(shard.data).tolist() for shard in x.addressable_shards]


def questions(lib, sharding, rank):
    """Name and question; what they share is made at once."""
    mesh = lib.make_mesh((4,), ("x",))
    rows, columns = (sharding.NamedSharding(mesh, sharding.PartitionSpec(*spec)) for spec in (("x",), (None, "x")))
    first_two = sharding.Mesh(np.array(lib.devices()[:2]), ("x",))
    rows_of_first = sharding.NamedSharding(first_two, sharding.PartitionSpec("x"))
    cut = lib.make_array_from_callback(X.shape, rows, X.__getitem__)
    yield "ids", lambda: [device.id for device in lib.devices()]
    yield "local_hardware_id", lambda: [device.local_hardware_id for device in lib.devices()]
    yield "start of a copy to the host", lambda: lib.copy_to_host_async(cut) is not None
    yield "parts here after that", lambda: parts_here(cut)
    yield "the whole after that", lambda: np.asarray(cut).tolist()
    yield "an Array to other shards on the same devices", lambda: parts_here(lib.device_put(cut, columns))
    yield "an Array to the devices of one process", lambda: parts_here(lib.device_put(cut, rows_of_first))
    yield "an Array to one device", lambda: parts_here(lib.device_put(cut, lib.devices()[3]))
    yield "a product with an uncommitted Array", lambda: parts_here(cut * lib.device_put(np.float32(2)))
    yield "values that differ", lambda: parts_here(lib.device_put(X + rank, rows))


def answer(question):
    try:
        return ["value", question()]
    except Exception as error:
        return ["error", [kind.__name__ for kind in type(error).__mro__]]


if __name__ == "__main__":
    os.environ |= {"JAX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"}
    started = start_ours() if sys.argv[1] == "ours" else start_jax(int(sys.argv[2]), sys.argv[3])
    answers = {name: answer(question) for name, question in questions(*started)}
    sys.stdout.write(json.dumps({"process": started[2], "answers": answers}) + "\n")
