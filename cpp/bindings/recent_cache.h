// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/device/client.h"
#include "gil_mutex.h"

namespace artifex_devices::bindings {

/// A direct-mapped cache of results by their arguments: a new entry replaces the old one in its place. Entries keep
/// Python objects, meshes and worlds alive, so only store entries of open worlds; clear_recent_caches() drops them.
/// Needs the GIL; caches are never destroyed.
///
/// A new Entry is empty, and `is_of(client)` returns whether it keeps that client alive.
template <class Entry, size_t kPlaces>
class RecentCache {
 public:
  /// Returns `use(entry)` of the place of a hash. `use` compares, copies and sets references; it must neither run
  /// Python code nor drop the last reference to an object.
  template <class Use>
  auto at(size_t hash, Use&& use) {
    const std::lock_guard lock(mutex_);
    return use(entries_[(hash ^ hash >> 32) % kPlaces]);
  }

  /// Replaces the entry in the place of a hash. The old one is destroyed afterwards, as that may run Python code.
  void store(size_t hash, Entry entry) {
    at(hash, [&](Entry& old) { std::swap(old, entry); });
  }

  /// Drops the entries that keep `client` alive, or all for null.
  void forget(const Client* client) {
    for (Entry& entry : entries_) {
      std::optional<Entry> gone;
      const std::lock_guard lock(mutex_);  // until `gone` is destroyed
      if (entry.is_empty() || (client != nullptr && !entry.is_of(*client))) continue;
      gone = std::exchange(entry, Entry());
    }
  }

 private:
  std::array<Entry, kPlaces> entries_;
  GilMutex mutex_;
};

inline size_t hash_pointer(const void* pointer) noexcept { return reinterpret_cast<uintptr_t>(pointer) >> 4; }

/// The functions that drop entries, one for each cache. Never destroyed.
inline std::vector<std::function<void(const Client*)>>& forget_functions() {
  static auto* list = new std::vector<std::function<void(const Client*)>>;
  return *list;
}

/// Creates a cache that is never destroyed.
template <class Entry, size_t kPlaces>
RecentCache<Entry, kPlaces>& make_recent_cache() {
  auto* table = new RecentCache<Entry, kPlaces>;
  forget_functions().push_back([table](const Client* client) { table->forget(client); });
  return *table;
}

/// Drops the entries of all caches that keep the client alive, or all entries for null.
inline void clear_recent_caches(const Client* client) {
  for (const auto& forget : forget_functions()) forget(client);
}

}  // namespace artifex_devices::bindings
