# SPDX-License-Identifier: Apache-2.0
"""Audits of texts of four JAX versions, stored in tests/data/audit: the same two programs, so the same messages."""

from pathlib import Path

import pytest
from artifex_devices import audit
from expected_messages import Messages, found_messages

FOLDER = Path(__file__).parents[2] / "data" / "audit"
VERSIONS = ("0.4.30", "0.6.2", "0.8.2", "0.10.2")
MESH = {"data": 4, "tensor": 2}
LAYERS, BATCH, WIDTH, MIDDLE = 3, 32, 64, 128


def path_of(version, program, stage):
    return FOLDER / f"jax-{version}-{program}-{stage}.txt.gz"


def line_of(text):
    """The line of make_texts.py that has this text."""
    lines = (FOLDER / "make_texts.py").read_text(encoding="utf-8").splitlines()
    (line,) = [i for i, each in enumerate(lines, 1) if text in each]
    return line


def messages_of_train():
    """Weights are gathered in both loops, products over a sharded dimension summed, gradients summed and scattered."""
    messages = Messages(MESH)
    for shape, spec in (((WIDTH, MIDDLE), ("data", "tensor")), ((MIDDLE, WIDTH), ("tensor", "data"))):
        messages.gather("data", shape, spec, runs=LAYERS, times=2)
        messages.scatter_on_cpu("data", shape, spec, runs=LAYERS)
    messages.reduce("tensor", (BATCH, WIDTH), ("data",), runs=LAYERS, times=2)
    messages.reduce("data", ())
    return messages


def messages_of_mapped():
    both = ("data", "tensor")
    messages = Messages(MESH)
    messages.gather("tensor", (64, 64), both)
    messages.reduce("data", (16, 64))
    messages.scatter(both, (16, 64), (both,))
    messages.exchange("tensor", (16, 64), (both,))
    messages.shift("data", (32, 32), (both,))
    return messages


@pytest.mark.parametrize("stage", ["compiled", "after_partitioning"])
@pytest.mark.parametrize("version", VERSIONS)
def test_messages_of_the_training_step(version, stage):
    program = audit.program(path_of(version, "train", stage), mesh=MESH)
    assert program.devices == 8
    assert program.is_partitioned
    assert found_messages(program) == messages_of_train().expected()


@pytest.mark.parametrize("stage", ["compiled", "after_partitioning", "stablehlo"])
@pytest.mark.parametrize("version", VERSIONS)
def test_messages_that_the_program_names_itself(version, stage):
    program = audit.program(path_of(version, "mapped", stage), mesh=MESH)
    assert found_messages(program) == messages_of_mapped().expected()


@pytest.mark.parametrize("stage", ["compiled", "after_partitioning"])  # later passes join a sum and its slice
@pytest.mark.parametrize("program", ["train", "mapped"])
@pytest.mark.parametrize("version", VERSIONS)
def test_right_programs_have_no_findings(version, program, stage):
    assert audit.program(path_of(version, program, stage), mesh=MESH).findings(at_least=0) == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_lines_of_the_source(version):
    found = audit.program(path_of(version, "mapped", "compiled"), mesh=MESH).collectives
    assert {(each.kind, each.where) for each in found} == {
        (kind, f"make_texts.py:{line_of(text)}")
        for kind, text in (
            ("all_gather", 'all_gather(x, "tensor"'),
            ("all_reduce", "psum(jnp.sin(whole)"),
            ("reduce_scatter", "lax.psum_scatter("),
            ("all_to_all", "lax.all_to_all("),
            ("collective_permute", "lax.ppermute("),
        )
    }


@pytest.mark.parametrize("stage", ["before_partitioning", "stablehlo"])
@pytest.mark.parametrize("version", VERSIONS)
def test_before_the_partitioner_there_are_no_messages_and_a_note(version, stage):
    program = audit.program(path_of(version, "train", stage), mesh=MESH)
    assert not program.is_partitioned
    assert program.collectives == ()
    assert program.notes


