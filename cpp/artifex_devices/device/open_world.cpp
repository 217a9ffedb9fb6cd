// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/open_world.h"

#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/base_client.h"
#include "artifex_devices/device/cuda/cuda_backend.h"

namespace artifex_devices {

OpenWorld* skip_left(OpenWorld* world) noexcept {
  while (world != nullptr && world->is_left) world = world->outer.get();
  return world;
}

void check_innermost(const OpenWorld& left, const OpenWorld* innermost) {
  if (&left == innermost) return;
  throw_error<Unavailable>(
      "simulate: worlds were left in the wrong order; leave the innermost world of this thread first, or use `with` "
      "blocks");
}

ClientRef client_of_platform(std::string_view platform, OpenWorld* innermost) {
  ClientRef client = innermost != nullptr ? innermost->client : base_client();
  if (client->platform() == platform) return client;
  if (platform == "gpu" || platform == "cuda") {
    // Simulated worlds take the place of this machine, with its GPUs.
    const bool is_machine = innermost == nullptr && !base_is_replaced();
    return is_machine && cuda_report().is_usable ? gpu_client() : nullptr;
  }
  if (platform != "cpu" || client->is_compile_only()) return nullptr;
  for (OpenWorld* each = innermost; each != nullptr; each = skip_left(each->outer.get())) {
    if (each->client->platform() == platform && !each->client->is_compile_only()) return each->client;
  }
  return cpu_client();
}

}  // namespace artifex_devices
