// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "artifex_devices/base/strided_copy.h"

namespace artifex_devices {

/// Copies to, from and between memories that the processor cannot access. Thread-safe.
class CopyEngine {
 public:
  CopyEngine() = default;
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;
  virtual ~CopyEngine() = default;

  using Task = std::function<void()>;
  /// Starts the copies that need no processor, each between any two memories of this process. Returns the remaining
  /// work, for several workers at the same time: to do the other copies, and to wait for the started ones. All copies
  /// are complete when all tasks have run. A task that ends by an error, or is destroyed, leaves no copy of its own
  /// running. Destinations do not overlap.
  virtual std::vector<Task> start(std::span<const StridedCopy> copies) const = 0;

  /// Executes all copies on the calling thread, and returns at their end. No copy is running when an error is thrown.
  virtual void run(std::span<const StridedCopy> copies) const = 0;
};

}  // namespace artifex_devices
