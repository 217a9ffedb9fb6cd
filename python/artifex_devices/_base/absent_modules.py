# SPDX-License-Identifier: Apache-2.0
"""Imports of modules that JAX has and this package lacks: `import artifex_devices.random` says what to write."""

from __future__ import annotations

from artifex_devices._base.public_names import MODULES


class AbsentModules:
    """A finder at the end of `sys.meta_path`: Python asks it only for modules that no other finder has found."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raises ModuleNotFoundError with a hint for names of this package that have one."""
        package, _, short = name.rpartition(".")
        if package.partition(".")[0] != "artifex_devices":
            return
        from artifex_devices._base.absent_names import hint_for

        hint = hint_for(package, short)
        if package == "artifex_devices" and MODULES.get(short, package) != package:
            hint = f"it is not a module; write from artifex_devices import {short}"
        if hint is not None:
            raise ModuleNotFoundError(f"{name} does not exist: {hint}", name=name)
