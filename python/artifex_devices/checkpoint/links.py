# SPDX-License-Identifier: Apache-2.0
"""Links in the folder of a checkpoint: refused if they leave it, except to the blobs of a hub cache."""

from __future__ import annotations

import os
from collections.abc import Iterable

from artifex_devices._base.checks import failure


def check_links(operation: str, path: str, names: Iterable[str]) -> None:
    """Raises ValueError if a file of a checkpoint is a link that leads out of its folder.

    The cache of a hub has `models--x/snapshots/REVISION/FILE`, links to `models--x/blobs/DIGEST`. Such links stay
    within the folder of their repository, so they are read.

    Args:
        operation: Name of the public function, for the message.
        path: Folder of the checkpoint, or a file in it. It may itself be a link.
        names: Files, by their paths below the folder. Folders that are links have to be among them.

    Raises:
        ValueError: A link leaves the folder.
    """
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    links = [name for name in names if os.path.islink(os.path.join(folder, name))]
    if not links:
        return
    real = os.path.realpath(folder)
    allowed = [real, *_blobs_of(real)]
    for name in links:
        target = os.path.realpath(os.path.join(real, name))
        if any(target == root or target.startswith(f"{root.rstrip('/')}/") for root in allowed):
            continue
        raise failure(
            ValueError,
            operation,
            f"{os.path.join(folder, name)!r} is a link to {target!r}, outside the folder",
            expected="files in the folder, or links of a hub cache (snapshots/... to blobs/...)",
            fix="copy the file, or pass follow_links=True if you trust the link",
        )


def _blobs_of(folder: str) -> list[str]:
    """Returns the folder `blobs` of the hub cache that a folder belongs to, or nothing."""
    while os.path.dirname(folder) != folder:
        parent = os.path.dirname(folder)
        blobs = os.path.join(os.path.dirname(parent), "blobs")
        if os.path.basename(parent) == "snapshots" and os.path.isdir(blobs) and not os.path.islink(blobs):
            return [blobs]
        folder = parent
    return []
