// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/creation_line.h"

#include <atomic>
#include <exception>
#include <unordered_map>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

Mutex<"creation lines"> lines_mutex;
std::atomic<CreationLines::Source> line_source{nullptr};

// Never destroyed: arrays may outlive static destruction. Made under the lock.
std::unordered_map<const Array*, CreationLine>* lines = nullptr;

}  // namespace

void CreationLines::set_source(Source source) {
  // Held over a fork, so that the child finds the table whole and unlocked.
  register_fork_handlers({.prepare = [] { lines_mutex.lock(); },
                          .parent = [] { lines_mutex.unlock(); },
                          .child = [] { lines_mutex.unlock(); }});
  line_source.store(source);
}

void CreationLines::add(Array* array) noexcept {
  const Source source = line_source.load();
  if (!source) return;
  no_lock_held("the source of creation lines");
  try {
    std::optional<CreationLine> line = source();
    if (!line) return;
    const std::lock_guard lock(lines_mutex);
    if (!lines) lines = new std::unordered_map<const Array*, CreationLine>();
    lines->insert_or_assign(array, std::move(*line));
    array->has_creation_line_ = true;
  } catch (const std::exception&) {  // the array is worth more than a note on it
  }
}

void CreationLines::remove(const Array* array) noexcept {
  const std::lock_guard lock(lines_mutex);
  lines->erase(array);
}

std::optional<CreationLine> CreationLines::of(const Array& array) {
  const std::lock_guard lock(lines_mutex);
  if (!lines) return std::nullopt;
  const auto found = lines->find(&array);
  return found == lines->end() ? std::nullopt : std::optional(found->second);
}

}  // namespace artifex_devices
