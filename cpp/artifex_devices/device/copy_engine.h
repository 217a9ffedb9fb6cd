// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "artifex_devices/base/strided_copy.h"

namespace artifex_devices {

/// Copies to, from and between memories that the processor cannot access. Thread-safe.
class CopyEngine {
 public:
  CopyEngine() = default;
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;
  virtual ~CopyEngine() = default;

  /// Executes all copies, each between any two memories of this process, and returns at their end. Their destinations
  /// do not overlap. No copy is running when an error is thrown, such as Interrupted where `interruptible`.
  virtual void run(std::span<const StridedCopy> copies, bool interruptible) const = 0;
};

}  // namespace artifex_devices
