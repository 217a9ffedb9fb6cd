# SPDX-License-Identifier: Apache-2.0
"""The whole output of commands about described machines and clusters."""

import json
import re
import shlex
import textwrap

import pytest
from artifex_devices.command_line import main
from recorded_texts import check_recorded

MODEL = """\
name = "small"
layers = 2
embed = 64
mlp = 256
heads = 4
kv_heads = 2
head_dim = 16
vocab = 1000
experts = 4
experts_per_token = 2
"""
LAB = """\
name = "lab"
slices = 2

[chip]
name = "TPU v5e"
memory_bytes = 1.7e10

[slice]
dims = [2, 4]
wraps = [false, true]
bandwidth = 5e10
latency = 1e-6

[network]
bandwidth = 2.5e10
latency = 1e-5
"""
V5E = "--cluster 'tpu v5e 4x4' --mesh x=4,y=4"
RUN = "--batch 256 --sequence 4096 --cluster 'dgx h100 nodes=4'"
COMMANDS = {
    "plans_of_meshes": [
        f"plan mesh {V5E}",
        "plan mesh --cluster 'tpu v4 4x4x8' --mesh data=16,model=8",
        "plan mesh --cluster 'tpu v4 4x4x8' --mesh data=16,model=8 --order exact --split",
        "plan mesh --cluster 'tpu v4 4x4x8' --mesh data=16,model=8 --order id",
        "plan mesh --cluster 'tpu v4 4x4x8' --mesh a=3,b=5",
        "plan mesh --cluster 'tpu v5e 4x4' --mesh a=5",
        "plan mesh --cluster 'tpu v5e 4x4 slices=2' --mesh data=8,model=4 --slices data=2",
        "plan mesh --cluster 'tpu v5e 4x4 slices=2' --mesh data=8,model=4 --slices data=2,model=3",
        "plan mesh --cluster 'dgx h100 nodes=2' --mesh data=4,model=4",
        "plan mesh --cluster 'nvl72 racks=2' --mesh data=2,model=72",
        "plan mesh --cluster 'gpus h200 nodes=2 chips_per_node=4' --mesh a=8",
        "plan mesh --cluster lab.toml --mesh x=4,y=4",
        "plan mesh --cluster lab.toml --mesh x=4,y=4 --slices x=2",
        "plan mesh --cluster 'tpu v5e 4x4' --mesh x",
        "plan mesh --cluster 'tpu v5e 4x4' --mesh x=0",
        "plan mesh --cluster 'tpu v5e 4x4' --mesh x=4,x=4",
        "plan mesh --cluster 'tpu v9 4x4' --mesh x=4",
        "plan mesh --cluster 'tpu v5e 4x' --mesh x=4",
        "plan mesh --cluster none.toml --mesh x=4",
        *(
            f"plan mesh --cluster '{text}' --mesh x=4"
            for text in (
                "tpu v5e",
                "v5e",
                "tpu v4",
                "tpu v4 8",
                "tpu v5p 4x4",
                "tpu v5e 64",
                "tpu",
                "v4 2x2x4",
                "h100",
                "",
            )
        ),
        f"plan mesh {V5E} --json",
        "plan mesh --cluster 'tpu v5e 2x2' --mesh x=2,y=2 --svg",
    ],
    "plans_of_reshards": [
        f"plan reshard 'bfloat16[4096,4096]' x,_ _,x {V5E}",
        f"plan reshard 'bfloat16[4096,4096]' x,_ _,x {V5E} --way copies",
        f"plan reshard 'bfloat16[4096,4096]' x,_ _,x {V5E} --way collectives",
        f"plan reshard 'float32[8192,8192]' 'P(x, y)' 'P()' {V5E}",
        f"plan reshard 'float32[8192,8192]' 'P((x, y), None)' 'P(y, x)' {V5E}",
        f"plan reshard 'float32[8192,8192]' 'P((x, y), None)' 'P()' {V5E} --memory-limit 64MiB",
        f"plan reshard 'float32[100,30]' x,_ _,y {V5E}",
        f"plan reshard 'int8[16]' _ x {V5E}",
        f"plan reshard 'int8[16]' x x {V5E}",
        f"plan reshard 'int8[0,16]' x,_ _,x {V5E}",
        "plan reshard 'bfloat16[65536,65536]' x+y,_ _,x --cluster 'dgx h100 nodes=2' --mesh x=2,y=8 "
        "--memory-limit 1GiB --way collectives",
        "plan reshard 'bfloat16[65536,65536]' x,_ _,y --cluster 'dgx h100 nodes=2' --mesh x=2,y=8",
        "plan reshard 'float32[1024,1024]' x,_ _,x --cluster lab.toml --mesh x=4,y=4",
        "plan reshard 'float32[1024,1024]' x,_ _,x --cluster lab.toml --mesh x=4,y=4 --slices x=2",
        "plan mesh --cluster 'lab.toml spam=1' --mesh x=16",
        f"plan reshard 'float33[4]' x _ {V5E}",
        f"plan reshard 'float32[4' x _ {V5E}",
        f"plan reshard 'float32[4]' z _ {V5E}",
        f"plan reshard 'float32[4]' x,y _ {V5E}",
        *(f"plan reshard 'float32[4]' '{spec}' _ {V5E}" for spec in ("P(x, y=1)", "P(x) + P(y)", "P(x)(y)", "P(x, 1)")),
        f"plan reshard 'float32[4]' x _ {V5E} --memory-limit 1XB",
        "plan reshard 'bfloat16[64,64]' x,_ _,x --cluster 'tpu v5e 2x2' --mesh x=2,y=2 --json",
        "plan reshard 'bfloat16[64,64]' x,_ _,x --cluster 'tpu v5e 2x2' --mesh x=2,y=2 --svg",
    ],
    "plans_of_collectives": [
        *(
            f"plan collective {op} 33.6MB {axes} --cluster 'tpu v5e 4x4'"
            for op in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast")
            for axes in ("x", "x,y")
        ),
        "plan collective all_reduce 1GB slice,chip --cluster 'dgx h100 nodes=4'",
        "plan collective all_reduce 1GB chip --cluster 'dgx h100 nodes=4'",
        "plan collective all_gather 1kB x --cluster 'tpu v5p 4x4x8'",
        "plan collective permute 1GB x --perm 0:1,1:2,2:3,3:0 --cluster 'tpu v5e 4x4'",
        "plan collective permute 1GB x --perm 0:2,1:3 --cluster 'tpu v5e 4x4'",
        "plan collective reduce_scatter 1GiB model --cluster 'tpu v4 4x4x8' --mesh data=16,model=8",
        "plan collective all_reduce 1GiB model,data --cluster 'tpu v4 4x4x8' --mesh data=16,model=8",
        "plan collective all_reduce 1GiB x --cluster lab.toml",
        "plan collective all_gather 1GiB z --cluster 'tpu v5e 4x4'",
        "plan collective all_gather 1GiB x --perm 0:1 --cluster 'tpu v5e 4x4'",
        "plan collective permute 1GiB x --cluster 'tpu v5e 4x4'",
        "plan collective permute 1GiB x --perm 0:9 --cluster 'tpu v5e 4x4'",
        "plan collective permute 1GiB x --perm 0 --cluster 'tpu v5e 4x4'",
        "plan collective gather 1GiB x --cluster 'tpu v5e 4x4'",
        "plan collective all_gather 1GiB x --cluster 'tpu v5e 4x4' --json",
    ],
    "plans_of_steps": [
        "plan step llama-2-7b --batch 64 --sequence 4096 --cluster 'tpu v5p 4x4x4' --mesh data=16,model=4 "
        "--rules batch=data,embed=data,mlp=model,kv_heads=model,vocab=model",
        "plan step llama-2-7b --batch 64 --sequence 4096 --cluster 'tpu v5e 2x2' --mesh data=4 --rules batch=data",
        "plan step llama-3-8b --batch 16 --sequence 1 --forward --cache 8192 --cluster 'dgx h100' --mesh model=8 "
        "--rules kv_heads=model,mlp=model,vocab=model",
        "plan step mixtral-8x7b --batch 32 --sequence 2048 --cluster 'dgx h100 nodes=4' --mesh data=4,model=8 "
        "--rules batch=data,embed=data,experts=model --keep layers",
        *(
            f"plan step small.toml --batch 8 --sequence 128 --cluster 'tpu v5e 2x2' --mesh x=2,y=2 --order id "
            f"--rules batch=x,mlp=y {more}"
            for more in ("", "--keep all", "--keep layers", "--forward", "--forward --cache 64", "--dtype float32")
        ),
        "plan step small.toml --batch 8 --sequence 128 --cluster lab.toml --mesh x=8,y=2 --slices x=2 "
        "--rules batch=x,mlp=y",
        "plan step small.toml --batch 7 --sequence 128 --cluster 'tpu v5e 2x2' --mesh x=2,y=2 --rules batch=x",
        "plan step small.toml --batch 8 --sequence 128 --cluster 'tpu v5e 2x2' --mesh x=2,y=2 --rules batch=z",
        "plan step small.toml --batch 8 --sequence 128 --cluster 'tpu v5e 2x2' --mesh x=2,y=2 --rules batch",
        "plan step small.toml --batch 8 --sequence 128 --cluster 'tpu v5e 2x2' --mesh x=2,y=2 --rules btch=x",
        "plan step small.toml --batch 8 --sequence 128 --cache 64 --cluster 'tpu v5e 2x2' --mesh x=4 --rules batch=x",
        "plan step lama-2-7b --batch 8 --sequence 128 --cluster 'tpu v5e 2x2' --mesh x=4 --rules batch=x",
        "plan step small.toml --batch 8 --sequence 128 --cluster 'tpu v5e 2x2' --mesh x=4 --rules batch=x --json",
    ],
    "lists_of_plans": ["plan models", "plan clusters", "plan models spam"],
    "plans_of_training": [
        f"plan llama-2-7b {RUN} --tensor 2 --sequence-parallel --pipeline 4 --zero 1",
        f"plan llama-2-7b {RUN} --tensor 4 --context 2 --zero 3 --zero-shards 8 --recompute full",
        f"plan llama-2-7b {RUN} --recompute full --recompute-layers 4 --pipeline 2 --efficiency ideal",
        f"plan llama-2-7b {RUN} --pipeline 4 --chunks 2 --tensor 8 --measured-step 9.5",
        f"plan llama-2-7b {RUN} --tensor 8 --efficiency published --factor matmul=0.5 --overlap data=0.5,tensor=1",
        f"plan llama-2-7b {RUN} --tensor 1",
        "plan llama-3-70b --batch 64 --sequence 8192 --cluster 'dgx h100' --tensor 8",
        "plan mixtral-8x7b --batch 64 --sequence 4096 --cluster 'tpu v5p 4x4x4' --expert 8 --zero 3 --dtype int8",
        "plan small.toml --batch 8 --sequence 128 --cluster 'tpu v5e 2x2' --pipeline 2 --offload-optimizer",
        "plan small.toml --batch 8 --sequence 128 --cluster lab.toml --tensor 2 --expert 2 --expert-imbalance 1.5",
        f"plan llama-2-7b {RUN} --tensor 2 --pipeline 4 --zero 1 --json",
        f"plan llama-2-7b {RUN} --tensor 2 --pipeline 4 --zero 1 --svg",
        f"plan llama-2-7b {RUN} --tensor 2 --pipeline 4 --zero 1 --svg - --picture memory",
        "plan small.toml --batch 8 --sequence 128 --cluster 'tpu v5e 2x2' --pipeline 2 --svg - --picture schedule",
        "plan small.toml --batch 64 --sequence 128 --cluster 'tpu v5e 2x2' --pipeline 2 --svg - --picture schedule",
        f"plan llama-2-7b {RUN} --code mesh --tensor 4",
        f"plan llama-2-7b {RUN} --tensor 1 --code jax",
        *(
            f"plan {run} --code {code}"
            for code in ("megatron", "maxtext")
            for run in (
                f"llama-2-7b {RUN} --tensor 4 --pipeline 2 --sequence-parallel --zero 1",
                f"llama-3-8b {RUN} --tensor 2 --context 2 --zero 3 --recompute full --dtype float8",
                f"llama-3-8b {RUN} --tensor 8 --pipeline 2 --chunks 2 --zero 2 --recompute selective --dtype float16",
                f"mixtral-8x7b {RUN} --tensor 8 --expert 4 --zero 1 --zero-shards 4 --offload-optimizer",
            )
        ),
        f"plan llama-2-7b {RUN} --pipeline 5",
        f"plan llama-2-7b {RUN} --tensor 3 --data 5 --microbatch 7",
        f"plan llama-2-7b {RUN} --tensor 2 --top 3",
        f"plan llama-2-7b {RUN} --search --data 4",
        f"plan llama-2-7b {RUN} --picture memory",
        f"plan llama-2-7b {RUN} --zero 4",
        f"plan llama-2-7b {RUN} --recompute ful",
        f"plan llama-2-7b {RUN} --recompute-layers -1",
        f"plan llama-2-7b {RUN} --factor matmul",
        f"plan llama-2-7b {RUN} --factor matmul=x",
        f"plan llama-2-7b {RUN} --factor matmull=1",
        f"plan llama-2-7b {RUN} --factor matmul=2",
        f"plan llama-2-7b {RUN} --overlap date=1",
        f"plan llama-2-7b {RUN} --overlap data=1.5",
        f"plan llama-2-7b {RUN} --overlap data=1,data=0",
        f"plan llama-2-7b {RUN} --parameter-dtype float31",
        f"plan llama-2-7b {RUN} --tensor 1 --measured-step -1",
        f"plan llama-2-7b {RUN} --code megtron",
        f"plan {'x' * 300} {RUN}",
        f"plan none.toml {RUN}",
        f"plan . {RUN}",
    ],
    "searches_of_training": [
        f"plan llama-2-7b {RUN} --quiet",
        f"plan llama-2-7b {RUN} --quiet --top 2 --max-tensor 2 --zero 1,3 --device-counts 32,8",
        f"plan llama-2-7b {RUN} --quiet --top 1 --framework megatron --code megatron",
        "plan llama-3-70b --batch 64 --sequence 8192 --cluster 'dgx h100' --quiet",
        "plan llama-3-70b --batch 64 --sequence 8192 --cluster 'dgx h100' --quiet --code mesh",
        "plan small.toml --batch 8 --sequence 2048 --cluster 'tpu v5e 2x2' --quiet --top 2",
        "plan small.toml --batch 8 --sequence 128 --cluster 'tpu v5e 2x2' --quiet --top 1 --json",
        "plan small.toml --batch 7 --sequence 128 --cluster 'tpu v5e 2x2' --search --quiet --pipeline 4 --tensor 4",
        "plan small.toml --batch 8 --sequence 128 --cluster lab.toml --quiet --top 2 --microbatch 1,2",
        f"plan llama-2-7b {RUN} --search --quiet --tensor 8 --pipeline 1 --microbatch 4 --zero 3 --device-counts 32",
        f"plan llama-2-7b {RUN} --quiet --max-tensor 0",
        f"plan llama-2-7b {RUN} --quiet --device-counts 64",
        f"plan llama-2-7b {RUN} --search --quiet --tensor 3",
    ],
    "topologies": [
        "topology --machine 'pack:2 numa:2 core:2 pu:2'",
        "topology --machine 'pack:2 numa:2 core:2 pu:2' --every",
        "topology --machine 'numa:1 l3:1(size=8388608) l2:2(size=1048576) core:1 pu:2'",
        "topology --machine 'numa:1 l3:1(size=8388608) l2:2(size=1048576) core:1 pu:2' --every",
        "topology --machine 'group:2 numa:1 pu:3'",
        "topology --machine 'numa:2 pu:2' --json",
        "topology --machine 'numa:2 pu:2' --svg",
        "topology --machine 'numa:2 spam:2'",
        "topology --machine none.xml",
    ],
    "batch_sizes": [
        "batch recommend --hardware h100 --bytes-per-example 4MB --free-bytes 80GB",
        "batch recommend --hardware h100",
        "batch recommend --hardware a100 --bytes-per-example 1kB",
        "batch recommend --hardware 'NVIDIA H200'",
        "batch recommend --hardware 'TPU v5e'",
        "batch recommend --hardware spam",
        "batch recommend --hardware h100 --bytes-per-example 4MB --free-bytes 1MB",
        "batch recommend --hardware h100 --bytes-per-example 0",
        "batch recommend --hardware h100 --json",
        *(f"batch validate {size} --hardware a100" for size in (0, 1, 7, 8, 16, 32, 64, 100, 128, 240, 256, 512, 4096)),
        "batch validate 256 --hardware 'NVIDIA H200'",
        "batch validate 256 --hardware a100 --json",
    ],
    "unfinished_commands": [
        *("plan", "batch", "batch validate x", "checkpoint", "doctor --spam", "spam"),
        *("batch validate", "batch measure"),
        *(
            f"plan {what}"
            for what in ("mesh", "reshard", "collective", "step", "llama-3-70b", "suggest", "train x", "spam")
        ),
        *(f"checkpoint {what}" for what in ("inspect", "convert", "compare", "verify")),
        *("data", "data inspect"),
        *("audit", "audit program", "audit shardings", "audit diff x"),
    ],
}


def twelve_digits(number):
    """Compilers and mathematical libraries differ in the last digits."""
    return float(f"{float(number):.12g}")


@pytest.mark.parametrize("name", COMMANDS)
def test_recorded_output_of_commands(name, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "small.toml").write_text(MODEL)
    (tmp_path / "lab.toml").write_text(LAB)
    outputs = {}
    for line in COMMANDS[name]:
        try:
            status = main(shlex.split(line))
        except SystemExit as end:
            status = end.code
        output, error = capsys.readouterr()
        if "--json" in line:
            output = textwrap.fill(json.dumps(json.loads(output, parse_float=twelve_digits)), 120)
        output = re.sub(r"artifex_devices [0-9.]+", "artifex_devices VERSION", output)
        outputs[line] = f"exit status {status}\n{output}{error and '--- standard error'}\n{error}"
    check_recorded(name, outputs)
