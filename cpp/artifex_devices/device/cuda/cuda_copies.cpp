// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/cuda_copies.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/cuda/staging.h"

namespace artifex_devices {
namespace {

using Box = StridedCopy::Box;

constexpr std::string_view kCudaCopy = "copy";
constexpr int64_t kMostDriverCalls = 256;  // for memory that could be staged instead

int64_t bytes_of(const Box& box) noexcept {
  int64_t bytes = box.unit;
  for (const int64_t size : box.shape) bytes *= size;
  return bytes;
}

/// The dimensions by descending strides of one side.
Box sorted(const Box& box, const Dims& by) {
  std::vector<int64_t> order(static_cast<size_t>(box.shape.size()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return std::abs(by[a]) > std::abs(by[b]); });
  Box result{box.to, box.from, {}, {}, {}, box.unit};
  for (const int64_t d : order) {
    result.shape.push_back(box.shape[d]);
    result.to_strides.push_back(box.to_strides[d]);
    result.from_strides.push_back(box.from_strides[d]);
  }
  return result;
}

/// Calls f for parts of at most `most` bytes, front to back.
template <class F>
void for_parts(const Box& box, int64_t most, const F& f) {
  const int64_t bytes = bytes_of(box);
  if (bytes <= most) return f(box);
  if (box.shape.empty()) {
    for (int64_t at = 0; at < box.unit; at += most) {
      f(Box{box.to + at, box.from + at, {}, {}, {}, std::min(most, box.unit - at)});
    }
    return;
  }
  const int64_t row = bytes / box.shape[0];
  const int64_t rows = std::max<int64_t>(most / row, 1);
  for (int64_t i = 0; i < box.shape[0]; i += rows) {
    Box part = box;
    part.to += i * box.to_strides[0];
    part.from += i * box.from_strides[0];
    part.shape[0] = std::min(rows, box.shape[0] - i);
    if (part.shape[0] > 1 || row <= most) {
      f(part);
      continue;
    }
    Box inner{part.to, part.from, {}, {}, {}, part.unit};
    for (int64_t d = 1; d < part.shape.size(); ++d) {
      inner.shape.push_back(part.shape[d]);
      inner.to_strides.push_back(part.to_strides[d]);
      inner.from_strides.push_back(part.from_strides[d]);
    }
    for_parts(inner, most, f);
  }
}

/// The longest dimension that one two-dimensional copy can take; nothing without one.
std::optional<int64_t> row_dimension(const Box& box, int64_t max_pitch) {
  std::optional<int64_t> best;
  for (int64_t d = 0; d < box.shape.size(); ++d) {
    const int64_t least = std::min(box.to_strides[d], box.from_strides[d]);
    const int64_t most = std::max(box.to_strides[d], box.from_strides[d]);
    if (least >= box.unit && most <= max_pitch && (!best || box.shape[d] > box.shape[*best])) best = d;
  }
  return best;
}

int64_t calls_for(const Box& box, int64_t max_pitch) {
  const auto rows = row_dimension(box, max_pitch);
  int64_t calls = 1;
  for (int64_t d = 0; d < box.shape.size(); ++d) calls *= d == rows ? 1 : box.shape[d];
  return calls;
}

cuda::Address address_of(const std::byte* pointer) noexcept { return reinterpret_cast<cuda::Address>(pointer); }

/// One end of a copy.
struct CopyEnd {
  const cuda::Gpu* gpu = nullptr;  // null: memory of the host
  bool is_locked = false;          // by CUDA
};

/// The copies of one call. Its destruction waits for all that it started.
class DriverCopies {
 public:
  DriverCopies(const cuda::Driver& driver, bool interruptible)
      : driver_(driver), gpus_(cuda::all_gpus(driver)), staging_(driver), interruptible_(interruptible) {}
  DriverCopies(const DriverCopies&) = delete;
  DriverCopies& operator=(const DriverCopies&) = delete;
  ~DriverCopies() {
    for (const auto& [gpu, stream] : streams_) {
      try {
        cuda::wait_for_stream(driver_, *gpu, stream);
      } catch (...) {  // NOLINT(bugprone-empty-catch) an error is being thrown already
      }
    }
  }

  void add(const StridedCopy& copy) {
    if (interruptible_) check_interrupt();
    if (copy.bytes() == 0) return;
    const Box box = copy.box();
    const CopyEnd to = end_at(box.to);
    const CopyEnd from = end_at(box.from);
    wait_for_others(to, box.to);
    wait_for_others(from, box.from);
    if (to.gpu == nullptr && from.gpu == nullptr) {
      cuda::run_on_host(copy);
    } else if (to.gpu != nullptr && from.gpu != nullptr) {
      copy_between(box, *to.gpu, *from.gpu);
    } else if (to.gpu != nullptr) {
      copy_in(box, *to.gpu, from.is_locked);
    } else {
      copy_out(box, *from.gpu, to.is_locked);
    }
  }

  void finish() {
    while (!streams_.empty()) {
      const auto [gpu, stream] = streams_.back();
      cuda::wait_for_stream(driver_, *gpu, stream);
      streams_.pop_back();
    }
    staging_.finish();
  }

 private:
  CopyEnd end_at(const std::byte* pointer) const {
    unsigned type = 0;
    int ordinal = -1;
    std::array attributes = {cuda::kMemoryType, cuda::kDeviceOrdinal};
    std::array<void*, 2> values = {&type, &ordinal};
    driver_.check(driver_.pointer_attributes(2, attributes.data(), values.data(), address_of(pointer)), kCudaCopy,
                  "cuPointerGetAttributes");
    if (type == cuda::kDeviceMemory) return {gpus_[static_cast<size_t>(ordinal)].get(), false};
    return {nullptr, type == cuda::kHostMemory};
  }

