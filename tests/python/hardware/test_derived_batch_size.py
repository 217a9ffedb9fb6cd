# SPDX-License-Identifier: Apache-2.0
"""Batch sizes for chips that the document's table does not have but the catalogue has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import artifex_devices as ad
import pytest
from artifex_devices import accelerators, device_placement
from artifex_devices._hardware import batch_size

recommend = ad.get_batch_size_recommendation


@pytest.mark.parametrize("name", ["NVIDIA H200", "NVIDIA H200 SXM", "nvidia h200"])
def test_a_chip_of_the_catalogue_by_its_names(name: str) -> None:
    found = recommend(name)
    assert (found.min_batch_size, found.optimal_batch_size, found.critical_batch_size) == (52, 256, 206)
    assert found.max_memory_batch_size is None
    start = "Derived for 16-bit weights, not from the built-in table and not measured: NVIDIA H200 SXM has "
    assert found.notes.startswith(f"{start}9.89e+14 bfloat16 FLOP/s and 4.8e+12 bytes/s of memory by ")
    for source in accelerators.accelerator("NVIDIA H200").sources:
        assert source.title in found.notes


def test_by_pci_id_of_a_tpu() -> None:
    found = recommend("1ae0:006f")  # v6e: 9.18e14 / 1.638e12 = 560.4
    assert (found.min_batch_size, found.optimal_batch_size, found.critical_batch_size) == (140, 576, 560)
    assert "TPU v6e (Trillium)" in found.notes


@pytest.mark.parametrize(
    ("name", "member"), [("NVIDIA H100 80GB HBM3", "h100"), ("10de:20b2", "a100"), ("TPU v5", "tpu_v5p")]
)
def test_chips_of_the_documents_keep_the_documents_table(name: str, member: str) -> None:
    assert recommend(name) == recommend(member)
    assert "Derived" not in recommend(name).notes


def test_the_documents_unknown_hardware_stays_as_it_is() -> None:
    found = recommend(ad.HardwareType.UNKNOWN)
    assert (found.min_batch_size, found.optimal_batch_size, found.critical_batch_size) == (32, 128, 64)


def test_its_memory_is_not_this_machines() -> None:
    assert recommend("NVIDIA H200", bytes_per_example=10**9, free_bytes=141 * 10**9).max_memory_batch_size == 141
    with pytest.raises(ValueError, match=r"the free memory of a NVIDIA H200 SXM is not known, cpu:0 is a cpu; "):
        recommend("NVIDIA H200", bytes_per_example=10**9)


@pytest.mark.parametrize("name", ["NVIDIA RTX 4090", "10de:ffff", "Tesla T4"])
def test_an_unknown_chip_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=r"is not a hardware type; expected one of HardwareType\.TPU_V5E .*accel"):
        recommend(name)


@pytest.mark.parametrize(
    ("platform", "kind", "critical"),
    [
        ("gpu", "NVIDIA H200", 206),  # of the catalogue
        ("tpu", "TPU v6 lite", 560),
        ("gpu", "NVIDIA H100 80GB HBM3", 298),  # of the document
        ("gpu", "NVIDIA RTX 4090", 64),  # of neither: the row of unknown hardware
    ],
)
def test_a_device_of_this_machine_by_its_own_name(platform: str, kind: str, critical: int) -> None:
    device = cast(Any, SimpleNamespace(platform=platform, device_kind=kind))  # there are no such devices yet
    row = batch_size._hardware_of(device).row
    assert row.critical_batch_size == critical
    assert ("Derived" in row.notes) == (critical in (206, 560))


def test_a_placement_takes_its_own_devices_hardware() -> None:
    assert ad.DevicePlacement().get_batch_size_recommendation() == recommend("cpu")


def test_a_chip_of_the_catalogue_alone_is_judged_by_what_is_recommended_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    placement = ad.DevicePlacement()
    monkeypatch.setattr(batch_size, "_hardware_of", lambda device: batch_size._named("NVIDIA H200"))
    monkeypatch.setattr(device_placement, "detect_hardware_type", lambda device: ad.HardwareType.UNKNOWN)
    placement.default_device = ad.devices()[1]
    assert placement.hardware_type is ad.HardwareType.UNKNOWN
    advice = placement.get_batch_size_recommendation()
    assert advice.critical_batch_size == 206
    numbers = f"(minimum {advice.min_batch_size}, critical 206, optimum {advice.optimal_batch_size})"
    assert placement.validate_batch_size(205) == (
        True,
        "Batch size 205 is below critical 206 for NVIDIA H200 SXM: it works, but does not reach the roofline "
        f"{numbers}",
    )
