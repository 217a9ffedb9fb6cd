// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/creation_line.h"

#include <exception>
#include <unordered_map>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

constinit Mutex<"creation lines"> lines_mutex;

// Never destroyed: arrays may outlive static destruction. Made under the lock.
std::unordered_map<const Array*, CallerLine>* lines = nullptr;

HeldOverFork g_lines_held_over_fork(lines_mutex);

}  // namespace

void CreationLines::add(Array* array) noexcept {
  try {
    std::optional<CallerLine> line = caller_line();
    if (!line) return;
    const std::lock_guard lock(lines_mutex);
    if (!lines) lines = new std::unordered_map<const Array*, CallerLine>();
    lines->insert_or_assign(array, std::move(*line));
    array->has_creation_line_ = true;
  } catch (const std::exception&) {  // the array is worth more than a note on it
  }
}

void CreationLines::remove(const Array* array) noexcept {
  const std::lock_guard lock(lines_mutex);
  lines->erase(array);
}

std::optional<CallerLine> CreationLines::of(const Array& array) {
  const std::lock_guard lock(lines_mutex);
  if (!lines) return std::nullopt;
  const auto found = lines->find(&array);
  return found == lines->end() ? std::nullopt : std::optional(found->second);
}

}  // namespace artifex_devices
