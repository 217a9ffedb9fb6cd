# SPDX-License-Identifier: Apache-2.0
"""Audits of training steps without a mistake, compiled for 8 devices: messages as the specs require, no findings."""

import collections
import math

import annotated_models  # noqa: F401 - registers steps
import annotated_steps  # noqa: F401
import jax
import mapped_steps  # noqa: F401
import pytest
from artifex_devices import audit
from audit_steps import OPTIONS, STEPS, compiled, lowered
from expected_messages import found_messages

MAPPED = [name for name in STEPS if STEPS[name].__wrapped__.__module__ == "mapped_steps"]


def audited(name):
    return audit.program(compiled(name), mesh=STEPS[name]().messages.mesh)


@pytest.mark.parametrize("name", STEPS)  # one test, so that one of several processes compiles the step
def test_messages_are_as_the_specs_require_and_nothing_is_suspicious(name):
    program = audited(name)
    assert found_messages(program) == STEPS[name]().messages.expected()
    assert program.findings(at_least=0) == ()


@pytest.mark.parametrize("name", MAPPED)
def test_messages_of_shard_map_before_the_compiler(name):
    program = audit.program(lowered(name), mesh=STEPS[name]().messages.mesh)
    assert program.source == "StableHLO text"
    assert found_messages(program) == STEPS[name]().messages.expected()


def test_a_folder_of_dumps_is_the_compiled_program(tmp_path):
    dump = {"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True}
    lowered("tensor_parallel").compile(compiler_options={**OPTIONS, **dump})
    program = audit.program(tmp_path, mesh={"tensor": 8})
    assert program.collectives == audited("tensor_parallel").collectives


@pytest.mark.parametrize("name", STEPS)
def test_shardings_of_the_arguments(name):
    arguments = STEPS[name]().arguments
    table = audit.shardings(arguments)
    leaves = jax.tree.leaves(arguments)
    assert [leaf.device_bytes for leaf in table.leaves] == [
        math.prod(each.sharding.shard_shape(each.shape)) * each.dtype.itemsize for each in leaves
    ]
    assert [leaf.replicas for leaf in table.leaves] == [
        collections.Counter(map(str, each.sharding.devices_indices_map(each.shape).values())).most_common(1)[0][1]
        for each in leaves
    ]
    assert table.notes == ()


def test_there_are_25_steps():
    assert len(STEPS) == 25
