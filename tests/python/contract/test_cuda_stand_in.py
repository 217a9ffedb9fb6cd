# SPDX-License-Identifier: Apache-2.0
"""CUDA devices over the stand-in for the driver, each program in a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_stand_in import path_of_cupy, variables_of

CHECKOUT = Path(__file__).resolve().parents[3]
IMPORTS = "import numpy as np, artifex_devices as ad\n"


def output_of(library, program, **variables):
    environment = {**os.environ, "ARTIFEX_CUDA_LIBRARY": library, **variables}
    command = [sys.executable, "-c", IMPORTS + program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", ["test_devices_of_every_backend", "test_transfers", "exchange_on_cuda", "compute_on_cuda", "numpy_on_cuda"]
)
def test_the_contract_of_every_backend_holds(library, name):
    contract = str(Path(__file__).parent / f"{name}.py")
    variables = {**variables_of(library, 8), "ARTIFEX_CONTRACT_BACKENDS": "cuda"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", contract]
    done = subprocess.run(
        command, cwd=CHECKOUT, env={**os.environ, **variables}, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_gpus_are_there_when_they_are_asked_for(library):
    program = """
print(ad.default_backend(), ad.devices("gpu"), ad.devices("cuda")[1].device_kind)
x = ad.device_put(np.arange(6.0).reshape(2, 3).T, ad.devices("gpu")[1])
y = ad.device_put(x, ad.devices("gpu")[0])
print(ad.device_get(y).tolist(), y.device.memory_stats()["bytes_in_use"])
try:
    y + 1
except TypeError as error:
    print(error)
"""
    lines = output_of(library, program, CUDA_STAND_IN="gpus=2;name=Spam 9000").splitlines()
    assert lines[0] == "cpu [CudaDevice(id=0), CudaDevice(id=1)] Spam 9000"
    assert lines[1] == "[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] 48"
    assert "pip install 'artifex_devices[cuda]'" in lines[2]


def test_the_driver_is_loaded_when_gpus_are_asked_for_and_not_before(library):
    program = """
def is_loaded():
    with open("/proc/self/maps") as maps:
        return "libcuda" in maps.read()
print(is_loaded())
with ad.simulate(2, platform="gpu"):
    float(ad.device_put(np.ones(4), ad.devices()[1]).sum())
print(is_loaded(), ad.device_put(np.ones(4)).sum(), is_loaded())
ad.devices("gpu")
print(is_loaded())
"""
    assert output_of(library, program).splitlines() == ["False", "False 4.0 False", "True"]


@pytest.mark.skipif(shutil.which("clang++-19") is None, reason="clang 19 is not installed: make fuzz installs it")
def test_the_committed_kernels_are_those_of_their_source():
    command = [CHECKOUT / "tools" / "make_kernels.sh", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_blocks_of_the_page_about_cuda_run(library):
    page = (CHECKOUT / "docs" / "how_to" / "cuda.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```py(?:thon)?\n(.*?)^```$", page)
    kept = [block for block in blocks if "import cupy, torch" not in block and "except RuntimeError" not in block]
    assert len(kept) == len(blocks) - 2 == 5
    program = "".join(kept) + "print(ad.device_get(z).tolist())\n"
    found = output_of(library, program, CUDA_STAND_IN="gpus=2;memory=100000000", PYTHONPATH=path_of_cupy())
    assert found.splitlines()[-1] == str([[0.25, 0.25]] * 8)


def test_a_requested_platform_is_the_default(library):
    program = "print(ad.devices(), ad.device_put(np.ones(2)).device.platform, ad.devices('cpu')[0].platform)"
    found = output_of(library, program, JAX_PLATFORMS="cuda,cpu", CUDA_STAND_IN="gpus=1")
    assert found == "[CudaDevice(id=0)] gpu cpu"


def test_a_shard_moves_between_gpus_in_parts(library):
    program = """
mesh = ad.Mesh(np.array(ad.devices()), ("x",))
value = np.arange(64, dtype=np.int16).reshape(8, 8)
rows = ad.device_put(value, ad.NamedSharding(mesh, ad.P("x")))
columns = ad.device_put(rows, ad.NamedSharding(mesh, ad.P(None, "x")))
print((ad.device_get(columns) == value).all())
"""
    assert output_of(library, program, JAX_PLATFORMS="cuda", CUDA_STAND_IN="gpus=4") == "True"


def test_a_checkpoint_is_saved_from_gpus_and_restored_onto_others(library, tmp_path):
    program = f"""
