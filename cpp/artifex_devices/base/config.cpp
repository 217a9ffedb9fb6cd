// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/config.h"

namespace artifex_devices {
namespace {

constinit Config g_config;  // no constructor at load, no destructor at exit: workers may still read it then

}  // namespace

Config& config() noexcept { return g_config; }

}  // namespace artifex_devices
