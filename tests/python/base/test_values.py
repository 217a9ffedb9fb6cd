# SPDX-License-Identifier: Apache-2.0
"""What the library answers with cannot be changed by accident."""

import dataclasses
import importlib
import pkgutil

import artifex_devices


def dataclasses_of_the_package():
    found = set()
    for info in pkgutil.walk_packages(artifex_devices.__path__, "artifex_devices."):
        if info.name.endswith(".__main__"):
            continue
        module = importlib.import_module(info.name)
        found |= {
            each
            for each in (getattr(module, name) for name in dir(module))  # testing imports some at first use
            if isinstance(each, type) and dataclasses.is_dataclass(each) and each.__module__ == info.name
        }
    return sorted(found, key=lambda each: (each.__module__, each.__name__))


# A configuration that the caller fills in, reports while they are created, and private state.
CHANGING = ["DeviceConfiguration", "Report", "Search", "Section", "_Direction", "_Entry", "_Job", "_Part"]


def test_all_other_dataclasses_are_frozen():
    found = dataclasses_of_the_package()
    assert len(found) > 60
    assert sorted(each.__name__ for each in found if not each.__dataclass_params__.frozen) == CHANGING
