// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/cuda_copies.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/cuda/loop_nest.h"
#include "artifex_devices/device/cuda/staging_buffers.h"
#include "artifex_devices/device/cuda/strided_launches.h"

namespace artifex_devices {
namespace {

using cuda::bytes_of;
using cuda::LoopNest;

constexpr std::string_view kCudaCopy = "copy";
constexpr int64_t kMostDriverCalls = 256;           // for memory that could be staged instead
constexpr int64_t kLeastPart = int64_t{512} << 10;  // of a staged copy, for one worker
constexpr int64_t kMostPart = int64_t{8} << 20;     // so that workers end together
constexpr int64_t kPartsPerWorker = 2;

/// The longest dimension that one two-dimensional copy can take; nothing without one.
std::optional<int64_t> row_dimension(const LoopNest& nest, int64_t max_pitch) {
  std::optional<int64_t> best;
  for (int64_t d = 0; d < nest.shape.size(); ++d) {
    const int64_t least = std::min(nest.to_strides[d], nest.from_strides[d]);
    const int64_t most = std::max(nest.to_strides[d], nest.from_strides[d]);
    if (least >= nest.unit && most <= max_pitch && (!best || nest.shape[d] > nest.shape[*best])) best = d;
  }
  return best;
}

int64_t calls_for(const LoopNest& nest, int64_t max_pitch) {
  const auto rows = row_dimension(nest, max_pitch);
  int64_t calls = 1;
  for (int64_t d = 0; d < nest.shape.size(); ++d) calls *= d == rows ? 1 : nest.shape[d];
  return calls;
}

cuda::Address address_of(const std::byte* pointer) noexcept { return reinterpret_cast<cuda::Address>(pointer); }

/// One end of a copy.
struct CopyEnd {
  const cuda::Gpu* gpu = nullptr;  // null: memory of the host
  bool is_locked = false;          // by CUDA
  bool is_exported(const std::byte* pointer) const noexcept {
    return gpu != nullptr && gpu->is_exported(address_of(pointer));
  }
};

CopyEnd end_at(const cuda::Driver& driver, const std::byte* pointer) {
  unsigned type = 0;
  int ordinal = -1;
  std::array attributes = {cuda::kMemoryType, cuda::kDeviceOrdinal};
  std::array<void*, 2> values = {&type, &ordinal};
  driver.check(driver.pointer_attributes(2, attributes.data(), values.data(), address_of(pointer)), kCudaCopy,
               "cuPointerGetAttributes");
  if (type == cuda::kDeviceMemory) return {&cuda::gpu_of(driver, ordinal), false};
  return {nullptr, type == cuda::kHostMemory};
}

/// Whether the processor takes part in a copy: it copies memory of the host, or packs it for the driver.
bool is_staged(const LoopNest& nest, const CopyEnd& to, const CopyEnd& from) {
  if (to.gpu != nullptr && from.gpu != nullptr) return false;
  if (to.gpu == nullptr && from.gpu == nullptr) return true;
  const CopyEnd& host = to.gpu == nullptr ? to : from;
  const cuda::Gpu& gpu = to.gpu == nullptr ? *from.gpu : *to.gpu;
  return !host.is_locked || calls_for(nest, gpu.facts().max_pitch) > kMostDriverCalls;
}

/// The copies of one call. Its destruction waits for all that it started.
class DriverCopies {
 public:
  DriverCopies(const cuda::Driver& driver, cuda::Poll poll)
      : driver_(driver), staging_(driver), launches_(driver), poll_(poll) {}
  DriverCopies(const DriverCopies&) = delete;
  DriverCopies& operator=(const DriverCopies&) = delete;
  ~DriverCopies() {
    for (const auto& [gpu, stream] : streams_) {
      try {
        cuda::wait_for_stream(driver_, *gpu, stream, poll_);
      } catch (...) {  // an error is being thrown already; without memory for an event the stream is waited for
        static_cast<void>(driver_.synchronize_stream(stream));
      }
    }
  }

  /// `nest`: of the copy, which is not empty; `to` and `from`: its ends.
  void add(const StridedCopy& copy, const LoopNest& nest, const CopyEnd& to, const CopyEnd& from) {
    wait_for_others(to, nest.to);
    wait_for_others(from, nest.from);
    if (to.gpu == nullptr && from.gpu == nullptr) {
      copy.run();
    } else if (to.gpu != nullptr && from.gpu != nullptr) {
      copy_between(nest, *to.gpu, *from.gpu);
    } else if (to.gpu != nullptr) {
      copy_in(nest, *to.gpu, is_staged(nest, to, from));
    } else {
      copy_out(nest, *from.gpu, is_staged(nest, to, from));
    }
  }

