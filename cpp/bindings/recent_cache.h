// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/device/client.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// What was worked out last, found again by what it was made of. A fixed number of places, each for one hash: a
/// newcomer takes the place of the old. Python objects in it are kept alive, and with them meshes and worlds, so only
/// those of open worlds belong here; clear_recent_caches() lets go of them. Needs the GIL; tables are never destroyed.
///
/// An Entry is empty when made, and `is_of(client)` says whether it keeps that client alive.
template <class Entry, size_t kPlaces>
class RecentCache {
 public:
  Entry& place(size_t hash) { return entries_[(hash ^ hash >> 32) % kPlaces]; }

  /// What keeps `client` (null: any) alive is let go of. Emptied first, as what goes may run Python code.
  void forget(const Client* client) {
    for (Entry& entry : entries_) {
      if (entry.is_empty() || (client != nullptr && !entry.is_of(*client))) continue;
      const Entry gone = std::exchange(entry, Entry());
    }
  }

  int64_t size() const {
    int64_t filled = 0;
    for (const Entry& entry : entries_) filled += entry.is_empty() ? 0 : 1;
    return filled;
  }

 private:
  std::array<Entry, kPlaces> entries_;
};

inline size_t hash_pointer(const void* pointer) noexcept { return reinterpret_cast<uintptr_t>(pointer) >> 4; }

/// Registers a table, so that clear_recent_caches finds it. Called once a table while the module is loaded.
void register_recent_cache(const char* name, std::function<void(const Client*)> forget, std::function<int64_t()> size);

/// A table that lives for good.
template <class Entry, size_t kPlaces>
RecentCache<Entry, kPlaces>& make_recent_cache(const char* name) {
  auto* table = new RecentCache<Entry, kPlaces>;
  register_recent_cache(
      name, [table](const Client* client) { table->forget(client); }, [table] { return table->size(); });
  return *table;
}

/// Lets go of what keeps the client alive; null: of all.
void clear_recent_caches(const Client* client);

/// {name of a table: places in use}
py::dict recent_cache_sizes();

}  // namespace artifex_devices::bindings
