// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

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

}  // namespace artifex_devices
