# SPDX-License-Identifier: Apache-2.0
"""Clusters of the catalogue that a text describes."""

from __future__ import annotations

import re

from artifex_devices._base.checks import wrong_value
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._core import Cluster, internal

TPUS = ("v4", "v5e", "v5p", "v6e", "7x")
GPUS = ("v100", "v100-32gb", "a100", "a100-40gb", "h100", "h800", "h200", "b200", "gb200", "mi300x")


def cluster_of_text(operation: str, name: str, text: str) -> Cluster:
    """Returns the cluster that a text such as "64 x h100" describes; `cluster.from_text` describes the forms.

    Raises:
        ValueError: The text has control characters, or describes no cluster of the catalogue.
    """
    if not text.isprintable():
        raise wrong_value(operation, name, text, "characters that can be printed")
    try:
        return internal.cluster_from_text(text)
    except ValueError as error:
        problem = str(error)
    unknown = re.search(r"names '([^']*)', which is not a chip", problem)
    hint = did_you_mean(unknown[1], (*TPUS, *GPUS)) if unknown else ""
    problem = problem.replace(" of the catalogue;", f" of the catalogue{hint};")
    prefix = operation if name == "text" else f"{operation}: {name}"
    raise ValueError(problem.replace("cluster.from_text", prefix, 1))
