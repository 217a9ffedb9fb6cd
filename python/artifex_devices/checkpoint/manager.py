# SPDX-License-Identifier: Apache-2.0
"""Manager: the checkpoints of a training run, one folder for each step."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from artifex_devices._base.checks import check_int, failure
from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._base.public_path import public
from artifex_devices.checkpoint import commit_times, folders
from artifex_devices.checkpoint.folders import StagingFolder, StrPath, check_path
from artifex_devices.checkpoint.future import SaveFuture, finish
from artifex_devices.checkpoint.reporting import check_progress
from artifex_devices.checkpoint.restoring import restore
from artifex_devices.checkpoint.saving import Save

_STEP = re.compile(r"0|[1-9][0-9]{0,17}")


@public("artifex_devices.checkpoint")
class Manager:
    """The checkpoints of a run: folder `directory/10` holds step 10.

    The newest checkpoint is the checkpoint that was committed last, whatever its step: if a run saves step 300,
    continues from step 100 and saves step 110, then step 110 is the newest, and `latest_step()` returns 110. The order
    is recorded in the checkpoints. Checkpoints that no Manager committed count as older, in the order of their steps.

    Several Managers, in one process or in several, may use one directory. Each commit, and the removal of old
    checkpoints after it, holds a lock on the directory. A step stays, whatever its age, if its folder contains files
    that no save wrote, or if it is a symbolic link.

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

    def __init__(self, directory: StrPath, *, max_to_keep: int | None = None, keep_every: int | None = None) -> None:
        self._directory = Path(check_path("checkpoint.Manager", "directory", directory))
        for name, value in (("max_to_keep", max_to_keep), ("keep_every", keep_every)):
            if value is not None:
                check_int("checkpoint.Manager", name, value, "leave it out to keep all", minimum=1)
        self._max_to_keep = max_to_keep
        self._keep_every = keep_every
        self._newest_ns: int | None = None  # time of the newest checkpoint, once it is known
        self._last: SaveFuture | None = None

    @property
    def directory(self) -> Path:
        """Folder of the checkpoints."""
        return self._directory

    def save(
        self, step: int, tree: Tree, *, overwrite: bool = False, progress: Callable[[int], None] | None = None
    ) -> None:
        """Saves the tree of a step as `checkpoint.save` does, then removes checkpoints that are not to stay.

        Earlier saves of this Manager that are running are committed first.
        """
        check_progress("Manager.save", progress)
        save = Save("Manager.save", self._folder("Manager.save", step), tree, overwrite, commit=self._commit)
        if self._last is not None:
            finish(self._last)
        save.run(progress)

    def save_async(self, step: int, tree: Tree, *, overwrite: bool = False) -> SaveFuture:
        """Starts to save the tree of a step as `checkpoint.save_async` does; commits in the order of the calls."""
        folder = self._folder("Manager.save_async", step)
        save = Save("Manager.save_async", folder, tree, overwrite, is_async=True, commit=self._commit)
        self._last = SaveFuture(save, self._last)
        return self._last

    def restore(
        self,
        step: int,
        like: Tree = None,
        *,
        strict: bool = True,
        verify: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> PyTree:
        """Restores the tree of a step as `checkpoint.restore` does."""
        folder = self._folder("Manager.restore", step)
        if not folders.is_checkpoint(folder):
            steps = self.all_steps()
            raise failure(
                FileNotFoundError,
                "Manager.restore",
                f"{str(self._directory)!r} has no checkpoint of step {step}",
                expected=f"one of {steps[-8:]}",
                fix="restore(manager.latest_step(), like)",
            )
        return restore(folder, like, strict=strict, verify=verify, progress=progress)

    def all_steps(self) -> list[int]:
        """Returns the steps that have a checkpoint, ascending."""
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        steps = [int(name) for name in names if _STEP.fullmatch(name)]
        return sorted(step for step in steps if folders.is_checkpoint(self._path(step)))

    def latest_step(self) -> int | None:
        """Returns the step of the checkpoint that was committed last, or None without a checkpoint."""
        times = self._times()
        return max(times)[1] if times else None

    def wait_until_finished(self) -> None:
        """Waits until the saves of this Manager are committed; raises the error of the last one if it failed.

        Errors of earlier saves are raised by `wait()` of their futures, or reported as warnings. With several
        processes, every process calls this function.
        """
        if self._last is not None:
            finish(self._last, raises=True)

    def close(self) -> None:
        """Waits as `wait_until_finished` does; the Manager can be used again. `with Manager(...)` closes at its end."""
        self.wait_until_finished()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _folder(self, operation: str, step: object) -> str:
        number = check_int(operation, "step", step, "write 1000", minimum=0, maximum=10**18 - 1)
        return self._path(number)

    def _path(self, name: object) -> str:
        return os.path.join(self._directory, str(name))

    def _times(self) -> list[tuple[int, int]]:
        """Returns when each checkpoint was committed, and its step."""
        return [(commit_times.read(self._path(step)), step) for step in self.all_steps()]

    def _commit(self, staging: StagingFolder) -> None:
        """Commits a checkpoint as the newest, and removes checkpoints that are no longer wanted."""
        staging.lock_run(str(self._directory))
        if self._newest_ns is None or self._max_to_keep is not None:
            self._newest_ns = max(self._times(), default=(0, 0))[0]
        self._newest_ns = max(time.time_ns(), self._newest_ns + 1)  # also if the clock was set back
        commit_times.write(staging.folder, self._newest_ns)
        staging.commit()
        self._remove_old()
        staging.release()
        folders.remove_retired(str(self._directory))

    def _remove_old(self) -> None:
        if self._max_to_keep is None:
            return
        for _, step in sorted(self._times())[: -self._max_to_keep]:
            if self._keep_every is None or step % self._keep_every:
                folders.retire(self._path(step))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": None}  # a running save belongs to this process

    def __repr__(self) -> str:
        return f"Manager({str(self._directory)!r}, max_to_keep={self._max_to_keep}, keep_every={self._keep_every})"
