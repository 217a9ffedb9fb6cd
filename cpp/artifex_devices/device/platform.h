// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "artifex_devices/device/backend.h"

namespace artifex_devices {

/// The platforms that a program requests, such as "gpu,cpu", and the source of the request, for messages.
struct PlatformRequest {
  std::optional<std::string> names;
  std::string source;
};

/// Whether the first platform is a GPU platform: "gpu" or "cuda".
bool prefers_gpus(const PlatformRequest& request);

/// Throws Unavailable for a platform that is not available. If the first platform is a GPU platform, GPUs become the
/// base client, as in JAX. Reads the environment: call with the GIL held.
void use_platforms(const PlatformRequest& request);

/// The backend of a platform: null for "cpu"; "gpu" is emulated by the CPU, `device_kind` being a GPU of the catalogue;
/// "cuda" are the GPUs of this machine, each as several devices in tests.
BackendRef backend_of_platform(std::string_view platform, const std::optional<std::string>& device_kind = std::nullopt,
                               int64_t devices_per_gpu = 1);

}  // namespace artifex_devices
