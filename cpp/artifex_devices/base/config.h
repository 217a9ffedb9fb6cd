// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace artifex_devices {

/// The numbers that steer the core, one of its two pieces of state (the other is the base client). Each may be read
/// and set from any thread at any time; a change acts on later calls. The Python `config` shows them by the same name.
struct Config {
  /// Bytes of freed blocks kept for reuse; -1: a quarter of the memory that the process may use. When the system is
  /// short of memory, it takes back all but the smaller of 1 GiB and an eighth of that memory by itself.
  std::atomic<int64_t> cache_bytes{-1};
  /// Copies below this run on the calling thread alone. Measured by bench/ (family put).
  std::atomic<int64_t> parallel_copy_bytes{int64_t{512} << 10};
  /// Array-to-Array copies from here on run after the call has returned.
  std::atomic<int64_t> async_copy_bytes{int64_t{4} << 20};
  /// 1: each new array is kept with the line of the program that made it (array/creation_line.h).
  std::atomic<int64_t> trace_allocations{0};
};

Config& config() noexcept;

/// The number of that name. Throws InvalidArgument for another name.
std::atomic<int64_t>& config_option(std::string_view name);

}  // namespace artifex_devices
