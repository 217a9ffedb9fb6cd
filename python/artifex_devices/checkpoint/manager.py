# SPDX-License-Identifier: Apache-2.0
"""Manager: the checkpoints of a training run, one folder for each step."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from artifex_devices._base.checks import check_int
from artifex_devices._base.public_path import public
from artifex_devices.checkpoint import folders
from artifex_devices.checkpoint.folders import check_path
from artifex_devices.checkpoint.future import SaveFuture
from artifex_devices.checkpoint.restoring import restore
from artifex_devices.checkpoint.saving import Save, start_async

_STEP = re.compile(r"0|[1-9][0-9]{0,17}")
_REMOVED = re.compile(r"\.[0-9]+\.removed")


@public("artifex_devices.checkpoint")
class Manager:
    """The checkpoints of a run: folder `directory/10` is that of step 10.

    Args:
        directory: Folder of the checkpoints; created by the first save.
        max_to_keep: Number of the newest checkpoints that stay after a save; None keeps all.
        keep_every: Steps that are multiples of it always stay.

    Raises:
        TypeError: An argument is of another type.
        ValueError: `max_to_keep` or `keep_every` is below 1.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from artifex_devices import checkpoint
        >>> folder = tempfile.TemporaryDirectory()
        >>> manager = checkpoint.Manager(folder.name, max_to_keep=2)
        >>> for step in (1, 2, 3):
        ...     manager.save(step, {"w": np.full(4, step)})
        >>> manager.all_steps(), manager.latest_step()
        ([2, 3], 3)
        >>> manager.restore(3, {"w": np.zeros(4, int)})["w"].tolist()
        [3, 3, 3, 3]
    """

    def __init__(self, directory: Any, *, max_to_keep: int | None = None, keep_every: int | None = None) -> None:
        self._directory = Path(check_path("checkpoint.Manager", "directory", directory))
        for name, value in (("max_to_keep", max_to_keep), ("keep_every", keep_every)):
            if value is not None:
                check_int("checkpoint.Manager", name, value, "leave it out to keep all", minimum=1)
        self._max_to_keep = max_to_keep
        self._keep_every = keep_every

    @property
    def directory(self) -> Path:
        """Folder of the checkpoints."""
        return self._directory

    def save(self, step: int, tree: Any, *, overwrite: bool = False) -> None:
        """Saves the tree of a step as `checkpoint.save` does, then removes checkpoints that are not to stay."""
        Save("Manager.save", self._folder("Manager.save", step), tree, overwrite, after=self._remove_old).run()

    def save_async(self, step: int, tree: Any, *, overwrite: bool = False) -> SaveFuture:
        """Starts to save the tree of a step as `checkpoint.save_async` does."""
        folder = self._folder("Manager.save_async", step)
        return start_async("Manager.save_async", folder, tree, overwrite, after=self._remove_old)

    def restore(self, step: int, like: Any = None, *, strict: bool = True, verify: bool = False) -> Any:
        """Restores the tree of a step as `checkpoint.restore` does."""
        folder = self._folder("Manager.restore", step)
        if not folders.is_checkpoint(folder):
            steps = self.all_steps()
            raise FileNotFoundError(
                f"Manager.restore: {str(self._directory)!r} has no checkpoint of step {step}; expected one of "
                f"{steps[-8:]}; restore(manager.latest_step(), like)"
            )
        return restore(folder, like, strict=strict, verify=verify)

    def all_steps(self) -> list[int]:
        """Returns the steps that have a checkpoint, ascending."""
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        steps = [int(name) for name in names if _STEP.fullmatch(name)]
        return sorted(step for step in steps if folders.is_checkpoint(self._path(step)))

    def latest_step(self) -> int | None:
        """Returns the largest step that has a checkpoint; None without any."""
        return max(self.all_steps(), default=None)

    def _folder(self, operation: str, step: Any) -> str:
        number = check_int(operation, "step", step, "write 1000", minimum=0, maximum=10**18 - 1)
        return self._path(number)

    def _path(self, name: object) -> str:
        return os.path.join(self._directory, str(name))

    def _remove_old(self) -> None:
        if self._max_to_keep is not None:
            every = self._keep_every
            for step in self.all_steps()[: -self._max_to_keep]:
                if every is None or step % every:
                    removed = self._path(f".{step}.removed")
                    with suppress(OSError):
                        folders.remove(removed)
                    os.rename(self._path(step), removed)  # a removal that is interrupted leaves no half checkpoint
        for name in os.listdir(self._directory):
            if _REMOVED.fullmatch(name):
                with suppress(OSError):
                    folders.remove(self._path(name))

    def __repr__(self) -> str:
        return f"Manager({str(self._directory)!r}, max_to_keep={self._max_to_keep}, keep_every={self._keep_every})"
