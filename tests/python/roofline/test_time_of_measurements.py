# SPDX-License-Identifier: Apache-2.0
"""How the time of a measurement is divided among its kernels."""

import pytest
from artifex_devices._core import internal
from artifex_devices.roofline import measure_roofline
from artifex_devices.roofline import measurement as roofline_measurement
from artifex_devices.roofline.measured import rate_of

SERIES = {"rates": [1e9] * 3, "shares": [1.0] * 3, "workers": 1, "bound_workers": 1}


class Recorded:
    """The core, but its kernels only record the seconds that they are to run."""

    def __init__(self):
        self.seconds = {}

    def __getattr__(self, name):
        return getattr(internal, name)

    def measure_gemm(self, device, isa, dtype, seconds, window):
        self.seconds[isa, dtype] = seconds
        return SERIES

    def measure_streams(self, device, seconds, window):
        self.seconds["streams"] = seconds
        return {"copy": SERIES}, 1 << 20, 0


@pytest.mark.parametrize(("quota", "factor"), [(None, 1), (0.5, 10)])
def test_the_time_is_divided_among_the_kernels(monkeypatch, quota, factor):
    core = Recorded()

    def product(dtype, seconds, window, share):
        core.seconds["NumPy", dtype] = seconds
        return rate_of([1e9] * 3, [1.0] * 3, expected_share=1.0, floor=0.0, how="NumPy")

    conditions = {**roofline_measurement.conditions_before(), "cpu_quota": quota}
    monkeypatch.setattr(roofline_measurement, "internal", core)
    monkeypatch.setattr(roofline_measurement, "_numpy_product", product)
    monkeypatch.setattr(roofline_measurement, "_measurements", {})
    monkeypatch.setattr(roofline_measurement, "conditions_before", lambda: conditions)
    measure_roofline(seconds=2.4, cache=False)
    isas = internal.supported_isas()
    isas = isas[1:] or isas
    kernels = {(isa, dtype): 0.6 * factor / len(isas) for isa in isas for dtype in roofline_measurement._DTYPES}
    numpy = {("NumPy", dtype): 0.3 * factor for dtype in roofline_measurement._DTYPES}
    assert core.seconds == pytest.approx({**kernels, **numpy, "streams": 0.8 * factor})
