// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/executor.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "artifex_devices/base/config.h"
#include "artifex_devices/base/interrupt.h"

namespace artifex_devices {

EventRef Executor::begin_after(const EventRef& after, std::shared_ptr<CopyBatch> batch, Begin begin, EventRef ready) {
  // Created here: where it is called, there may be no memory for a std::function.
  const CopyBatch::Done done = [ready](std::exception_ptr error) { ready->set_error(std::move(error)); };
  auto go = [batch = std::move(batch), begin = std::move(begin), done](std::exception_ptr error) {
    if (error) return batch->end(done, std::move(error));
    try {
      begin(batch, done);
    } catch (...) {
      done(std::current_exception());
    }
  };
  if (after) {
    after->then(std::move(go));
  } else {
    go(nullptr);
  }
  return ready;
}

bool WorkerPoolExecutor::is_inline(int64_t bytes, bool has_long_runs) const noexcept {
  const int64_t limit = config().parallel_copy_bytes.load(std::memory_order_relaxed);
  if (bytes < limit || !has_long_runs) return bytes < limit;
  // Workers take over all bytes but the share of one of them. Before they are awake, one core has copied four times the
  // limit within its caches (decision 0013).
  return bytes - bytes / std::max(WorkerPool::process().max_workers(), 2) <= 4 * limit;
}

void WorkerPoolExecutor::run(CopyBatch& batch) {
  if (is_inline(batch.bytes(), batch.has_long_runs())) return copy_here(batch);
  check_interrupt();
  WorkerPool::process().parallel_for(begin(batch));
}

EventRef WorkerPoolExecutor::submit(std::shared_ptr<CopyBatch> batch, const EventRef& after) {
  const bool is_written = !after || (after->is_set() && !after->error());
  if (is_written && batch->bytes() < config().async_copy_bytes.load(std::memory_order_relaxed)) {
    run(*batch);
    return nullptr;
  }
  auto ready = std::make_shared<Event>();
  if (ends_soon()) ready->expect_soon();
  if (after) ready->set_helper(helper_of(after));
  auto begin = [self = shared_from_this(), this](const auto& each, const auto& done) { start(each, done); };
  return begin_after(after, std::move(batch), std::move(begin), std::move(ready));
}

void WorkerPoolExecutor::start(const std::shared_ptr<CopyBatch>& batch, const CopyBatch::Done& done) {
  std::vector<WorkerPool::Work> work = begin(*batch);
  try {
    WorkerPool::process().submit(work, [batch, done](std::exception_ptr error) { batch->end(done, std::move(error)); });
    return;
  } catch (...) {  // no thread, or no memory for one: the caller runs the copies
    work.clear();  // waits for copies of an engine
  }
  run_here(*batch, done);
}

void WorkerPoolExecutor::run_here(CopyBatch& batch, const CopyBatch::Done& done) {
  std::exception_ptr error;
  try {
    copy_here(batch);
  } catch (...) {
    error = std::current_exception();
  }
  batch.end(done, std::move(error));
}

void EngineExecutor::copy_here(const CopyBatch& batch) const { engine_->run(batch.listed()); }

std::vector<WorkerPool::Work> EngineExecutor::begin(CopyBatch& batch) const {
  const auto tasks = std::make_shared<const std::vector<CopyEngine::Task>>(engine_->start(batch.listed()));
  std::vector<WorkerPool::Work> work;
  work.push_back(
      {static_cast<int64_t>(tasks->size()), kAnyLane, [tasks](int64_t i) { (*tasks)[static_cast<size_t>(i)](); }});
  return work;
}

EventRef BlockingExecutor::submit(std::shared_ptr<CopyBatch> batch, const EventRef& after) {
  if (after) after->wait();
  run(*batch);
  return nullptr;
}

namespace {

// Never destroyed: copies may end after exit has begun.
const auto& g_host_executor = *new std::shared_ptr<Executor>(std::make_shared<WorkerPoolExecutor>());

}  // namespace

Executor& host_executor() { return *g_host_executor; }

}  // namespace artifex_devices