  /// Starts the collected copies.
  void launch() { launches_.launch_all(); }

  void finish() {
    while (!streams_.empty()) {
      const auto [gpu, stream] = streams_.back();
      cuda::wait_for_stream(driver_, *gpu, stream, poll_);
      streams_.pop_back();
    }
    staging_.finish();
  }

 private:
  /// Waits for work that other libraries have started on the GPU, once for each batch, if they know the memory.
  void wait_for_others(const CopyEnd& end, const std::byte* pointer) {
    if (!end.is_exported(pointer)) return;
    if (std::ranges::find(waited_for_, end.gpu) != waited_for_.end()) return;
    const cuda::ContextScope scope(driver_, *end.gpu, kCudaCopy);
    driver_.check(driver_.synchronize_context(), kCudaCopy, "cuCtxSynchronize");
    waited_for_.push_back(end.gpu);
  }

  void use(const cuda::Gpu& gpu, cuda::Stream stream) {
    const std::pair used(&gpu, stream);
    if (std::ranges::find(streams_, used) == streams_.end()) streams_.push_back(used);
  }

  /// Starts `nest` in `stream`, where the context of its GPU is current. `from_gpu`: of memory of another GPU.
  void start(const LoopNest& nest, const cuda::Gpu& gpu, cuda::Stream stream, const cuda::Gpu* from_gpu = nullptr) {
    use(gpu, stream);
    const auto rows = row_dimension(nest, gpu.facts().max_pitch);
    Dims index(nest.shape.size(), 0);
    std::byte* to = nest.to;
    const std::byte* from = nest.from;
    for (;;) {
      start_rows(to, from, nest, rows, gpu, stream, from_gpu);
      int64_t d = nest.shape.size() - 1;
      for (; d >= 0; --d) {
        if (d == rows) continue;
        to += nest.to_strides[d];
        from += nest.from_strides[d];
        if (++index[d] < nest.shape[d]) break;
        to -= nest.shape[d] * nest.to_strides[d];
        from -= nest.shape[d] * nest.from_strides[d];
        index[d] = 0;
      }
      if (d < 0) return;
    }
  }

  void start_rows(std::byte* to, const std::byte* from, const LoopNest& nest, std::optional<int64_t> rows,
                  const cuda::Gpu& gpu, cuda::Stream stream, const cuda::Gpu* from_gpu) {
    const auto width = static_cast<size_t>(nest.unit);
    if (!rows && from_gpu == nullptr) {
      return driver_.check(driver_.copy(address_of(to), address_of(from), width, stream), kCudaCopy, "cuMemcpyAsync");
    }
    if (!rows) {
      return driver_.check(
          driver_.copy_peer(address_of(to), gpu.context(), address_of(from), from_gpu->context(), width, stream),
          kCudaCopy, "cuMemcpyPeerAsync");
    }
    const auto height = static_cast<size_t>(nest.shape[*rows]);
    const auto to_pitch = static_cast<size_t>(nest.to_strides[*rows]);
    const auto from_pitch = static_cast<size_t>(nest.from_strides[*rows]);
    if (from_gpu == nullptr) {
      cuda::Copy2d copy{};
      copy.from_type = copy.to_type = cuda::kUnifiedMemory;
      copy.from_device = address_of(from);
      copy.from_pitch = from_pitch;
      copy.to_device = address_of(to);
      copy.to_pitch = to_pitch;
      copy.width = width;
      copy.height = height;
      return driver_.check(driver_.copy_2d(&copy, stream), kCudaCopy, "cuMemcpy2DAsync");
    }
    cuda::Copy3dPeer copy{};
    copy.from_type = copy.to_type = cuda::kDeviceMemory;
    copy.from_device = address_of(from);
    copy.from_context = from_gpu->context();
    copy.from_pitch = from_pitch;
    copy.to_device = address_of(to);
    copy.to_context = gpu.context();
    copy.to_pitch = to_pitch;
    copy.from_height = copy.to_height = copy.height = height;
    copy.width = width;
    copy.depth = 1;
    driver_.check(driver_.copy_3d_peer(&copy, stream), kCudaCopy, "cuMemcpy3DPeerAsync");
  }

  void copy_between(const LoopNest& nest, const cuda::Gpu& to, const cuda::Gpu& from) {
    if (&to != &from) to.enable_peer(driver_, from);
    if (&to == &from && !nest.shape.empty()) {
      use(to, to.within());
      return launches_.add(nest, to);
    }
    const cuda::ContextScope scope(driver_, to, kCudaCopy);
    start(nest, to, to.within(), &to == &from ? nullptr : &from);
  }

