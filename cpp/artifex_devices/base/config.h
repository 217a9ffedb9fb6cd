// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace artifex_devices {

/// Settings of the core. Together with the base client they are its only global state. Each may be read and set from
/// any thread at any time; a change affects later calls. Python's `config` has them under the same names.
struct Config {
  /// Most bytes of freed blocks that are cached for reuse; -1: a quarter of the memory that the process may use. When
  /// the system is short of memory, it takes cached pages back, except the smaller of 1 GiB and an eighth of that
  /// memory.
  std::atomic<int64_t> cache_bytes{-1};
  /// Copies of fewer bytes run on the calling thread only. Measured by bench/ (family put).
  std::atomic<int64_t> parallel_copy_bytes{int64_t{512} << 10};
  /// Array-to-Array copies of at least this many bytes run asynchronously.
  std::atomic<int64_t> async_copy_bytes{int64_t{4} << 20};
  /// 1: each new array is recorded with the line of the program that created it (Array::creation_line).
  std::atomic<int64_t> trace_allocations{0};
};

Config& config() noexcept;

/// The number of that name. Throws InvalidArgument for another name.
std::atomic<int64_t>& config_option(std::string_view name);

}  // namespace artifex_devices
