// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "artifex_devices/base/event.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/copy_batch.h"
#include "artifex_devices/device/copy_engine.h"

namespace artifex_devices {

/// Decides where and when copies of a client's devices run: on the calling thread, on workers, by a copy engine, in
/// their call, or as late as possible. Only here are config().parallel_copy_bytes and config().async_copy_bytes
/// compared with copies. Thread-safe.
class Executor : public std::enable_shared_from_this<Executor> {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  /// Whether the calling thread may make copies of so few bytes by itself, now and without a batch. `has_long_runs`: as
  /// CopyBatch::has_long_runs.
  virtual bool is_inline(int64_t bytes, bool has_long_runs = false) const noexcept = 0;

  /// Runs all copies and returns at their end. Interruptible: no copy is running when Interrupted is thrown.
  virtual void run(CopyBatch& batch) = 0;

  /// Runs the copies when `after` is set (null: now). Returns the event of their end, or null if that was in the call;
  /// an error of `after` becomes its error, and nothing is copied. If this throws, no copy is running.
  virtual EventRef submit(std::shared_ptr<CopyBatch> batch, const EventRef& after) = 0;

  virtual bool is_deferred() const noexcept { return false; }
  /// Runs what no thread waits for, at the end of a world.
  virtual void finish() {}

 protected:
  using Begin = std::function<void(const std::shared_ptr<CopyBatch>&, const CopyBatch::Done&)>;
  /// Calls `begin` when `after` is set, to begin the batch and later call CopyBatch::end; returns `ready`, the event of
  /// that end.
  static EventRef begin_after(const EventRef& after, std::shared_ptr<CopyBatch> batch, Begin begin, EventRef ready);
};

/// Copies by the processor: small ones on the calling thread, others on the workers of WorkerPool::process().
class WorkerPoolExecutor : public Executor {
 public:
  bool is_inline(int64_t bytes, bool has_long_runs) const noexcept override;
  void run(CopyBatch& batch) override;
  EventRef submit(std::shared_ptr<CopyBatch> batch, const EventRef& after) override;

  /// Runs all copies on the calling thread and ends the batch.
  void run_here(CopyBatch& batch, const CopyBatch::Done& done);

 private:
  virtual void copy_here(const CopyBatch& batch) const { batch.copy(); }
  /// The work for the workers. It must not outlive the batch.
  virtual std::vector<WorkerPool::Work> begin(CopyBatch& batch) const { return batch.cut(); }
  virtual bool ends_soon() const noexcept { return false; }
  void start(const std::shared_ptr<CopyBatch>& batch, const CopyBatch::Done& done);
};

/// Copies by an engine, such as a GPU's, while workers do the rest.
class EngineExecutor final : public WorkerPoolExecutor {
 public:
  explicit EngineExecutor(std::shared_ptr<const CopyEngine> engine) : engine_(std::move(engine)) {}
  bool is_inline(int64_t, bool) const noexcept override { return false; }

 private:
  void copy_here(const CopyBatch& batch) const override;
  std::vector<WorkerPool::Work> begin(CopyBatch& batch) const override;
  bool ends_soon() const noexcept override { return true; }

  std::shared_ptr<const CopyEngine> engine_;
};

/// Makes all copies in their call, by another executor.
class BlockingExecutor final : public Executor {
 public:
  explicit BlockingExecutor(std::shared_ptr<Executor> copies) : copies_(std::move(copies)) {}
  bool is_inline(int64_t bytes, bool has_long_runs) const noexcept override {
    return copies_->is_inline(bytes, has_long_runs);
  }
  void run(CopyBatch& batch) override { copies_->run(batch); }
  EventRef submit(std::shared_ptr<CopyBatch> batch, const EventRef& after) override;

 private:
  std::shared_ptr<Executor> copies_;
};

/// For copies between memories of the host that belong to no client.
Executor& host_executor();

}  // namespace artifex_devices