  void copy_in(const LoopNest& nest, const cuda::Gpu& gpu, bool is_packed) {
    const cuda::ContextScope scope(driver_, gpu, kCudaCopy);
    if (!is_packed) return start(nest, gpu, gpu.from_host());
    cuda::for_parts(cuda::sorted(nest, nest.to_strides), cuda::StagingBuffer::kBytes, [&](const LoopNest& part) {
      const Dims dense = row_major_strides(part.shape, part.unit);
      std::byte* packed = staging_.take(bytes_of(part), gpu, gpu.from_host());
      StridedCopy(packed, dense, part.from, part.from_strides, part.shape, part.unit).run();
      start(StridedCopy(part.to, part.to_strides, packed, dense, part.shape, part.unit).loop_nest(), gpu,
            gpu.from_host());
    });
  }

  void copy_out(const LoopNest& nest, const cuda::Gpu& gpu, bool is_packed) {
    const cuda::ContextScope scope(driver_, gpu, kCudaCopy);
    if (!is_packed) return start(nest, gpu, gpu.to_host());
    cuda::for_parts(cuda::sorted(nest, nest.from_strides), cuda::StagingBuffer::kBytes, [&](const LoopNest& part) {
      const Dims dense = row_major_strides(part.shape, part.unit);
      std::byte* packed = staging_.take(bytes_of(part), gpu, gpu.to_host());
      start(StridedCopy(packed, dense, part.from, part.from_strides, part.shape, part.unit).loop_nest(), gpu,
            gpu.to_host());
      staging_.unpack_later(StridedCopy(part.to, part.to_strides, packed, dense, part.shape, part.unit));
    });
  }

  const cuda::Driver& driver_;
  cuda::StagingBuffers staging_;
  cuda::StridedLaunches launches_;
  std::vector<std::pair<const cuda::Gpu*, cuda::Stream>> streams_;  // with copies that may be running
  std::vector<const cuda::Gpu*> waited_for_;
  cuda::Poll poll_;
};

void run_here(std::span<const StridedCopy> copies, cuda::Poll poll) {
  const cuda::Driver& driver = cuda::driver(kCudaCopy);
  DriverCopies started(driver, poll);
  for (const StridedCopy& copy : copies) {
    if (copy.bytes() == 0) continue;
    const LoopNest nest = copy.loop_nest();
    started.add(copy, nest, end_at(driver, nest.to), end_at(driver, nest.from));
  }
  started.launch();
  started.finish();
}

}  // namespace

std::vector<CopyEngine::Task> CudaCopies::start(std::span<const StridedCopy> copies) const {
  const cuda::Driver& driver = cuda::driver(kCudaCopy);
  int64_t bytes = 0;
  for (const StridedCopy& copy : copies) bytes += copy.bytes();
  const int64_t workers = std::max(WorkerPool::process().max_workers(), 1);
  const int64_t most = std::clamp(bytes / (workers * kPartsPerWorker), kLeastPart, kMostPart);
  std::shared_ptr<DriverCopies> started;
  std::vector<std::vector<StridedCopy>> groups;  // for workers
  int64_t room = 0;                              // in the last group
  const auto add = [&](const StridedCopy& copy) {
    if (copy.bytes() > room) {
      groups.emplace_back();
      room = most;
    }
    room -= copy.bytes();
    groups.back().push_back(copy);
  };
  for (const StridedCopy& copy : copies) {
    if (copy.bytes() == 0) continue;
    const LoopNest nest = copy.loop_nest();
    const CopyEnd to = end_at(driver, nest.to);
    const CopyEnd from = end_at(driver, nest.from);
    if (!is_staged(nest, to, from) && !to.is_exported(nest.to) && !from.is_exported(nest.from)) {
      if (!started) started = std::make_shared<DriverCopies>(driver, cuda::Poll::kOften);
      started->add(copy, nest, to, from);
    } else if (copy.bytes() <= most || !is_staged(nest, to, from)) {
      add(copy);
    } else {
      cuda::for_parts(cuda::sorted(nest, to.gpu == nullptr ? nest.from_strides : nest.to_strides), most,
                      [&](const LoopNest& part) { add(cuda::copy_of(part)); });
    }
  }
  std::vector<Task> tasks;
  if (started) {
    started->launch();
    tasks.emplace_back([started] { started->finish(); });
  }
  const cuda::Poll poll = groups.size() == 1 ? cuda::Poll::kOften : cuda::Poll::kRarely;
  for (std::vector<StridedCopy>& group : groups) {
    tasks.emplace_back([group = std::move(group), poll] { run_here(group, poll); });
  }
  return tasks;
}

void CudaCopies::run(std::span<const StridedCopy> copies) const { run_here(copies, cuda::Poll::kRarely); }

}  // namespace artifex_devices
