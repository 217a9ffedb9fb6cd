#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the script catalogue.js of the playground: the models and the chips that its lists offer."""

import itertools
import json

from artifex_devices import cluster, models

GPUS = ("a100", "h100", "h200", "b200", "gb200", "mi300x")
AXES = (1, 2, 4, 8, 16)


def pods(generation: str) -> list[str]:
    """Returns the shapes of the slices that a generation of TPUs offers, smallest first."""
    found = []
    for rank in (2, 3):
        for shape in itertools.combinations_with_replacement(AXES, rank):
            for order in (shape, tuple(reversed(shape))):  # v4 and later list a slice of four chips as 2x2x1
                try:
                    count = cluster.tpu(generation, order).device_count
                except ValueError:
                    continue
                found.append((count, "x".join(map(str, order))))
                break
    return [pod for _, pod in sorted(found)]


if __name__ == "__main__":
    print(f"const MODELS = {json.dumps({name: vars(shape) for name, shape in models.SHAPES.items()})};")
    print(f"const TPUS = {json.dumps({name: pods(name) for name in ('v4', 'v5e', 'v5p', 'v6e', '7x')})};")
    print(f"const GPUS = {json.dumps({name: cluster.gpus(name).device_count for name in GPUS})};")