def test_messages_of_the_training_step_for_tpus():
    """Fusions that start, run beside and end a gather hold copies of it; fusions of a sum and a slice scatter."""
    messages = Messages(MESH)
    for shape, spec in (((WIDTH, MIDDLE), ("data", "tensor")), ((MIDDLE, WIDTH), ("tensor", "data"))):
        messages.gather("data", shape, spec, runs=LAYERS, times=2, itemsize=2)
        messages.scatter("data", shape, spec, runs=LAYERS)
    messages.reduce("tensor", (BATCH, WIDTH), ("data",), runs=LAYERS)
    messages.reduce("tensor", (BATCH, WIDTH), ("data",), runs=LAYERS, itemsize=2)  # backward
    messages.reduce("data", ())
    program = audit.program(path_of("0.8.2", "tpu-train", "compiled"), mesh=MESH)
    assert found_messages(program) == messages.expected()
    assert {each.dtypes for each in program.collectives if each.kind == "all_gather"} == {("bfloat16",)}
    # Of the forward loop, one gather overlaps with computation; of the backward loop, both.
    assert [(each.kind, each.is_async, each.overlaps) for each in program.collectives if each.is_async] == [
        ("all_gather", True, True)
    ] * 3
    assert program.findings(at_least=0) == ()


def test_messages_that_the_program_names_itself_for_tpus():
    messages = messages_of_mapped()
    del messages.rows["reduce_scatter", ("data", "tensor"), 1]
    messages.reduce(("data", "tensor"), (16, 64))  # the compiler wrote a sum and a slice, without a line
    program = audit.program(path_of("0.8.2", "tpu-mapped", "compiled"), mesh=MESH)
    assert found_messages(program) == messages.expected()
    (permute,) = (each for each in program.collectives if each.kind == "collective_permute")
    assert (permute.is_async, permute.overlaps) == (True, False)
    assert program.findings(at_least=0) == ()


def test_messages_of_the_training_step_for_gpus():
    """A combined pair of start and done is one operation of several tensors; sums are scattered."""
    messages = Messages(MESH)
    for shape, spec in (((WIDTH, MIDDLE), ("data", "tensor")), ((MIDDLE, WIDTH), ("tensor", "data"))):
        messages.gather("data", shape, spec, runs=LAYERS, times=2)
        messages.scatter("data", shape, spec, runs=LAYERS)
    messages.reduce("tensor", (BATCH, WIDTH), ("data",), runs=LAYERS, times=2)
    messages.reduce("data", ())
    program = audit.program(path_of("0.8.2", "gpu-train", "compiled"), mesh=MESH)
    assert found_messages(program) == messages.expected()
    assert len(program.collectives) == 6
    assert all(each.is_async for each in program.collectives)
    assert program.findings(at_least=0) == ()


def test_messages_that_the_program_names_itself_for_gpus():
    program = audit.program(path_of("0.8.2", "gpu-mapped", "compiled"), mesh=MESH)
    assert found_messages(program) == messages_of_mapped().expected()
    assert not any(each.overlaps for each in program.collectives)
    assert program.findings(at_least=0) == ()


@pytest.mark.parametrize(("name", "kind"), [("sliced", "all-reduce then slice"), ("widened", "float32 message")])
def test_mistakes_that_are_mistakes_on_gpus(name, kind):
    (finding,) = audit.program(path_of("0.8.2", f"gpu-{name}", "compiled"), mesh=MESH).findings(at_least=0)
    # The compiler for GPUs drops the table of source lines.
    assert (finding.kind, finding.where) == (kind, f"jit({name})/shard_map/psum_invariant")
    assert finding.collective is not None
    assert finding.bytes == finding.collective.bytes == 2 * 3 * 16 * 32 * 4 // 4


def test_a_sum_and_a_slice_in_place_of_a_small_scatter_on_tpus():
    """The compiler for TPUs keeps the partitioner's sum and slice where the parts are small: below the default size."""
    program = audit.program(path_of("0.8.2", "tpu-scattered", "compiled"), mesh=MESH)
    messages = Messages(MESH)
    messages.scatter_on_cpu(("data", "tensor"), (WIDTH, MIDDLE), (("data", "tensor"),))
    assert found_messages(program) == messages.expected()
    assert program.findings() == ()
    (finding,) = program.findings(at_least=0)
    assert (finding.kind, finding.where) == ("all-reduce then slice", f"make_texts.py:{line_of('x.T @ y')}")


def test_logits_that_are_gathered_asynchronously():
    (finding,) = audit.program(path_of("0.8.2", "gpu-replicated", "compiled"), mesh=MESH).findings(at_least="8 MB")
    assert (finding.kind, finding.bytes) == ("replicated temporary", 512 * 4096 * 4)
    assert finding.collective is not None
    assert finding.collective.is_async


def test_a_combined_gather_of_the_same_array_twice():
    (finding,) = audit.program(path_of("0.8.2", "gpu-twice", "compiled"), mesh=MESH).findings(at_least=0)
    assert (finding.kind, finding.bytes) == ("gathered twice", 3 * 16 * 32 * 4)  # of one of the two
    assert finding.collective is not None
    assert finding.collective.shapes == ((16, 32), (1, 16, 32))
