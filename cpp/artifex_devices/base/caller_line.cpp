// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/caller_line.h"

#include <atomic>

#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

constinit std::atomic<CallerLineSource> line_source{nullptr};

}  // namespace

void set_caller_line_source(CallerLineSource source) noexcept { line_source.store(source); }

std::optional<CallerLine> caller_line() {
  const CallerLineSource source = line_source.load();
  if (source == nullptr) return std::nullopt;
  no_lock_held("the source of caller lines");
  return source();
}

}  // namespace artifex_devices
