# SPDX-License-Identifier: Apache-2.0
"""Device configurations: defaults, checks at every assignment, fractions that follow the strategy."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import pytest
from artifex_devices import DeviceConfiguration, MemoryStrategy


def test_defaults() -> None:
    config = DeviceConfiguration()
    assert dataclasses.asdict(config) == {
        "memory_strategy": MemoryStrategy.BALANCED,
        "memory_fraction": 0.75,
        "enable_x64": False,
        "enable_jit": True,
        "platform_priority": ["cuda", "cpu"],
        "environment_variables": {},
        "enable_mixed_precision": False,
    }
    assert config == DeviceConfiguration()
    assert config.platform_priority is not DeviceConfiguration().platform_priority
    assert config.environment_variables is not DeviceConfiguration().environment_variables
    with pytest.raises(TypeError):
        hash(config)


@pytest.mark.parametrize(
    ("strategy", "given", "fraction"),
    [
        (MemoryStrategy.CONSERVATIVE, None, 0.6),
        (MemoryStrategy.BALANCED, None, 0.75),
        (MemoryStrategy.AGGRESSIVE, None, 0.9),
        (MemoryStrategy.CUSTOM, None, 0.75),
        (MemoryStrategy.CUSTOM, 0.8, 0.8),
        (MemoryStrategy.CONSERVATIVE, 0.5, 0.5),
        (MemoryStrategy.BALANCED, 1, 1.0),
        (MemoryStrategy.BALANCED, 0.1, 0.1),
    ],
)
def test_fraction_of_a_strategy_and_one_that_is_given(strategy: Any, given: Any, fraction: float) -> None:
    assert DeviceConfiguration(strategy, given).memory_fraction == fraction


def test_a_changed_strategy_changes_the_fraction() -> None:
    config = DeviceConfiguration(MemoryStrategy.CONSERVATIVE, 0.5)
    config.memory_strategy = MemoryStrategy.AGGRESSIVE
    assert config.memory_fraction == 0.9
    config.memory_strategy = MemoryStrategy.CUSTOM
    assert config.memory_fraction == 0.9
    config.memory_fraction = 0.3
    assert (config.memory_strategy, config.memory_fraction) == (MemoryStrategy.CUSTOM, 0.3)
    config.memory_fraction = None
    assert config.memory_fraction == 0.75
    config.memory_strategy = MemoryStrategy.CONSERVATIVE
    config.memory_fraction = None
    assert config.memory_fraction == 0.6


@pytest.mark.parametrize("fraction", [0.0, 0.0999, 1.0001, -0.5, math.nan, math.inf, 75])
def test_fractions_out_of_range_are_refused_also_when_assigned(fraction: float) -> None:
    with pytest.raises(ValueError, match=r"memory_fraction is .*0\.1 and 1\.0.*write 0\.75 for"):
        DeviceConfiguration(memory_fraction=fraction)
    config = DeviceConfiguration()
    with pytest.raises(ValueError, match=r"0\.1 and 1\.0"):
        config.memory_fraction = fraction
    assert config.memory_fraction == 0.75


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("memory_strategy", "balanced", TypeError, r"write MemoryStrategy\.BALANCED"),
        ("memory_strategy", "aggressive", TypeError, r"write MemoryStrategy\.AGGRESSIVE"),
        (
            "memory_strategy",
            "Balanced",
            TypeError,
            r"'Balanced' \(str\); expected one of MemoryStrategy\.CONSERVATIVE, MemoryStrategy\.BALANCED, "
            r"MemoryStrategy\.AGGRESSIVE, MemoryStrategy\.CUSTOM; write MemoryStrategy\.BALANCED",
        ),
        ("memory_strategy", None, TypeError, r"memory_strategy is .* \(NoneType\)"),
        ("memory_fraction", "0.5", TypeError, r"memory_fraction is .* \(str\)"),
        ("memory_fraction", True, TypeError, r"memory_fraction is .* \(bool\)"),
        ("enable_x64", 1, TypeError, r"enable_x64 is .* \(int\)"),
        ("enable_jit", "no", TypeError, r"enable_jit is .* \(str\)"),
        ("platform_priority", "cuda", TypeError, "expected a list of platforms' names"),
        ("platform_priority", [1], TypeError, r"is \[1\] \(list\); expected a list of platforms' names"),
        ("platform_priority", [], ValueError, "platform_priority is empty"),
        ("platform_priority", ["cdua", "CPU"], ValueError, r"unknown platforms \['cdua', 'CPU'\]"),
        ("environment_variables", ["A=1"], TypeError, "expected a dict of str to str"),
        ("environment_variables", {"A": 1, 2: "b", "C": "1"}, TypeError, "'A': 1, 2"),
        ("environment_variables", {"A=B": "1", "": "2"}, ValueError, "'A=B', ''"),
        ("environment_variables", {"A": "1\0"}, ValueError, "zero bytes"),
        ("environment_variables", {"A": "\ud800", "B": "1"}, ValueError, "cannot hold: 'A'; .*characters of "),
    ],
)
def test_settings_are_checked(name: str, value: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        DeviceConfiguration(**{name: value})
    config = DeviceConfiguration()
    with pytest.raises(error, match=text):
        setattr(config, name, value)
    assert config == DeviceConfiguration()


def test_a_misspelt_setting_is_refused() -> None:
    config = DeviceConfiguration()
    with pytest.raises(AttributeError, match="no setting 'memory_fracton'"):
        config.memory_fracton = 0.5  # type: ignore[attr-defined]


def test_configurations_share_nothing() -> None:
    platforms, variables = ["cpu"], {"A": "1"}
    config = DeviceConfiguration(platform_priority=platforms, environment_variables=variables)
    platforms.append("tpu")
    variables.clear()
    other = config.copy()
    other.platform_priority.append("gpu")
    assert (config.platform_priority, config.environment_variables) == (["cpu"], {"A": "1"})
    assert copy.deepcopy(config) == config != other
