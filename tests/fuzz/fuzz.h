// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Called by libFuzzer with each input. Returns 0; a fault crashes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace artifex_devices::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Crashes unless `holds`, which must be true for every input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace artifex_devices::fuzz
