// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/staging_buffers.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::cuda {
namespace {

constexpr std::string_view kCopy = "copy";
constexpr int64_t kStagingAlignment = 64;
constexpr size_t kBuffers = 2;  // of one worker
struct Polling {
  std::chrono::microseconds period;
  std::chrono::microseconds end;  // then the thread sleeps
};
constexpr Polling kOften{std::chrono::microseconds(1), std::chrono::microseconds(2000)};
constexpr Polling kRarely{std::chrono::microseconds(16), std::chrono::microseconds(500)};

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
    pool.free.reserve(pool.free.capacity() + 1);  // so that its return cannot fail
  }
  auto buffer = std::make_unique<StagingBuffer>();
  void* data = nullptr;
  driver.check(driver.allocate_host(&data, static_cast<size_t>(StagingBuffer::kBytes), kPortable), kCopy,
               "cuMemHostAlloc");
  buffer->data = static_cast<std::byte*>(data);
  return buffer.release();
}

/// A blocked thread wakes 25 us late (H100, 2026-11), which is more than most small copies take.
Result wait_for_event(const Driver& driver, EventHandle event, Poll poll) {
  using Clock = std::chrono::steady_clock;
  const Polling& polling = poll == Poll::kOften ? kOften : kRarely;
  auto now = Clock::now();
  const auto deadline = now + polling.end;
  while (now < deadline) {
    if (const Result result = driver.query_event(event); result != kNotReady) return result;
    const auto next = now + polling.period;
    while ((now = Clock::now()) < next) {
    }
  }
  return driver.synchronize_event(event);
}

}  // namespace

void wait_for_stream(const Driver& driver, const Gpu& gpu, Stream stream, Poll poll) {
  const ContextScope scope(driver, gpu, kCopy);
  const EventHandle event = gpu.take_event(driver);
  Result result = driver.record_event(event, stream);
  if (result == kSuccess) result = wait_for_event(driver, event, poll);
  gpu.give_event(event);
  driver.check(result, kCopy, "cuEventSynchronize");
}

std::byte* StagingBuffers::take(int64_t bytes, const Gpu& gpu, Stream stream) {
  const auto room_from = [](const StagingBuffer& buffer) {
    return (buffer.used + kStagingAlignment - 1) / kStagingAlignment * kStagingAlignment;
  };
  if (buffers_.empty() || room_from(*buffers_.back()) + bytes > StagingBuffer::kBytes) {
    if (!buffers_.empty()) record_ends(buffers_.back());
    if (buffers_.size() < kBuffers) {
      buffers_.reserve(kBuffers);
      buffers_.push_back(take_buffer(driver_));
    } else {
      std::ranges::rotate(buffers_, buffers_.begin() + 1);
      wait_for(buffers_.back());
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

void StagingBuffers::unpack_later(StridedCopy copy) { buffers_.back()->unpacks.push_back(std::move(copy)); }

void StagingBuffers::record_ends(StagingBuffer* buffer) const {
  buffer->events.reserve(buffer->events.size() + buffer->streams.size());
  while (!buffer->streams.empty()) {
    const auto [gpu, stream] = buffer->streams.back();
    const ContextScope scope(driver_, *gpu, kCopy);
    const EventHandle event = gpu->take_event(driver_);
    if (const Result result = driver_.record_event(event, stream); result != kSuccess) {
      gpu->give_event(event);
      driver_.check(result, kCopy, "cuEventRecord");
    }
    buffer->events.emplace_back(gpu, event);
    buffer->streams.pop_back();
  }
}

void StagingBuffers::wait_for(StagingBuffer* buffer) const {
  record_ends(buffer);
  while (!buffer->events.empty()) {
    const auto [gpu, event] = buffer->events.back();
    const ContextScope scope(driver_, *gpu, kCopy);
    driver_.check(wait_for_event(driver_, event, Poll::kRarely), kCopy, "cuEventSynchronize");
    gpu->give_event(event);
    buffer->events.pop_back();
  }
}

void StagingBuffers::unpack(StagingBuffer* buffer) {
  buffer->streams.clear();
  while (!buffer->events.empty()) {
    const auto [gpu, event] = buffer->events.back();
    gpu->give_event(event);
    buffer->events.pop_back();
  }
  for (const StridedCopy& copy : buffer->unpacks) copy.run();
  buffer->unpacks.clear();
  buffer->used = 0;
}

void StagingBuffers::finish() {
  for (StagingBuffer* buffer : buffers_) unpack(buffer);
}

StagingBuffers::~StagingBuffers() {
  // After an error: a buffer whose copies cannot be waited for is leaked.
  for (StagingBuffer* buffer : buffers_) {
    try {
      wait_for(buffer);
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
