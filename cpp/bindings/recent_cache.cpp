// SPDX-License-Identifier: Apache-2.0
#include "recent_cache.h"

#include <vector>

namespace artifex_devices::bindings {
namespace {

std::vector<std::function<void(const Client*)>>& forget_functions() {
  static auto* list = new std::vector<std::function<void(const Client*)>>;
  return *list;
}

[[maybe_unused]] const auto& g_list_made_at_load = forget_functions();

}  // namespace

void register_recent_cache(std::function<void(const Client*)> forget) {
  forget_functions().push_back(std::move(forget));
}

void clear_recent_caches(const Client* client) {
  for (const auto& forget : forget_functions()) forget(client);
}

}  // namespace artifex_devices::bindings
