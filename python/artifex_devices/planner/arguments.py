# SPDX-License-Identifier: Apache-2.0
"""Arguments that plans share."""

from __future__ import annotations

from collections.abc import Mapping

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Cluster
from artifex_devices._hardware.cluster_text import cluster_of_text

_FILES = {".toml": "from_toml", ".xml": "from_xml"}  # functions of the room `cluster`, which stands above this one


def cluster_of(operation: str, cluster: object) -> Cluster:
    """Returns the cluster of a `cluster` argument: a Cluster, or a text as `cluster.from_text` takes.

    Raises:
        ValueError: The text describes no cluster of the catalogue.
        TypeError: `cluster` is something else.
    """
    if isinstance(cluster, str):
        function = next((_FILES[ending] for ending in _FILES if cluster.endswith(ending)), None)
        if function is not None:
            raise failure(
                ValueError,
                operation,
                f"cluster is {safe_repr(cluster)}, the name of a file",
                expected="a Cluster, or a text such as '64 x h100'",
                fix=f"write cluster.{function}({safe_repr(cluster)})",
            )
        return cluster_of_text(operation, "cluster", cluster)
    if not isinstance(cluster, Cluster):
        raise wrong_type(operation, "cluster", cluster, "a Cluster or a text that describes one", "write '64 x h100'")
    return cluster


def check_given(operation: str, batch: object, sequence: object) -> None:
    """Raises TypeError unless both numbers are given."""
    missing = [name for name, value in (("batch", batch), ("sequence", sequence)) if value is None]
    if missing:
        verb = "are" if missing[1:] else "is"
        raise failure(
            TypeError,
            operation,
            f"{' and '.join(missing)} {verb} missing",
            expected="the sequences in a step and the tokens in each",
            fix="write batch=512, sequence=8192",
        )


def refuse(operation: str, values: Mapping[str, object], kind: str, expected: str) -> None:
    """Raises TypeError for arguments that are given although they do not belong to a kind of model."""
    given = [name for name, value in values.items() if value is not None]
    if given:
        verb = "do not belong" if given[1:] else "does not belong"
        raise failure(
            TypeError,
            operation,
            f"{', '.join(given)} {verb} to {kind}",
            expected=expected,
            fix=f"leave {'them' if given[1:] else 'it'} out",
        )
