// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/platform_version.h"

#include <fmt/format.h>

#include "artifex_devices/topology/hwloc_version.h"

namespace artifex_devices {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown compiler";
#endif
}

}  // namespace

std::string library_version() { return ARTIFEX_VERSION; }

std::string platform_version() {
  return fmt::format("artifex_devices {}, {}, hwloc {}, fmt {}.{}.{}", ARTIFEX_VERSION, compiler(), hwloc_version(),
                     FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
}

}  // namespace artifex_devices
