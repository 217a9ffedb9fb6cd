// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <utility>

#include "artifex_devices/base/error.h"

namespace artifex_devices {

/// Throws `E` with a formatted message. Private: public headers do not include fmt.
template <class E = InvalidArgument, class... Args>
[[noreturn]] void throw_error(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace artifex_devices
