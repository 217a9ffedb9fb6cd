// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/staging.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"

namespace artifex_devices::cuda {
namespace {

constexpr std::string_view kCopy = "copy";
constexpr int64_t kStagingAlignment = 64;
constexpr size_t kBuffers = 2;  // of one transfer

// Never destroyed; not used in a forked child.
struct Pool {
  Mutex<"CUDA staging"> mutex;
  std::vector<StagingBuffer*> free;
};
union NeverDestroyed {
  constexpr NeverDestroyed() : value() {}
  ~NeverDestroyed() {}
  Pool value;
};
constinit NeverDestroyed g_pool;

StagingBuffer* take_buffer(const Driver& driver) {
  {
    Pool& pool = g_pool.value;
    const std::lock_guard lock(pool.mutex);
    if (!pool.free.empty()) {
      StagingBuffer* buffer = pool.free.back();
      pool.free.pop_back();
      return buffer;
    }
  }
  auto buffer = std::make_unique<StagingBuffer>();
  void* data = nullptr;
  driver.check(driver.allocate_host(&data, static_cast<size_t>(StagingBuffer::kBytes), kPortable), kCopy,
               "cuMemHostAlloc");
  buffer->data = static_cast<std::byte*>(data);
  return buffer.release();
}

}  // namespace

void wait_for_stream(const Driver& driver, const Gpu& gpu, Stream stream) {
  const ContextScope scope(driver, gpu, kCopy);
  const EventHandle event = gpu.take_event(driver);
  Result result = driver.record_event(event, stream);
  if (result == kSuccess) result = driver.synchronize_event(event);
  gpu.give_event(event);
  driver.check(result, kCopy, "cuEventSynchronize");
}

void run_on_host(const StridedCopy& copy) {
  constexpr int64_t kPiece = int64_t{512} << 10;
  const int64_t pieces = copy.pieces(kPiece);
  if (pieces <= 1) return copy.run();
  WorkerPool::process().parallel_for(pieces, -1, [&](int64_t i) { copy.run(i, pieces); });
}

std::byte* Staging::take(int64_t bytes, const Gpu& gpu, Stream stream) {
  const auto room_from = [](const StagingBuffer& buffer) {
    return (buffer.used + kStagingAlignment - 1) / kStagingAlignment * kStagingAlignment;
  };
  if (buffers_.empty() || room_from(*buffers_.back()) + bytes > StagingBuffer::kBytes) {
    if (buffers_.size() < kBuffers) {
      buffers_.reserve(kBuffers);
      buffers_.push_back(take_buffer(driver_));
    } else {
      std::ranges::rotate(buffers_, buffers_.begin() + 1);
      wait_for(driver_, buffers_.back());
      unpack(buffers_.back());
    }
  }
  StagingBuffer& buffer = *buffers_.back();
  const std::pair use(&gpu, stream);
  if (std::ranges::find(buffer.streams, use) == buffer.streams.end()) buffer.streams.push_back(use);
  std::byte* at = buffer.data + room_from(buffer);
  buffer.used = room_from(buffer) + bytes;
  return at;
}

void Staging::unpack_later(StridedCopy copy) { buffers_.back()->unpacks.push_back(std::move(copy)); }

void Staging::wait_for(const Driver& driver, StagingBuffer* buffer) {
  for (const auto& [gpu, stream] : buffer->streams) wait_for_stream(driver, *gpu, stream);
}

void Staging::unpack(StagingBuffer* buffer) {
  buffer->streams.clear();
  for (const StridedCopy& copy : buffer->unpacks) run_on_host(copy);
  buffer->unpacks.clear();
  buffer->used = 0;
}

void Staging::finish() {
  for (StagingBuffer* buffer : buffers_) unpack(buffer);
}

Staging::~Staging() {
  // After an error: a buffer whose copies cannot be waited for is leaked.
  for (StagingBuffer* buffer : buffers_) {
    try {
      wait_for(driver_, buffer);
      buffer->unpacks.clear();
      unpack(buffer);
      Pool& pool = g_pool.value;
      const std::lock_guard lock(pool.mutex);
      pool.free.push_back(buffer);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }
}

}  // namespace artifex_devices::cuda
