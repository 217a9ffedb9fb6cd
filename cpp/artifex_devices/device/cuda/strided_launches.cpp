// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/strided_launches.h"

#include <algorithm>
#include <array>
#include <bit>

namespace artifex_devices::cuda {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;  // of one copy, because a kernel counts elements in 32 bits
constexpr unsigned kThreads = 512;                // of a block; one element for each was fastest on an H100
constexpr int kMostLog2Bytes = 4;                 // the widest load of a GPU is 16 bytes

/// The widest element that all addresses of the copy are multiples of.
int log2_of_element(const LoopNest& nest) noexcept {
  auto all =
      static_cast<uint64_t>(nest.unit) | reinterpret_cast<uint64_t>(nest.to) | reinterpret_cast<uint64_t>(nest.from);
  for (int64_t d = 0; d < nest.shape.size(); ++d) {
    all |= static_cast<uint64_t>(nest.to_strides[d]) | static_cast<uint64_t>(nest.from_strides[d]);
  }
  return std::min(std::countr_zero(all), kMostLog2Bytes);
}

/// The loops around elements instead of runs.
KernelCopy kernel_copy(const LoopNest& nest, int64_t element) {
  KernelCopy result{};
  result.to = reinterpret_cast<uint64_t>(nest.to);
  result.from = reinterpret_cast<uint64_t>(nest.from);
  result.count = 1;
  const auto add = [&](int64_t size, int64_t to_stride, int64_t from_stride) {
    result.shape[result.dims] = static_cast<unsigned>(size);
    result.to_strides[result.dims] = to_stride;
    result.from_strides[result.dims] = from_stride;
    result.count *= static_cast<unsigned>(size);
    ++result.dims;
  };
  for (int64_t d = 0; d < nest.shape.size(); ++d) add(nest.shape[d], nest.to_strides[d], nest.from_strides[d]);
  if (nest.unit > element || result.dims == 0) add(nest.unit / element, element, element);
  return result;
}

}  // namespace

void StridedLaunches::add(const LoopNest& nest, const Gpu& gpu) {
  // Neighbouring threads write neighbouring memory.
  for_parts(sorted(nest, nest.to_strides), kMostBytes,
            [&](const LoopNest& part) { collect(part, gpu, log2_of_element(part)); });
}

void StridedLaunches::collect(const LoopNest& nest, const Gpu& gpu, int log2_bytes) {
  if (nest.shape.size() >= kKernelDims) {
    LoopNest inner = without_first(nest);
    for (int64_t i = 0; i < nest.shape[0]; ++i) {
      collect(inner, gpu, log2_bytes);
      inner.to += nest.to_strides[0];
      inner.from += nest.from_strides[0];
    }
    return;
  }
  const auto is_like = [&](const Collected& each) { return each.gpu == &gpu && each.log2_bytes == log2_bytes; };
  auto found = std::ranges::find_if(collected_, is_like);
  if (found == collected_.end()) {
    found = collected_.insert(collected_.end(), Collected{&gpu, log2_bytes, 0, {}});
  }
  found->parameter.copies[found->copies++] = kernel_copy(nest, int64_t{1} << log2_bytes);
  if (found->copies == kKernelCopies) launch(&*found);
}

void StridedLaunches::launch(Collected* collected) {
  if (collected->copies == 0) return;
  unsigned most = 0;
  for (int i = 0; i < collected->copies; ++i) most = std::max(most, collected->parameter.copies[i].count);
  const Gpu& gpu = *collected->gpu;
  const ContextScope scope(driver_, gpu, "copy");
  const Function kernel = gpu.strided_kernel(driver_, collected->log2_bytes);
  std::array<void*, 1> parameters = {&collected->parameter};
  driver_.check(driver_.launch(kernel, (most + kThreads - 1) / kThreads, static_cast<unsigned>(collected->copies), 1,
                               kThreads, 1, 1, 0, gpu.within(), parameters.data(), nullptr),
                "copy", "cuLaunchKernel");
  collected->copies = 0;
}

void StridedLaunches::launch_all() {
  for (Collected& each : collected_) launch(&each);
}

}  // namespace artifex_devices::cuda
