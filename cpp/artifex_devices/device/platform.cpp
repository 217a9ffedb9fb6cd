// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/platform.h"

#include <algorithm>
#include <string_view>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/base_client.h"
#include "artifex_devices/device/cuda/cuda_backend.h"

namespace artifex_devices {
namespace {

bool is_gpu(std::string_view name) { return name == "gpu" || name == "cuda"; }

}  // namespace

bool prefers_gpus(const PlatformRequest& request) {
  const std::string_view names = request.names ? std::string_view(*request.names) : std::string_view();
  return is_gpu(names.substr(0, names.find(',')));
}

void use_platforms(const PlatformRequest& request) {
  std::string_view rest = request.names ? std::string_view(*request.names) : std::string_view();
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (name == "cpu") continue;
    const CudaReport cuda = is_gpu(name) ? cuda_report() : CudaReport();
    if (cuda.is_usable) {
      if (is_first) use_gpus_as_base();
      continue;
    }
    throw_error<Unavailable>(
        "devices: {} requests platform {:?}, which is not available{}; expected one of: cpu; {}request cpu, or leave "
        "it out",
        request.source, name, is_gpu(name) ? fmt::format(": {}", cuda.problem) : std::string(),
        is_gpu(name) ? fmt::format("{}, ", cuda.fix) : std::string());
  }
}

}  // namespace artifex_devices
