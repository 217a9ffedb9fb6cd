// SPDX-License-Identifier: Apache-2.0
// The part of Storage that counts handles and charges.
#include "artifex_devices/array/shares.h"

#include <unordered_map>

namespace artifex_devices {

Storage::Shares* Storage::ended() noexcept {
  static int64_t mark;  // only its address is used
  return reinterpret_cast<Shares*>(&mark);
}

Storage::~Storage() {
  end_all();
  close();
  Shares* shares = shares_.load(std::memory_order_acquire);
  if (shares != ended()) delete shares;
}

void Storage::discharge_first(int64_t positions) const noexcept {
  for_positions(positions, [this](int64_t p) { device(p)->discharge(position_bytes(p), kind()); });
}

void Storage::retain(int64_t position) {
  if (position < 0) {
    whole_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  Shares* shares = shares_.load(std::memory_order_acquire);
  if (!shares) shares = split();
  if (shares == ended()) return;
  auto& count = shares->handles[static_cast<size_t>(position)];
  int64_t before = count.load(std::memory_order_relaxed);
  while (before > 0 && !count.compare_exchange_weak(before, before + 1, std::memory_order_relaxed)) {
  }
}

void Storage::release(int64_t position) noexcept {
  if (position < 0) {
    if (whole_.fetch_sub(1, std::memory_order_acq_rel) == 1) end_whole();
    return;
  }
  Shares* shares = shares_.load(std::memory_order_acquire);
  if (shares && shares != ended()) drop_handle(*shares, position);
}

void Storage::delete_all(bool to_system) noexcept {
  if (deleted_.exchange(true, std::memory_order_acq_rel)) return;
  if (to_system) to_system_.store(true, std::memory_order_relaxed);
  close();  // before the counts, so that no thread removes blocks while another reads them
  end_all();
}

void Storage::donate() noexcept {
  if (!is_deleted()) donated_.store(true, std::memory_order_relaxed);
  delete_all(false);
}

/// Replaces one handle for all positions by a handle for each, owned by the global array.
Storage::Shares* Storage::split() {
  if (!enter()) return ended();
  std::unique_ptr<Shares> made;
  try {
    const int64_t positions = sharding_->num_devices();
    made = std::make_unique<Shares>(positions, count_);
    for (int64_t b = 0; b < count_; ++b) {
      const auto i = static_cast<size_t>(b);
      made->positions_left[i].store(0, std::memory_order_relaxed);
      made->buffers_left[i].store(0, std::memory_order_relaxed);
    }
    for (int64_t p = 0; p < positions; ++p) made->handles[static_cast<size_t>(p)].store(0, std::memory_order_relaxed);
    for_positions(position_count(), [&](int64_t p) {
      made->handles[static_cast<size_t>(p)].store(1, std::memory_order_relaxed);
      made->positions_left[static_cast<size_t>(buffer_of(p))].fetch_add(1, std::memory_order_relaxed);
    });
    std::unordered_map<const Block*, int64_t> last_of_block;
    for (int64_t b = 0; b < count_; ++b) {
      const auto i = static_cast<size_t>(b);
      const Block* block = slab_ ? &*slab_ : &*buffers_[i].block;
      made->next_in_group[i] = -1;
      const auto [found, is_new] = last_of_block.try_emplace(block, b);
      if (is_new) {
        made->group[i] = b;
        made->groups_left.fetch_add(1, std::memory_order_relaxed);
      } else {
        made->group[i] = made->group[static_cast<size_t>(found->second)];
        made->next_in_group[static_cast<size_t>(found->second)] = b;
        found->second = b;
      }
      made->buffers_left[static_cast<size_t>(made->group[i])].fetch_add(1, std::memory_order_relaxed);
    }
  } catch (...) {
    leave();
    throw;
  }
  leave();
  Shares* current = nullptr;
  if (shares_.compare_exchange_strong(current, made.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
    return made.release();
  }
  return current;
}

/// Ends every handle that is left.
void Storage::end_all() noexcept {
  Shares* shares = nullptr;
  if (shares_.compare_exchange_strong(shares, ended(), std::memory_order_acq_rel, std::memory_order_acquire)) {
    discharge_first(position_count());
    return;
  }
  if (shares == ended()) return;
  for_positions(position_count(), [&](int64_t p) {
    if (shares->handles[static_cast<size_t>(p)].exchange(0, std::memory_order_acq_rel) > 0) end_position(*shares, p);
  });
}

void Storage::end_whole() noexcept {
  drop_host_value();
  Shares* shares = nullptr;
  if (shares_.compare_exchange_strong(shares, ended(), std::memory_order_acq_rel, std::memory_order_acquire)) {
    discharge_first(position_count());
    close();
    return;
  }
  if (shares == ended()) return;
  for_positions(position_count(), [&](int64_t p) { drop_handle(*shares, p); });
}

void Storage::drop_handle(Shares& shares, int64_t position) noexcept {
  auto& count = shares.handles[static_cast<size_t>(position)];
  int64_t before = count.load(std::memory_order_relaxed);
  do {
    if (before == 0) return;  // deleted meanwhile
  } while (!count.compare_exchange_weak(before, before - 1, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (before == 1) end_position(shares, position);
}

void Storage::end_position(Shares& shares, int64_t position) noexcept {
  device(position)->discharge(position_bytes(position), kind());
  const int64_t buffer = buffer_of(position);
  if (shares.positions_left[static_cast<size_t>(buffer)].fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const int64_t first = shares.group[static_cast<size_t>(buffer)];
  const bool shared_block = !shares.is_alone(buffer);
  // Counted before the group's number decreases, so that the thread that dissolves the group finds every buffer
  // reserved.
  if (shared_block) device_of_buffer(buffer)->add_reserved(buffer_bytes(buffer), kind());
  if (shares.buffers_left[static_cast<size_t>(first)].fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const bool inside = enter();
  for (int64_t b = first; b >= 0; b = shares.next_in_group[static_cast<size_t>(b)]) {
    if (shared_block) device_of_buffer(b)->add_reserved(-buffer_bytes(b), kind());
    if (inside && !slab_) buffers_[static_cast<size_t>(b)].block = BlockRef();
  }
  if (inside) leave();
  if (shares.groups_left.fetch_sub(1, std::memory_order_acq_rel) == 1) close();
}

}  // namespace artifex_devices
