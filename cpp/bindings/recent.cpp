// SPDX-License-Identifier: Apache-2.0
#include "recent.h"

#include <vector>

namespace artifex_devices::bindings {
namespace {

struct RecentTable {
  const char* name;
  std::function<void(const Client*)> forget;
  std::function<int64_t()> size;
};

std::vector<RecentTable>& tables() {
  static auto* made = new std::vector<RecentTable>;
  return *made;
}

[[maybe_unused]] const auto& g_tables_made_at_load = tables();

}  // namespace

void add_recent(const char* name, std::function<void(const Client*)> forget, std::function<int64_t()> size) {
  tables().push_back({name, std::move(forget), std::move(size)});
}

void forget_recent(const Client* client) {
  for (const RecentTable& table : tables()) table.forget(client);
}

py::dict recent_sizes() {
  py::dict sizes;
  for (const RecentTable& table : tables()) sizes[table.name] = table.size();
  return sizes;
}

}  // namespace artifex_devices::bindings
