// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "artifex_devices/base/guarded.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/device/cpu/pages.h"
#include "artifex_devices/device/cpu/reserve.h"

namespace artifex_devices {

/// The pages of one arena: preallocated pages first, then pages of the system, within the memory that the process may
/// use (page_budget.h). Holds no lock during a system call. Thread-safe.
class PageSource {
 public:
  /// Ordinary pages are neither bound to the node nor aligned or huge.
  PageSource(int node, bool is_ordinary) : node_(node), is_ordinary_(is_ordinary) {}

  /// Returns null if the system has no memory. `huge`: whether they may be huge pages.
  std::byte* take(int64_t bytes, bool huge) noexcept;
  void give(std::byte* data, int64_t bytes) noexcept;

  /// As MemorySpace::preallocate.
  std::shared_ptr<void> preallocate(int64_t bytes, std::string_view operation);
  bool is_preallocated(const std::byte* data) noexcept;
  struct Preallocated {
    int64_t bytes = 0;  // without free bytes whose owners are all gone
    int64_t free_bytes = 0;
  };
  Preallocated preallocated() noexcept;

  void before_fork() noexcept { at_fork_.emplace(reserves_); }
  void after_fork() noexcept { at_fork_.reset(); }

 private:
  using Reserves = std::vector<std::unique_ptr<Reserve>>;
  using GuardedReserves = Guarded<Reserves, Mutex<"reserves of an arena">>;

  std::byte* cut_reserve(int64_t bytes) noexcept;  // null if no reserve has space
  bool give_to_reserve(std::byte* data, int64_t bytes) noexcept;
  void retire(const Reserve* reserve) noexcept;
  std::unique_ptr<Reserve> remove_if_done(Reserves& reserves, Reserves::iterator at) noexcept;
  static Reserves::iterator find(Reserves& reserves, const std::byte* data) noexcept;

  int node_;
  bool is_ordinary_;
  GuardedReserves reserves_;
  std::atomic<bool> has_reserves_{false};  // of reserves_; spares its lock
  std::optional<GuardedReserves::Locked> at_fork_;
};

}  // namespace artifex_devices
