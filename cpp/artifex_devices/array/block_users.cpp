// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/block_users.h"

#include <unordered_map>

namespace artifex_devices {

BlockUsers::BlockUsers(const Sharding& sharding, const Charge& charge, const IdVector<BufferId, const Block*>& block_of)
    : sharding_(sharding), bytes_(charge.bytes()), buffers_(block_of.size()) {
  charge.for_positions(
      [&](Position p) { at(sharding.buffer_at(p)).positions_left.fetch_add(1, std::memory_order_relaxed); });
  std::unordered_map<const Block*, BufferId> last_of_block;
  for (const BufferId b : block_of.ids()) {
    const auto [last, is_new] = last_of_block.try_emplace(block_of[b], b);
    at(b).group = is_new ? b : at(last->second).group;
    if (is_new) {
      groups_left_.fetch_add(1, std::memory_order_relaxed);
    } else {
      at(last->second).next = b;
      last->second = b;
    }
    at(at(b).group).buffers_left.fetch_add(1, std::memory_order_relaxed);
  }
}

BufferId BlockUsers::end(Position position) noexcept {
  const BufferId buffer = sharding_.buffer_at(position);
  if (at(buffer).positions_left.fetch_sub(1, std::memory_order_acq_rel) > 1) return {};
  const BufferId first = at(buffer).group;
  const bool is_shared = !at(first).next.is_none();
  // Counted before the group's number decreases: the thread that ends the group must find every buffer reserved.
  if (is_shared) reserve(buffer, 1);
  if (at(first).buffers_left.fetch_sub(1, std::memory_order_acq_rel) > 1) return {};
  for (BufferId b = first; is_shared && !b.is_none(); b = next_in_group(b)) reserve(b, -1);
  groups_left_.fetch_sub(1, std::memory_order_acq_rel);
  return first;
}

void BlockUsers::reserve(BufferId buffer, int sign) const noexcept {
  sharding_.device(buffer).add_reserved(sign * bytes_.of_buffer(buffer), sharding_.memory_kind());
}

}  // namespace artifex_devices
