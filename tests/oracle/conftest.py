# SPDX-License-Identifier: Apache-2.0
"""Differential tests against JAX: both libraries in one process, 8 CPU devices each.

Each module is skipped, with that reason, where jax is not installed (`pytest.importorskip` in both.py).
`ARTIFEX_ORACLE_EXAMPLES` is the number of examples a test (default 400); `ARTIFEX_HYPOTHESIS=explore` draws other
examples in each run.
"""

import gc
import os

from hypothesis import HealthCheck, settings

FLAG = "--xla_force_host_platform_device_count=8"
if FLAG not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}".strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")

settings.register_profile(
    "oracle",
    max_examples=int(os.environ.get("ARTIFEX_ORACLE_EXAMPLES", "400")),
    deadline=None,
    derandomize=os.environ.get("ARTIFEX_HYPOTHESIS") != "explore",
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def pytest_collectstart() -> None:
    settings.load_profile("oracle")  # read when a module's tests are made; other folders have other profiles


def pytest_collection_finish() -> None:
    # As in tests/python: what collecting the tests has made stays.
    gc.collect()
    gc.freeze()
