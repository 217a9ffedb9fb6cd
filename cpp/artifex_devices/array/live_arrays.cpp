// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/live_arrays.h"

#include <fmt/format.h>

#include <algorithm>

#include "artifex_devices/array/live_list.h"
#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

// Trivially destructible: arrays may outlive static destruction.
constinit Mutex<"live arrays"> mutex;
Array* oldest = nullptr;
Array* newest = nullptr;

// So that the child finds the list whole and unlocked.
HeldOverFork g_held_over_fork(mutex);

}  // namespace

void LiveArrays::add(Array* array) {
  const std::lock_guard lock(mutex);
  array->live_previous_ = newest;
  (newest ? newest->live_next_ : oldest) = array;
  newest = array;
}

void LiveArrays::remove(Array* array) noexcept {
  const std::lock_guard lock(mutex);
  if (!array->live_previous_ && oldest != array) return;
  (array->live_previous_ ? array->live_previous_->live_next_ : oldest) = array->live_next_;
  (array->live_next_ ? array->live_next_->live_previous_ : newest) = array->live_previous_;
}

std::vector<ArrayRef> LiveArrays::all() {
  // Both outlive the lock: either may hold the last reference to an array, and the array's destructor takes the lock.
  std::vector<ArrayRef> found;
  ArrayRef alive;
  const std::lock_guard lock(mutex);
  for (Array* array = oldest; array; array = array->live_next_) {
    alive = array->weak_from_this().lock();
    if (alive) found.push_back(std::move(alive));
  }
  return found;
}

std::vector<ArrayRef> live_arrays(const Client* client) {
  std::vector<ArrayRef> found = LiveArrays::all();
  std::erase_if(found, [client](const ArrayRef& array) {
    return array->is_deleted() || (client && array->sharding()->devices()->client().get() != client);
  });
  return found;
}

std::string biggest_live_arrays(const Client& client, int count) {
  std::vector<ArrayRef> arrays = live_arrays(&client);
  const auto shown = std::min<size_t>(arrays.size(), static_cast<size_t>(std::max(count, 0)));
  if (shown == 0) return "none";
  std::stable_sort(arrays.begin(), arrays.end(), [](const ArrayRef& a, const ArrayRef& b) {
    return a->on_device_size_in_bytes() > b->on_device_size_in_bytes();
  });
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const Array& array = *arrays[i];
    const int64_t devices = array.sharding()->num_devices();
    text +=
        fmt::format("{}{}{} over {} device{}, {}", i == 0 ? "" : "; ", name(array.dtype()), to_string(array.shape()),
                    devices, devices == 1 ? "" : "s", bytes_text(array.on_device_size_in_bytes()));
  }
  return text;
}

void fail_out_of_memory(std::string_view operation, std::string_view where, int64_t bytes, const OutOfMemory& reason,
                        const Client& client, std::string_view repair) {
  constexpr std::string_view kCode = "RESOURCE_EXHAUSTED: ";
  std::string_view why = reason.what();
  if (why.starts_with(kCode)) why.remove_prefix(kCode.size());
  throw_error<OutOfMemory>("{}{}: no memory for {} bytes ({}) on {}: {}; biggest live arrays: {}; {}", kCode, operation,
                           bytes, bytes_text(bytes), where, why, biggest_live_arrays(client, 3), repair);
}

}  // namespace artifex_devices
