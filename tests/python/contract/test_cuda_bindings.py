# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's cuda-bindings drives the stand-in, which is compiled against our declarations of the driver's interface."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed: pip install cuda-bindings")

DECLARATIONS = Path(__file__).resolve().parents[3] / "cpp/artifex_devices/device/cuda/driver_abi.h"
NAMES = {  # of our constants in NVIDIA's enumerations
    "CUresult": {
        "kInvalidValue": "CUDA_ERROR_INVALID_VALUE",
        "kOutOfMemory": "CUDA_ERROR_OUT_OF_MEMORY",
        "kNotInitialized": "CUDA_ERROR_NOT_INITIALIZED",
        "kDeinitialized": "CUDA_ERROR_DEINITIALIZED",
        "kStubLibrary": "CUDA_ERROR_STUB_LIBRARY",
        "kNoDevice": "CUDA_ERROR_NO_DEVICE",
        "kInvalidContext": "CUDA_ERROR_INVALID_CONTEXT",
        "kOperatingSystem": "CUDA_ERROR_OPERATING_SYSTEM",
        "kNotReady": "CUDA_ERROR_NOT_READY",
        "kIllegalAddress": "CUDA_ERROR_ILLEGAL_ADDRESS",
        "kPeerAccessAlreadyEnabled": "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
        "kNotPermitted": "CUDA_ERROR_NOT_PERMITTED",
        "kSystemNotReady": "CUDA_ERROR_SYSTEM_NOT_READY",
        "kSystemDriverMismatch": "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "kCompatNotSupported": "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "kUnknown": "CUDA_ERROR_UNKNOWN",
    },
    "CUdevice_attribute": {
        "kMaxPitch": "CU_DEVICE_ATTRIBUTE_MAX_PITCH",
        "kComputeMajor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
        "kComputeMinor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
        "kMemoryPoolsSupported": "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED",
    },
    "CUpointer_attribute": {
        "kMemoryType": "CU_POINTER_ATTRIBUTE_MEMORY_TYPE",
        "kDeviceOrdinal": "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
    },
    "CUmemorytype": {
        "kHostMemory": "CU_MEMORYTYPE_HOST",
        "kDeviceMemory": "CU_MEMORYTYPE_DEVICE",
        "kUnifiedMemory": "CU_MEMORYTYPE_UNIFIED",
    },
    "CUstream_flags": {"kNonBlockingStream": "CU_STREAM_NON_BLOCKING"},
    "CUevent_flags": {"kBlockingSync": "CU_EVENT_BLOCKING_SYNC", "kDisableTiming": "CU_EVENT_DISABLE_TIMING"},
}
PROGRAM = """
import ctypes, numpy as np
from cuda.bindings import driver as cuda

def ok(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) == 2 else result[1:]

def host(count):
    return np.frombuffer((ctypes.c_uint8 * count).from_address(ok(cuda.cuMemHostAlloc(count, 1))), np.uint8)

ok(cuda.cuInit(0))
first, second = (ok(cuda.cuDeviceGet(i)) for i in range(ok(cuda.cuDeviceGetCount())))
name, bus = ok(cuda.cuDeviceGetName(64, second)), ok(cuda.cuDeviceGetPCIBusId(32, second))
print(ok(cuda.cuDriverGetVersion()), name.split(b"\\0")[0].decode(), bus.split(b"\\0")[0].decode())
print(ok(cuda.cuDeviceTotalMem(second)), ok(cuda.cuDeviceCanAccessPeer(first, second)))
contexts = [ok(cuda.cuDevicePrimaryCtxRetain(device)) for device in (first, second)]
ok(cuda.cuCtxPushCurrent(contexts[0]))
far = ok(cuda.cuMemAlloc(64))
ok(cuda.cuCtxPopCurrent())
ok(cuda.cuCtxPushCurrent(contexts[1]))
ok(cuda.cuCtxEnablePeerAccess(contexts[0], 0))
stream, event, near = ok(cuda.cuStreamCreate(1)), ok(cuda.cuEventCreate(3)), ok(cuda.cuMemAlloc(64))
source, rows = host(64), host(32)
source[:] = np.arange(64)
ok(cuda.cuMemcpyAsync(near, source.ctypes.data, 64, stream))
ok(cuda.cuMemcpyPeerAsync(far, contexts[0], near, contexts[1], 64, stream))
copy = cuda.CUDA_MEMCPY3D_PEER()
copy.srcMemoryType = copy.dstMemoryType = cuda.CUmemorytype.CU_MEMORYTYPE_DEVICE
copy.srcDevice, copy.srcContext, copy.srcPitch, copy.srcHeight = far, contexts[0], 16, 4
copy.dstDevice, copy.dstContext, copy.dstPitch, copy.dstHeight = near, contexts[1], 8, 4
copy.WidthInBytes, copy.Height, copy.Depth = 8, 4, 1
ok(cuda.cuMemcpy3DPeerAsync(copy, stream))
copy = cuda.CUDA_MEMCPY2D()
copy.srcMemoryType = copy.dstMemoryType = cuda.CUmemorytype.CU_MEMORYTYPE_UNIFIED
copy.srcDevice, copy.srcPitch, copy.dstDevice, copy.dstPitch = near, 8, rows.ctypes.data, 4
copy.WidthInBytes, copy.Height = 4, 4
ok(cuda.cuMemcpy2DAsync(copy, stream))
ok(cuda.cuEventRecord(event, stream))
ok(cuda.cuStreamWaitEvent(stream, event, 0))
ok(cuda.cuEventSynchronize(event))
print(rows[:16].tolist())
kinds = [cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
         cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL]
print(*(list(map(int, ok(cuda.cuPointerGetAttributes(2, kinds, address)))) for address in (near, far)))
pooled = ok(cuda.cuMemAllocAsync(64, stream))
ok(cuda.cuMemFreeAsync(pooled, stream))
ok(cuda.cuStreamSynchronize(stream))
ok(cuda.cuCtxSynchronize())
for address in (near, far):
    ok(cuda.cuMemFree(address))
ok(cuda.cuMemFreeHost(source.ctypes.data))
"""


@pytest.mark.parametrize("enumeration", NAMES)
def test_our_constants_are_nvidias(enumeration):
    from cuda.bindings import driver

    declared = dict(re.findall(r"\b(k\w+) = (\d+)", DECLARATIONS.read_text()))
    members = getattr(driver, enumeration)
    for ours, theirs in NAMES[enumeration].items():
        assert int(declared[ours]) == int(getattr(members, theirs)), ours


def test_nvidias_bindings_call_the_functions_as_we_declare_them(library):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(Path(library).parent), "CUDA_STAND_IN": "gpus=2"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "12040 Stand-in GPU 0000:31:00.0",
        "1073741824 1",
        "[0, 1, 2, 3, 16, 17, 18, 19, 32, 33, 34, 35, 48, 49, 50, 51]",
        "[2, 1] [2, 0]",
    ]
