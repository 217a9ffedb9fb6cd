// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "artifex_devices/device/backend.h"
#include "artifex_devices/device/cuda/gpus.h"

namespace artifex_devices {

/// State of CUDA in this process, found without creating a context.
struct CudaReport {
  bool is_usable = false;
  std::string library;     // that was loaded
  int driver_version = 0;  // 12040 for CUDA 12.4; 0 if unknown
  std::vector<cuda::GpuFacts> gpus;
  std::string problem;  // why it is not usable
  std::string fix;      // what to do about it
};

/// Loads the driver where it is not loaded yet. Reads the environment: call with the GIL held.
CudaReport cuda_report();

/// The GPUs of these ordinals, or all that CUDA reports, in its order. Creates their primary contexts. Throws
/// Unavailable with the problem and its fix where CUDA is not usable. Reads the environment: call with the GIL held.
///
/// `devices_per_gpu` is for tests that need more devices than the machine has GPUs: device i is on GPU i modulo their
/// number, and has an equal part of its memory.
BackendRef make_cuda_backend(int64_t devices_per_gpu = 1, const std::vector<int>& ordinals = {});

}  // namespace artifex_devices
