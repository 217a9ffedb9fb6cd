// SPDX-License-Identifier: Apache-2.0
#include "recent_cache.h"

#include <vector>

namespace artifex_devices::bindings {
namespace {

struct RegisteredCache {
  const char* name;
  std::function<void(const Client*)> forget;
  std::function<int64_t()> size;
};

std::vector<RegisteredCache>& tables() {
  static auto* list = new std::vector<RegisteredCache>;
  return *list;
}

[[maybe_unused]] const auto& g_tables_made_at_load = tables();

}  // namespace

void register_recent_cache(const char* name, std::function<void(const Client*)> forget, std::function<int64_t()> size) {
  tables().push_back({name, std::move(forget), std::move(size)});
}

void clear_recent_caches(const Client* client) {
  for (const RegisteredCache& table : tables()) table.forget(client);
}

py::dict recent_cache_sizes() {
  py::dict sizes;
  for (const RegisteredCache& table : tables()) sizes[table.name] = table.size();
  return sizes;
}

}  // namespace artifex_devices::bindings
