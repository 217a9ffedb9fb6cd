# SPDX-License-Identifier: Apache-2.0
"""8 CPU devices for every test; bad calls and good ones must leave no Array behind.

`ARTIFEX_HYPOTHESIS=explore` draws other examples in each run; the default is the same examples each time.
"""

import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

FLAG = "--xla_force_host_platform_device_count=8"
# Read at the first use of a device, so it must stand before any test module asks for one.
os.environ.pop("JAX_NUM_CPU_DEVICES", None)
os.environ.pop("COLUMNS", None)  # of pytest-xdist; recorded texts are of no terminal
if FLAG not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}".strip()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as jobs in the background have it: tests of Ctrl-C need it
    signal.signal(signal.SIGINT, signal.default_int_handler)

import artifex_devices as ad  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "laws",
    max_examples=int(os.environ.get("ARTIFEX_LAW_EXAMPLES", "150")),
    deadline=None,
    derandomize=os.environ.get("ARTIFEX_HYPOTHESIS") != "explore",
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)

CHECKOUT = Path(__file__).resolve().parents[2]


def pytest_collectstart() -> None:
    settings.load_profile("laws")  # read when a module's tests are made; other folders have other profiles


@pytest.fixture(scope="module", autouse=True)
def frozen():
    """Garbage collection looks at the objects of this module's tests alone, not at what pytest keeps of all others."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def closed_figures():
    """Figures of matplotlib are closed after each test: pyplot keeps them, and warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def devices():
    """The 8 devices of the base world."""
    return ad.devices()


@pytest.fixture
def grid(devices):
    """A 2 x 4 mesh with axes x and y."""
    return ad.Mesh(np.array(devices).reshape(2, 4), ("x", "y"))


@pytest.fixture
def line(devices):
    """A mesh of all 8 devices along axis x."""
    return ad.Mesh(np.array(devices), ("x",))


@pytest.fixture
def named(grid):
    """named("x", None) is the NamedSharding of P("x", None) on the 2 x 4 mesh."""

    def make(*entries, **options):
        return ad.NamedSharding(grid, ad.P(*entries), **options)

    return make


@pytest.fixture
def nothing_left():
    """The test must let go of every Array that it makes."""
    gc.collect()
    before = ad.live_arrays()  # held, so that no other test's goes meanwhile
    yield
    gc.collect()
    assert [array for array in ad.live_arrays() if not any(array is each for each in before)] == []


def settle():
    """Ends what earlier tests began and collects what they kept: copies, threads of the library, garbage."""
    gc.collect()  # ends the threads of what is garbage
    ad.shutdown()
    for thread in threading.enumerate():
        if thread.name.startswith("artifex"):
            thread.join(60)
            assert not thread.is_alive(), thread
    gc.collect()


@pytest.fixture
def settled():
    """What is counted for the whole process stands still: nothing of earlier tests is under way or garbage."""
    settle()


@pytest.fixture(scope="module")
def settled_module():
    """The same before the first test of a module."""
    settle()


@pytest.fixture(scope="session")
def shared_topologies():
    """Recorded machines and what hwloc reports of them, if they are in the folder beside the checkout."""
    folder = CHECKOUT.parent / "shared" / "topologies"
    if not (folder / "expected.json").is_file():
        pytest.skip("no recorded machines beside the checkout (../shared/topologies)")
    return folder


@pytest.fixture(scope="session")
def nvml_stand_in(tmp_path_factory):
    """Compiles a stand-in for NVIDIA's management library: nvml_stand_in("", "BARE" or "EMPTY") is its path.

    What it answers stands in the environment variable NVML_STAND_IN; tests/cpp/topology/nvml_stand_in.cpp tells how.
    """
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler ({compiler}) to build the stand-in library")
    folder = tmp_path_factory.mktemp("nvml")

    def build(variant=""):
        library = folder / variant / "libnvidia-ml.so.1"
        if not library.exists():
            library.parent.mkdir(exist_ok=True)
            source = CHECKOUT / "tests/cpp/topology/nvml_stand_in.cpp"
            define = f"-DNVML_STAND_IN{'_' if variant else ''}{variant}"
            flags = ["-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", define, f"-I{CHECKOUT / 'cpp'}"]
            subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
        return str(library)

    return build


@pytest.fixture(params=["one call", "a call a shard"])
def each_way(request, monkeypatch):
    """Small Arrays are worked on by one call of NumPy; then once more shard by shard, as big ones are."""
    from artifex_devices._array_ops.core import fused_small

    if request.param == "a call a shard":
        monkeypatch.setattr(fused_small, "PARALLEL_BYTES", 0)
