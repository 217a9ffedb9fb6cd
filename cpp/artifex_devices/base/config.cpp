// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/config.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constinit Config g_config;  // no constructor at load, no destructor at exit: workers may still read it then

}  // namespace

Config& config() noexcept { return g_config; }

std::atomic<int64_t>& config_option(std::string_view name) {
  if (name == "cache_bytes") return g_config.cache_bytes;
  if (name == "parallel_copy_bytes") return g_config.parallel_copy_bytes;
  if (name == "async_copy_bytes") return g_config.async_copy_bytes;
  if (name == "trace_allocations") return g_config.trace_allocations;
  throw_error(
      "config: the core has no option {:?}; expected cache_bytes, parallel_copy_bytes, async_copy_bytes or "
      "trace_allocations",
      name);
}

}  // namespace artifex_devices
