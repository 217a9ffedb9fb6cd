// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "artifex_devices/array/gate.h"
#include "artifex_devices/array/host_view.h"

namespace artifex_devices {

/// The value that was gathered from an array, perhaps still being written (see its `ready`). Thread-safe without locks.
class HostValueCache {
 public:
  HostValueCache() = default;
  HostValueCache(const HostValueCache&) = delete;
  HostValueCache& operator=(const HostValueCache&) = delete;
  ~HostValueCache() { close(); }

  /// Null without one.
  std::shared_ptr<const HostView> get() noexcept {
    std::shared_ptr<const HostView> found;
    if (!value_.load(std::memory_order_relaxed) || !gate_.enter()) return found;
    if (const auto* value = value_.load(std::memory_order_acquire)) found = *value;
    if (gate_.leave()) drop();
    return found;
  }
  /// The first value stays; returns it, or `value` itself once the cache is closed.
  std::shared_ptr<const HostView> put(std::shared_ptr<const HostView> value) {
    auto made = std::make_unique<std::shared_ptr<const HostView>>(value);
    if (!gate_.enter()) return value;
    std::shared_ptr<const HostView>* other = nullptr;
    if (value_.compare_exchange_strong(other, made.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
      made.release();
    } else {
      value = *other;
    }
    if (gate_.leave()) drop();
    return value;
  }
  /// Drops the value and caches none any more.
  void close() noexcept {
    if (gate_.close()) drop();
  }

 private:
  void drop() noexcept { delete value_.exchange(nullptr, std::memory_order_acq_rel); }

  Gate gate_;
  std::atomic<std::shared_ptr<const HostView>*> value_{nullptr};
};

}  // namespace artifex_devices
