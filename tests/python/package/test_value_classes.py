# SPDX-License-Identifier: Apache-2.0
"""Dataclasses of the package: which ones can change, which ones compare by identity, and that the others are values."""

import dataclasses
import importlib
import pkgutil

import artifex_devices as ad
import pytest

# A program may set their fields; all others are immutable.
MUTABLE = {"DeviceConfiguration", "Report", "Search", "Section", "TreeMetadata", "_Entry", "_Job", "_Part"}
# Equal only to themselves, and hashable by that: they hold Arrays, mappings, functions or clusters.
BY_IDENTITY = {
    "Accelerator", "Calibration", "CalibrationCheck", "Collective", "CollectivePlan", "FailurePlan", "InferencePlan",
    "MeasuredRoofline", "Membership", "PlacedMesh", "PreparedCall", "Profile", "ProfileFit", "ReshardPlan", "StepPlan",
    "Suggestion", "Suggestions", "TrainingChoice", "TrainingPlan", "TrainingSpace", "TrainingSuggestions",
    "_Pmapped", "_ShardMapped",
}  # fmt: skip


def dataclasses_of_the_package():
    found = {}
    for module in pkgutil.walk_packages(ad.__path__, "artifex_devices."):
        if not module.name.endswith("__main__"):
            for each in vars(importlib.import_module(module.name)).values():
                if isinstance(each, type) and dataclasses.is_dataclass(each):
                    found[each] = None
    return [each for each in found if each.__module__.partition(".")[0] == "artifex_devices"]


def test_dataclasses_are_immutable_except_for_some():
    classes = dataclasses_of_the_package()
    assert len(classes) > 80
    assert {each.__name__ for each in classes if not each.__dataclass_params__.frozen} == MUTABLE
    for each in classes:
        if each.__name__ not in MUTABLE:
            empty = object.__new__(each)
            name = dataclasses.fields(each)[0].name
            with pytest.raises(AttributeError, match=f"^cannot assign to field '{name}'$"):
                setattr(empty, name, 1)


def test_dataclasses_compare_by_value_except_for_some():
    classes = dataclasses_of_the_package()
    assert {each.__name__ for each in classes if not each.__dataclass_params__.eq} == BY_IDENTITY
    assert not any(each.__dataclass_params__.order for each in classes)
    for each in classes:
        if each.__name__ in BY_IDENTITY and "__eq__" not in vars(each):
            assert object.__new__(each) != object.__new__(each)
