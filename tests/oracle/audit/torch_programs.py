# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch over gloo that runs DTensor programs: what CommDebugMode counts, our audit of it, and FX graphs.

python torch_programs.py RANK COUNT FILE    FILE is where the ranks meet; rank 0 prints a JSON line
"""

import json
import sys

import torch
import torch.distributed as dist
from artifex_devices import audit
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.fx.experimental.proxy_tensor import make_fx


def redistributed(mesh, source, target):
    """A function of one local tensor, and the tensor."""

    def function(local):
        return DTensor.from_local(local, mesh, source, run_check=False).redistribute(mesh, target).to_local()

    return function, torch.ones(8, 8)


def perceptron(mesh):
    """Forward and backward of two tensor-parallel layers, as torch.nn modules."""
    torch.manual_seed(0)
    layers = [torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16)) for _ in range(2)]
    model = torch.nn.Sequential(*layers)
    plan = {"0.0": ColwiseParallel(), "0.2": RowwiseParallel(), "1.0": ColwiseParallel(), "1.2": RowwiseParallel()}
    model = parallelize_module(model, mesh, plan)
    return lambda x: model(x).sum().backward(), torch.ones(8, 16, requires_grad=True)


def data_parallel(mesh):
    """The gradient of a replicated weight is a partial sum until it is replicated."""
    weight = distribute_tensor(torch.ones(8, 8, requires_grad=True), mesh, [Replicate()])

    def function(rows):
        x = DTensor.from_local(rows, mesh, [Shard(0)], run_check=False)
        (gradient,) = torch.autograd.grad((x @ weight).sum(), weight)
        return gradient.redistribute(mesh, [Replicate()]).to_local()

    return function, torch.ones(2, 8)


def fully_sharded(mesh):
    """The weight is gathered, its gradient is scattered."""
    weight = distribute_tensor(torch.ones(8, 8, requires_grad=True), mesh, [Shard(0)])

    def function(rows):
        x = DTensor.from_local(rows, mesh, [Shard(0)], run_check=False)
        (gradient,) = torch.autograd.grad((x @ weight.redistribute(mesh, [Replicate()])).sum(), weight)
        return gradient.to_local()

    return function, torch.ones(2, 8)


def programs():
    line, grid = init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    return {
        "gathered": redistributed(line, [Shard(0)], [Replicate()]),
        "summed": redistributed(line, [Partial()], [Replicate()]),
        "scattered": redistributed(line, [Partial()], [Shard(0)]),
        "exchanged": redistributed(line, [Shard(0)], [Shard(1)]),
        "two axes": redistributed(grid, [Partial(), Shard(0)], [Shard(1), Replicate()]),
        "perceptron": perceptron(line),
        "data parallel": data_parallel(line),
        "fully sharded": fully_sharded(line),
    }


def main(rank, count, meeting):
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=count)
    result = {}
    for name, (function, local) in programs().items():
        mode = CommDebugMode()
        with mode:
            function(local)
        row = {"counts": {str(op): number for op, number in mode.get_comm_counts().items()}}
        row["object"] = {each.kind: each.runs for each in audit.program(mode).collectives}
        if name != "perceptron":  # FX cannot trace backward() of modules
            graph = make_fx(function)(local)
            row["graphs"] = [str(graph.graph), graph.code, graph.print_readable(print_output=False)]
        result[name] = row
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(json.dumps(result))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
