// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "artifex_devices/device/backend.h"

namespace artifex_devices {

/// GPUs that do not exist, to test code for GPUs on a machine without one. They behave as GPUs do towards the program:
/// each device has its own memory, which the host cannot read. The memory is host memory whose reported addresses are
/// unmapped, and the cores near it do the GPU's work.
struct EmulatedGpu {
  std::string device_kind = "emulated GPU";
  std::optional<int64_t> memory_bytes = std::nullopt;  // nothing: an equal share of the memory near the device
};

/// Returns a GPU of the catalogue by one of its names, as gpu_cluster() takes them: "h100", "NVIDIA H100 SXM". Throws
/// InvalidArgument listing the known ones for another name.
EmulatedGpu emulated_gpu_from_name(std::string_view name);

BackendRef make_emulated_gpu_backend(EmulatedGpu gpu);

}  // namespace artifex_devices
