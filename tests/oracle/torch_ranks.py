# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch, over gloo, that saves or loads a checkpoint of DTensors.

python torch_ranks.py save|save-distcp|load RANK COUNT FOLDER FILE    FILE is where the ranks meet
"""

import json
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, zeros

SHAPE = (7, 6, 5)


def main(action, rank, count, folder, meeting):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=count)
    line = init_device_mesh("cpu", (count,))
    columns = 2 if count % 2 == 0 else 1
    grid = init_device_mesh("cpu", (count // columns, columns))
    placed = {
        "rows": (line, [Shard(0)]),
        "columns": (line, [Shard(1)]),
        "last": (line, [Shard(2)]),
        "replicated": (line, [Replicate()]),
        "grid": (grid, [Shard(0), Shard(1)]),
        "copies": (grid, [Replicate(), Shard(1)]),
        "half": (grid, [Shard(1), Shard(0)]),
    }
    dtypes = {"half": torch.bfloat16, "last": torch.int32}
    numbers = torch.arange(np.prod(SHAPE)).reshape(SHAPE)

    def value(name):
        return (numbers + len(name)).to(dtypes.get(name, torch.float32))

    if action in ("save", "save-distcp"):
        state = {name: distribute_tensor(value(name), mesh, where) for name, (mesh, where) in placed.items()}
        writer = dcp.FileSystemWriter(folder)
        if action == "save":
            writer = dcp.HuggingFaceStorageWriter(folder, save_distributed=True)
        dcp.save({**state, "plain": value("plain")}, storage_writer=writer)
        result = sorted(state)
    else:
        state = {
            name: zeros(*SHAPE, dtype=dtypes.get(name, torch.float32), device_mesh=mesh, placements=where)
            for name, (mesh, where) in placed.items()
        }
        plain = torch.zeros(SHAPE)
        dcp.load({**state, "plain": plain}, storage_reader=dcp.HuggingFaceStorageReader(folder))
        result = [
            name
            for name, (mesh, where) in placed.items()
            if torch.equal(state[name].to_local(), distribute_tensor(value(name), mesh, where).to_local())
        ]
        result = sorted(result) + ["plain"] * torch.equal(plain, value("plain"))
    dist.barrier()
    dist.destroy_process_group()
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
