// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "artifex_devices/device/copy_batch.h"
#include "artifex_devices/device/executor.h"

namespace artifex_devices {

/// The copies of several placements in one call. They run together, so that the workers are woken once.
class JointCopies {
 public:
  /// The batch that copies of `executor` are added to, or null: only the first executor's copies run together.
  CopyBatch* batch_of(Executor& executor) {
    if (executor_ == nullptr) executor_ = executor.shared_from_this();
    return executor_.get() == &executor ? &batch_ : nullptr;
  }

  bool empty() const noexcept { return executor_ == nullptr; }

  /// Runs them. Before, nobody may read the arrays, and the sources must stay. Throws Interrupted.
  void run() {
    if (executor_ != nullptr) executor_->run(batch_);
  }

 private:
  std::shared_ptr<Executor> executor_;
  CopyBatch batch_;
};

}  // namespace artifex_devices