mesh = ad.Mesh(np.array(ad.devices("gpu")), ("x",))
rows, columns = ad.NamedSharding(mesh, ad.P("x")), ad.NamedSharding(mesh, ad.P(None, "x"))
value = np.arange(64, dtype=np.float32).reshape(8, 8)
ad.checkpoint.save({str(tmp_path / "c")!r}, {{"w": ad.device_put(value, rows)}})
for target in (rows, columns, ad.NamedSharding(mesh, ad.P())):
    restored = ad.checkpoint.restore({str(tmp_path / "c")!r}, {{"w": target}}, verify=True)["w"]
    print(restored.sharding == target, (ad.device_get(restored) == value).all())
"""
    assert output_of(library, program, CUDA_STAND_IN="gpus=4").splitlines() == ["True True"] * 3


def test_transfers_of_gpus_are_recorded(library):
    program = """
first, second = ad.devices("gpu")
with ad.transfers.record() as report:
    x = ad.device_put(np.ones(4), first)
    y = ad.device_put(x, second)
    ad.device_get(y)
print([report.bytes(each) for each in ("host-to-device", "device-to-device", "device-to-host")])
"""
    assert output_of(library, program, CUDA_STAND_IN="gpus=2") == "[32, 32, 32]"


def test_a_copy_that_fails_poisons_its_result_only(library):
    program = """
first, second = ad.devices("gpu")
x = ad.device_put(np.ones((1024, 1024)), first)
moved = ad.device_put(x, second)
again = ad.device_put(moved, first)
for read in (moved.block_until_ready, lambda: ad.device_get(again), again.copy_to_host_async().result):
    try:
        read()
    except RuntimeError as error:
        print(error)
print(int(ad.device_get(x).sum()))
"""
    *errors, last = output_of(library, program, CUDA_STAND_IN="gpus=2;fail=cuMemcpyPeerAsync:700").splitlines()
    expected = "copy: cuMemcpyPeerAsync failed: CUDA_ERROR_ILLEGAL_ADDRESS (700): an error of the stand-in"
    assert [error.startswith(expected) and "restart the process" in error for error in errors] == [True] * 3
    assert last == "1048576"


@pytest.mark.parametrize(
    ("function", "error"), [("cuModuleLoadData", 999), ("cuModuleGetFunction", 1), ("cuLaunchKernel", 1)]
)
def test_a_kernel_that_cannot_run_is_an_error_of_its_copy(library, function, error):
    program = """
from artifex_devices.layout import Format, Layout
here = ad.SingleDeviceSharding(ad.devices("gpu")[0])
x = ad.device_put(np.arange(64.0).reshape(8, 8), here)
try:
    ad.device_get(ad.device_put(x, Format(Layout((1, 0)), here)))
except RuntimeError as error:
    print(error)
print(ad.device_get(ad.device_put(x, here, may_alias=False)).sum())
"""
    failed, other = output_of(library, program, CUDA_STAND_IN=f"gpus=1;fail={function}:{error}").splitlines()
    assert failed.startswith(f"copy: {function} failed: CUDA_ERROR_")
    assert other == "2016.0"


@pytest.mark.parametrize("function", ["cuEventRecord", "cuEventQuery", "cuMemcpyAsync", "cuMemHostAlloc"])
def test_an_error_while_several_workers_stage_a_value_ends_all_of_them(library, function):
    program = """
value = np.ones((3 << 20,), np.int32)
for _ in range(2):
    try:
        ad.device_put(value, ad.devices("gpu")[0]).block_until_ready()
    except RuntimeError as error:
        print(str(error).split(":")[1])
print(int(ad.device_put(value, ad.devices("cpu")[0]).sum()))
"""
    found = output_of(library, program, CUDA_STAND_IN=f"gpus=1;fail={function}:1").splitlines()
    assert len(found) == 3
    assert found[2] == str(3 << 20)


@pytest.mark.parametrize(
    "wait",
    [
        "ad.device_get(x)",
        "ad.device_put(x, ad.devices('cpu')[0])",
        "ad.device_put(x, ad.devices('gpu')[0], may_alias=False).block_until_ready()",
        "x = None",
    ],
    ids=["read", "move to the host", "copy", "release"],
)
def test_other_threads_run_while_work_of_other_libraries_is_awaited(library, wait):
    """Their work on the GPU may need the GIL to end."""
    program = f"""
import threading, time
x = ad.device_put(np.ones(4, np.float32), ad.devices("gpu")[0])
interface = x.__cuda_array_interface__
count, goes_on = 0, True
def run():
    global count
    while goes_on:
        count += 1
        time.sleep(0.001)  # counts the milliseconds in which it may run
thread = threading.Thread(target=run)
thread.start()
before = count
{wait}
during = count - before
goes_on = False
thread.join()
print(during > 20, during)
"""
    found = output_of(library, program, CUDA_STAND_IN="gpus=1;slow=cuCtxSynchronize:300")
    assert found.startswith("True "), found


def test_memory_of_the_driver_that_is_used_up_is_an_error(library):
    program = """
