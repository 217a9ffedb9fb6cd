# SPDX-License-Identifier: Apache-2.0
"""Rooflines of the catalogue: what follows from published numbers, and which of the document's values do."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from artifex_devices import HardwareType, get_batch_size_recommendation
from artifex_devices.accelerators import accelerators
from artifex_devices.roofline import roofline
from hypothesis import given
from hypothesis import strategies as st

# (number format, whether the document's critical batch lies within 1 % of peak / bandwidth).
DOCUMENTED = {
    HardwareType.TPU_V5E: ("bfloat16", True),
    HardwareType.H100: ("bfloat16", True),
    HardwareType.TPU_V4: ("bfloat16", False),
    HardwareType.TPU_V5P: ("bfloat16", False),
    HardwareType.A100: ("bfloat16", False),
    HardwareType.V100: ("float16", False),
}


@pytest.mark.parametrize(("hardware", "row"), DOCUMENTED.items(), ids=lambda value: getattr(value, "value", ""))
def test_which_documented_critical_batches_follow_from_published_numbers(hardware, row):
    dtype, follows = row
    documented = get_batch_size_recommendation(hardware).critical_batch_size
    derived = roofline(hardware, dtype).critical_batch
    assert (abs(documented - derived) / derived < 0.01) == follows
    if not follows:
        assert abs(documented - derived) / derived > 0.15  # and not nearly either


@pytest.mark.parametrize("name", ["h200", "tpu v6e", "mi300x", "gb200"])
def test_batch_advice_for_a_chip_without_a_row_is_this_critical_batch(name):
    line = roofline(name)
    assert get_batch_size_recommendation(line.hardware).critical_batch_size == line.critical_batch_size


def test_298_is_the_books_rounded_peak_truncated():
    h100 = roofline("h100")
    assert math.floor(1e15 / h100.memory_bandwidth) == 298
    assert h100.critical_batch_size == 295
    assert "298" in h100.peak_from.text


def test_numbers_of_a_chip_have_sources():
    v5e = roofline("tpu_v5e")
    assert (v5e.peak_flops, v5e.memory_bandwidth, v5e.dtype) == (1.97e14, 8.19e11, "bfloat16")
    assert v5e.ridge_point == v5e.critical_batch == 1.97e14 / 8.19e11
    assert (v5e.peak_from.kind, v5e.bandwidth_from.kind, v5e.critical_batch_from.kind) == ("table", "table", "model")
    assert v5e.peak_from.sources[0].address == "https://docs.cloud.google.com/tpu/docs/v5e"
    assert "859e9" in v5e.bandwidth_from.text or "8.59e11" in v5e.bandwidth_from.text


@pytest.mark.parametrize(
    ("dtype", "weights", "critical"),
    [
        ("bf16", None, 295.2),
        ("bfloat16", "int8", 147.6),
        ("int8", None, 295.4),  # twice the FLOP/s, half the bytes
        ("fp8", None, 295.4),
        (ml_dtypes.float8_e4m3fn, None, 295.4),
        ("tf32", None, 295.3),
        (np.float32, None, 39.9),
        (np.dtype("float16"), "float4_e2m1fn", 73.8),
    ],
)
def test_formats_have_their_own_peaks_and_bytes(dtype, weights, critical):
    assert roofline("h100", dtype, weight_dtype=weights).critical_batch == pytest.approx(critical, abs=0.05)


def test_unpublished_formats_are_an_error_with_the_published_ones():
    with pytest.raises(
        ValueError,
        match=r"^roofline: the bfloat16 FLOP/s of NVIDIA V100 SXM2 16GB are not published; expected one of float16, "
        r"float32; write dtype='float16'$",
    ):
        roofline("v100")
    with pytest.raises(ValueError, match=r"^roofline: dtype 'float77' is not known here; expected one of bfloat16"):
        roofline("h100", "float77")
    with pytest.raises(TypeError, match=r"^roofline: .* is not a dtype; expected one or its name"):
        roofline("h100", object())
    with pytest.raises(ValueError, match=r"^accelerator: 'warp drive' is not in the catalogue"):
        roofline("warp drive")
    with pytest.raises(ValueError, match="pass the name of a chip"):
        roofline(HardwareType.UNKNOWN)


def test_layers():
    v5e = roofline("tpu_v5e")
    assert v5e.layer_critical_batch(4096, 4096) == pytest.approx(272.548, abs=1e-3)
    assert v5e.layer_critical_batch(256, 256) == math.inf
    assert v5e.layer_critical_batch(10**9, 10**9) == pytest.approx(v5e.critical_batch, rel=1e-5)
    assert v5e.layer_critical_batch(4096, 4096, activation_dtype="float32") > v5e.layer_critical_batch(4096, 4096)
    for wrong in ((0, 5), (5, -1), (5, 2**70)):
        with pytest.raises(ValueError, match=r"^layer_critical_batch: (in|out)puts is .*; expected 1 to 2\*\*63 - 1"):
            v5e.layer_critical_batch(*wrong)
    with pytest.raises(ValueError, match=r"^layer_critical_batch: dtype 'nope' is not known here"):
        v5e.layer_critical_batch(5, 5, activation_dtype="nope")
    with pytest.raises(TypeError, match="inputs"):
        v5e.layer_critical_batch(2.5, 5)  # type: ignore[arg-type]


@given(
    chip=st.sampled_from([each.name for each in accelerators()]),
    inputs=st.integers(1, 10**6),
    outputs=st.integers(1, 10**6),
)
def test_counting_activations_never_lowers_the_critical_batch(chip, inputs, outputs):
    line = roofline(chip, next(iter(dict(next(a for a in accelerators() if a.name == chip).peak_flops))))
    exact = line.layer_critical_batch(inputs, outputs)
    assert exact >= line.critical_batch * (1 - 1e-12)
    if exact < 1e15:  # there both limits are reached at once
        weights = line.weight_bytes * inputs * outputs
        moved = weights + line.weight_bytes * exact * (inputs + outputs)
        assert 2 * exact * inputs * outputs / moved == pytest.approx(line.ridge_point, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float8_nonsense", "float8_", "float4_x", "float8_e8m0fnu"])
def test_a_format_in_which_nothing_is_multiplied_is_not_known(dtype):
    with pytest.raises(ValueError, match=r"^roofline: dtype .* is not known here"):
        roofline("NVIDIA B200", dtype)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3b11fnuz", "float8_e4m3"])
def test_all_8_bit_floats_are_one_format(dtype):
    assert roofline("h100", dtype).dtype == "float8"


def test_roofline_refuses_other_hardware():
    with pytest.raises(TypeError, match=r"^roofline: hardware is 3 \(int\); expected a CPU device, a HardwareType, "):
        roofline(3)  # type: ignore[arg-type]


def test_an_intensity_is_a_number_from_0_on():
    line = roofline("h100")
    assert (line.attainable_flops(0), line.attainable_flops(10**400)) == (0, line.peak_flops)
    for wrong in (-1, float("nan"), -(10**400)):
        with pytest.raises(ValueError, match=r"^attainable_flops: flops_per_byte is .*; expected 0 or more"):
            line.attainable_flops(wrong)
    for other in ("3", None):
        with pytest.raises(TypeError, match=r"^attainable_flops: flops_per_byte is .*; expected a number"):
            line.attainable_flops(other)  # type: ignore[arg-type]


@given(intensity=st.floats(1e-3, 1e6))
def test_the_lower_limit_holds(intensity):
    line = roofline("h100")
    expected = line.peak_flops if intensity >= line.ridge_point else intensity * line.memory_bandwidth
    assert line.attainable_flops(intensity) == pytest.approx(expected)