  /// Waits for work that other libraries have started on the GPU, once for each batch, if they know the memory.
  void wait_for_others(const CopyEnd& end, const std::byte* pointer) {
    if (end.gpu == nullptr || !end.gpu->is_exported(address_of(pointer))) return;
    if (std::ranges::find(waited_for_, end.gpu) != waited_for_.end()) return;
    const cuda::ContextScope scope(driver_, *end.gpu, kCudaCopy);
    driver_.check(driver_.synchronize_context(), kCudaCopy, "cuCtxSynchronize");
    waited_for_.push_back(end.gpu);
  }

  void use(const cuda::Gpu& gpu, cuda::Stream stream) {
    const std::pair used(&gpu, stream);
    if (std::ranges::find(streams_, used) == streams_.end()) streams_.push_back(used);
  }

  /// Starts `box` in `stream`, where the context of its GPU is current. `from_gpu`: of memory of another GPU.
  void start(const Box& box, const cuda::Gpu& gpu, cuda::Stream stream, const cuda::Gpu* from_gpu = nullptr) {
    use(gpu, stream);
    const auto rows = row_dimension(box, gpu.facts().max_pitch);
    Dims index(box.shape.size(), 0);
    std::byte* to = box.to;
    const std::byte* from = box.from;
    for (;;) {
      start_rows(to, from, box, rows, gpu, stream, from_gpu);
      int64_t d = box.shape.size() - 1;
      for (; d >= 0; --d) {
        if (d == rows) continue;
        to += box.to_strides[d];
        from += box.from_strides[d];
        if (++index[d] < box.shape[d]) break;
        to -= box.shape[d] * box.to_strides[d];
        from -= box.shape[d] * box.from_strides[d];
        index[d] = 0;
      }
      if (d < 0) return;
    }
  }

  void start_rows(std::byte* to, const std::byte* from, const Box& box, std::optional<int64_t> rows,
                  const cuda::Gpu& gpu, cuda::Stream stream, const cuda::Gpu* from_gpu) {
    const auto width = static_cast<size_t>(box.unit);
    if (!rows && from_gpu == nullptr) {
      return driver_.check(driver_.copy(address_of(to), address_of(from), width, stream), kCudaCopy, "cuMemcpyAsync");
    }
    if (!rows) {
      return driver_.check(
          driver_.copy_peer(address_of(to), gpu.context(), address_of(from), from_gpu->context(), width, stream),
          kCudaCopy, "cuMemcpyPeerAsync");
    }
    const auto height = static_cast<size_t>(box.shape[*rows]);
    const auto to_pitch = static_cast<size_t>(box.to_strides[*rows]);
    const auto from_pitch = static_cast<size_t>(box.from_strides[*rows]);
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

  void copy_between(const Box& box, const cuda::Gpu& to, const cuda::Gpu& from) {
    if (&to != &from) to.enable_peer(driver_, from);
    const cuda::ContextScope scope(driver_, to, kCudaCopy);
    start(box, to, to.within(), &to == &from ? nullptr : &from);
  }

  void copy_in(const Box& box, const cuda::Gpu& gpu, bool is_locked) {
    const cuda::ContextScope scope(driver_, gpu, kCudaCopy);
    if (is_locked && calls_for(box, gpu.facts().max_pitch) <= kMostDriverCalls) return start(box, gpu, gpu.from_host());
    for_parts(sorted(box, box.to_strides), cuda::StagingBuffer::kBytes, [&](const Box& part) {
      if (interruptible_) check_interrupt();
      const Dims dense = row_major_strides(part.shape, part.unit);
      std::byte* packed = staging_.take(bytes_of(part), gpu, gpu.from_host());
      cuda::run_on_host(StridedCopy(packed, dense, part.from, part.from_strides, part.shape, part.unit));
      start(StridedCopy(part.to, part.to_strides, packed, dense, part.shape, part.unit).box(), gpu, gpu.from_host());
    });
  }

  void copy_out(const Box& box, const cuda::Gpu& gpu, bool is_locked) {
    const cuda::ContextScope scope(driver_, gpu, kCudaCopy);
    if (is_locked && calls_for(box, gpu.facts().max_pitch) <= kMostDriverCalls) return start(box, gpu, gpu.to_host());
    for_parts(sorted(box, box.from_strides), cuda::StagingBuffer::kBytes, [&](const Box& part) {
      if (interruptible_) check_interrupt();
      const Dims dense = row_major_strides(part.shape, part.unit);
      std::byte* packed = staging_.take(bytes_of(part), gpu, gpu.to_host());
      start(StridedCopy(packed, dense, part.from, part.from_strides, part.shape, part.unit).box(), gpu, gpu.to_host());
      staging_.unpack_later(StridedCopy(part.to, part.to_strides, packed, dense, part.shape, part.unit));
    });
  }

  const cuda::Driver& driver_;
  const std::vector<std::unique_ptr<cuda::Gpu>>& gpus_;
  cuda::Staging staging_;
  std::vector<std::pair<const cuda::Gpu*, cuda::Stream>> streams_;  // with copies that may be running
  std::vector<const cuda::Gpu*> waited_for_;
  bool interruptible_;
};

}  // namespace

void CudaCopies::run(std::span<const StridedCopy> copies, bool interruptible) const {
  DriverCopies run(cuda::driver(kCudaCopy), interruptible);
  for (const StridedCopy& copy : copies) run.add(copy);
  run.finish();
}

}  // namespace artifex_devices
