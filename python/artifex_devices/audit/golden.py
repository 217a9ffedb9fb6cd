# SPDX-License-Identifier: Apache-2.0
"""audit.assert_matches: golden files of shardings and programs, which `pytest --update-audit` writes."""

from __future__ import annotations

import os

from artifex_devices._base.leaf_types import Tree
from artifex_devices._base.public_path import public
from artifex_devices._base.text import shortened
from artifex_devices.audit.differences import SHOWN
from artifex_devices.audit.storing import audited, checked_path, difference_of, load, save

UPDATE = "ARTIFEX_UPDATE_AUDIT"
_OPERATION = "audit.assert_matches"


@public("artifex_devices.audit")
def assert_matches(value: Tree, path: str | os.PathLike[str]) -> None:
    """Raises AssertionError unless shardings, or the collectives of a program, are as a golden file has them.

    `pytest --update-audit` writes the file instead, and so does the environment variable ARTIFEX_UPDATE_AUDIT=1. The
    file has a line for each leaf, or for collectives that are alike. Names and order that a compiler chooses, and line
    numbers, do not matter.

    Args:
        value: What `audit.diff` takes.
        path: The golden file, relative to the current folder. A file of shardings of MaxText may be one.

    Raises:
        AssertionError: Something differs, with the lines that changed; or there is no such file.
        TypeError: `value` cannot be read, or the file is one of the other kind.
        ValueError: The file is damaged.
        OSError: The file cannot be read or written.

    Example:
        >>> import artifex_devices as ad, tempfile
        >>> from artifex_devices import audit
        >>> tree = {"w": (ad.P("data"), (8, 4))}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     audit.save(tree, f"{folder}/w.json")
        ...     audit.assert_matches(tree, f"{folder}/w.json")
    """
    name = checked_path(_OPERATION, path)
    found = audited(_OPERATION, value)
    if os.environ.get(UPDATE, "") not in ("", "0"):
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        save(found, name)
        return
    if not os.path.lexists(name):
        raise AssertionError(
            f"{_OPERATION}: there is no golden file {name!r} in {os.getcwd()!r}; write it by pytest --update-audit, "
            "read it, and commit it"
        )
    difference = difference_of(_OPERATION, load(name), found)
    if difference:
        count = len(difference.changes)
        lines = shortened([f"  {each}" for each in difference.changes], SHOWN, "  and {} more")
        head = f"{_OPERATION}: {count} difference{'' if count == 1 else 's'} from {name!r}"
        fix = "if this is right, write the file again by pytest --update-audit"
        raise AssertionError("\n".join([head, *lines, fix]))