device = ad.devices("gpu")[0]
held = [ad.device_put(np.zeros(2**21), device) for _ in range(4)]
try:
    ad.device_put(np.zeros(2**22), device)
except MemoryError as error:
    print(str(error).split(":")[0], isinstance(error, RuntimeError))
held.pop().delete()
held.pop()
print(ad.device_put(np.zeros(2**22), device).shape)
"""
    found = output_of(library, program, CUDA_STAND_IN="gpus=1;memory=70000000").splitlines()
    assert found == ["RESOURCE_EXHAUSTED True", "(4194304,)"]


def test_variables_of_jax_choose_the_allocator(library):
    program = """
print(*(device.memory_stats()["bytes_limit"] for device in ad.devices("cuda")))
print(ad.devices("cuda")[0].client.allocator_config.kind.name)
"""
    variables = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.5", "XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}
    found = output_of(library, program, CUDA_STAND_IN="gpus=2;memory=1000000000", **variables)
    assert found.splitlines() == ["500000000 500000000", "PLATFORM"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("XLA_PYTHON_CLIENT_ALLOCATOR", "spam"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "half"),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION", "1.5"),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "maybe"),
    ],
)
def test_bad_variables_of_the_allocator_are_refused(library, name, value):
    program = """
try:
    ad.devices("cuda")
except ValueError as error:
    print(error)
"""
    found = output_of(library, program, **{name: value})
    assert "expected" in found
    assert value in found


WHY_NO_GPU = """
try:
    ad.devices("gpu")
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("settings", "what", "repair"),
    [
        ("fail=cuInit:34", "cuInit failed: CUDA_ERROR_STUB_LIBRARY (34)", "remove its folder (.../stubs)"),
        ("fail=cuInit:100", "cuInit failed: CUDA_ERROR_NO_DEVICE (100)", "check that nvidia-smi lists a GPU"),
        ("fail=cuInit:304", "cuInit failed: CUDA_ERROR_OPERATING_SYSTEM (304)", "sudo nvidia-modprobe -u -c=0"),
        ("fail=cuInit:802", "cuInit failed: CUDA_ERROR_SYSTEM_NOT_READY (802)", "nvidia-fabricmanager"),
        ("fail=cuInit:803", "cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "restart the machine"),
        ("gpus=0", "cuInit failed: CUDA_ERROR_NO_DEVICE (100)", "check that nvidia-smi lists a GPU"),
    ],
)
def test_an_unusable_driver_is_explained(library, settings, what, repair):
    found = output_of(library, WHY_NO_GPU, CUDA_STAND_IN=settings)
    assert what in found
    assert repair in found


def test_hidden_gpus_name_the_variable_that_hides_them(library):
    found = output_of(library, WHY_NO_GPU, CUDA_STAND_IN="fail=cuInit:100", CUDA_VISIBLE_DEVICES="7")
    assert 'unset CUDA_VISIBLE_DEVICES, which is "7"' in found


def test_an_old_driver_is_named_with_its_version(tmp_path):
    source, old = tmp_path / "old.c", tmp_path / "libcuda.so.1"
    source.write_text(
        "int cuInit(unsigned flags) { return 0; }\n"
        "int cuDriverGetVersion(int* version) { *version = 10020; return 0; }\n"
    )
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", source, "-o", old], check=True)
    found = output_of(str(old), WHY_NO_GPU)
    assert f"{old} (of CUDA 10.2) has no function " in found
    assert "update NVIDIA's driver to one for CUDA 11.2 or newer" in found


@pytest.mark.parametrize(
    ("settings", "repair"),
    [("fail=cuInit:803", "restart the machine"), ("fail=cuInit:304", "sudo nvidia-modprobe -u -c=0")],
)
def test_the_doctor_has_the_same_reason_and_repair(library, settings, repair):
    program = """
import json
from artifex_devices import doctor
gpus = doctor.examine(measure=False).sections["gpus"]
print(json.dumps([gpus.facts["cuda_devices"].problem, gpus.value("cuda_repair")]))
"""
    reason, found = json.loads(output_of(library, program, CUDA_STAND_IN=settings))
    assert reason.startswith("cuInit failed: ")
    assert repair in found


def test_the_doctor_lists_usable_gpus(library):
    program = """
from artifex_devices import doctor
gpus = doctor.examine(measure=False).sections["gpus"]
print([gpu["name"] for gpu in gpus.value("cuda_devices")], gpus.value("cuda_repair"))
"""
    found = output_of(library, program, CUDA_STAND_IN="gpus=2;name=Spam 9000")
    assert found == "['Spam 9000', 'Spam 9000'] none needed"
