// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/charge.h"

#include <memory>
#include <utility>

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

ShardBytes::ShardBytes(const Sharding& sharding, const ShardDomains& domains, DType dtype, int64_t padding,
                       std::string_view operation) {
  const auto tile = dense_bytes(domains.shard_shape(), itemsize(dtype));
  const auto padded = tile ? checked_add(*tile, padding) : std::nullopt;
  // The biggest number that comes up is the charge of all positions together.
  if (!padded || !checked_mul(*padded, sharding.num_devices())) {
    throw_error("{}: shards of shape {} of {} on {} devices are more bytes than fit 63 bits{}; use smaller sizes",
                operation, to_string(domains.shard_shape()), name(dtype), sharding.num_devices(),
                note_on_zeros(domains.shard_shape()));
  }
  tile_ = *tile;
  total_ = tile_ * sharding.num_devices();
  if (domains.is_even()) return;
  const auto bytes_at = [&](Position position) { return domains.domain(position).volume() * itemsize(dtype); };
  uneven_.reserve(sharding.buffers().size());
  for (const BufferId b : sharding.buffers().ids()) uneven_.push_back(bytes_at(sharding.position_of(b)));
  total_ = 0;
  for (const Position p : sharding.positions()) total_ += bytes_at(p);
}

Charge::Count* Charge::ended() noexcept {
  static Count mark;  // only its address is used
  return &mark;
}

Charge::Count* Charge::handles() const noexcept {
  Count* handles = handles_.load(std::memory_order_acquire);
  return handles == ended() ? nullptr : handles;
}

Charge::Charge(const Sharding& sharding, ShardBytes bytes, std::string_view operation)
    : sharding_(sharding), bytes_(std::move(bytes)) {
  Position full;  // the first position that cannot take its part
  for_positions([&](Position p) {
    if (full.is_none() && !sharding_.device(p).try_charge(bytes_of(p), sharding_.memory_kind())) full = p;
  });
  if (full.is_none()) return;
  bool is_before = true;
  for_positions([&](Position p) {
    is_before = is_before && p != full;
    if (is_before) discharge(p);
  });
  const int64_t asked = bytes_of(full);
  const DeviceMemoryStats stats = sharding_.device(full).memory_stats();
  throw_error<OutOfMemory>(
      "RESOURCE_EXHAUSTED: {}: out of memory on {}: {} bytes ({}) asked for, {} bytes ({}) in use, limit {} bytes "
      "({}); biggest live arrays: {}; {}",
      operation, sharding_.device(full).to_string(), asked, bytes_text(asked), stats.bytes_in_use,
      bytes_text(stats.bytes_in_use), stats.bytes_limit, bytes_text(stats.bytes_limit),
      biggest_live_arrays(*sharding_.devices()->client(), 3), kFreeMemory);
}

Charge::~Charge() {
  if (!end_unsplit()) for_positions([this](Position p) { end(p); });
  delete[] handles();
}

bool Charge::end_unsplit() noexcept {
  Count* handles = nullptr;
  if (handles_.compare_exchange_strong(handles, ended(), std::memory_order_acq_rel, std::memory_order_acquire)) {
    for_positions([this](Position p) { discharge(p); });
  }
  return handles == nullptr || handles == ended();
}

void Charge::split() {
  if (handles_.load(std::memory_order_acquire)) return;
  auto made = std::make_unique<Count[]>(sharding_.num_devices());
  for_positions([&](Position p) { made[p.number()].store(1, std::memory_order_relaxed); });
  Count* current = nullptr;
  if (handles_.compare_exchange_strong(current, made.get(), std::memory_order_acq_rel)) made.release();
}

void Charge::retain(Position position) noexcept {
  Count* all = handles();
  if (!all) return;
  Count& count = all[position.number()];
  int64_t before = count.load(std::memory_order_relaxed);
  while (before > 0 && !count.compare_exchange_weak(before, before + 1, std::memory_order_relaxed)) {
  }
}

bool Charge::release(Position position) noexcept {
  Count* all = handles();
  if (!all) return false;
  Count& count = all[position.number()];
  int64_t before = count.load(std::memory_order_relaxed);
  do {
    if (before == 0) return false;  // ended meanwhile
  } while (!count.compare_exchange_weak(before, before - 1, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (before == 1) discharge(position);
  return before == 1;
}

bool Charge::end(Position position) noexcept {
  Count* all = handles();
  if (!all || all[position.number()].exchange(0, std::memory_order_acq_rel) == 0) return false;
  discharge(position);
  return true;
}

}  // namespace artifex_devices
