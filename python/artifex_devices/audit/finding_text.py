# SPDX-License-Identifier: Apache-2.0
"""Sentences of findings: the problem and the usual repair, by kind."""

from __future__ import annotations

# The problem, with {kind}, {axes}, {dtypes} of the collective and the {other} instruction; and the repair.
TEXTS = {
    "rematerialization": (
        "the tensor is gathered over {axes} and each device then keeps a slice (full rematerialization)",
        "Constrain producer and consumer to the same sharding, or reshard one dimension at a time",
    ),
    "gathered twice": (
        "the same tensor is gathered over {axes} here and by {other}",
        "Gather it once by one with_sharding_constraint and use that value in both places",
    ),
    "all-reduce then slice": (
        "the sum over {axes} is followed by a slice of it on each device: a reduce-scatter would send half as much",
        "Write lax.psum_scatter, or shard the result over {axes} by with_sharding_constraint where it is computed",
    ),
    "invariant in loop": (
        "the {kind} over {axes} runs in a loop, but its operand is the same in each pass",
        "Move it in front of the loop: gather or reduce the value before the scan and pass the result",
    ),
    "resharded in loop": (
        "the state of the loop is resharded over {axes} at the beginning of each pass and resharded back at the end",
        "Use the same sharding at the beginning and the end of the body: constrain the carry of the scan once",
    ),
    "replicated temporary": (
        "each device computes all of this value, although the mesh has more devices",
        "Shard it by jax.lax.with_sharding_constraint, or shard the parameter that it is computed from",
    ),
    "float32 message": (
        "{dtypes} is sent over {axes}, but the tensor was converted from a type of 2 bytes",
        "Communicate before the conversion: move astype(float32) behind the collective",
    ),
    "axis of size 1": (
        "the {kind} has groups of one device and moves nothing",
        "Leave the axis out, or give the mesh more devices along it",
    ),
}

# What compilers do by themselves, by kind of finding.
COMPILER_NOTES = {
    "all-reduce then slice": "all-reduces followed by a slice, as the compiler writes reduce-scatters here: {count}",
    "float32 message": "messages in float32 of tensors of 2 bytes, which XLA converts for CPUs: {count}",
}
