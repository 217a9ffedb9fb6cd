// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "artifex_devices/device/executor.h"

namespace artifex_devices {

/// Runs submitted copies as late as possible: when a thread waits for an event of this world that is not set, it runs
/// the world's copies that are ready one by one, in an order drawn from a seed, until the event is set. A program that
/// reads data without waiting for its event then finds it unwritten in every run, and a program that relies on an order
/// that no event demands fails for some seeds.
///
/// Each world has its own copies and its own sequence: a wait in one runs copies of another only where its event
/// depends on them. The order is repeatable while one thread submits and waits.
class DeferredExecutor final : public Executor {
 public:
  /// `copies`: what makes the copies when their time has come.
  DeferredExecutor(uint64_t seed, std::shared_ptr<WorkerPoolExecutor> copies);

  bool is_inline(int64_t, bool) const noexcept override { return false; }
  void run(CopyBatch& batch) override { copies_->run(batch); }
  EventRef submit(std::shared_ptr<CopyBatch> batch, const EventRef& after) override;
  bool is_deferred() const noexcept override { return true; }
  void finish() override;

 private:
  struct Tasks;
  std::shared_ptr<WorkerPoolExecutor> copies_;
  std::shared_ptr<Tasks> tasks_;
};

}  // namespace artifex_devices
