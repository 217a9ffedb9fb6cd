// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/strided_launches.h"

#include <algorithm>
#include <array>
#include <bit>

namespace artifex_devices::cuda {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;  // of a box, whose elements are counted in 32 bits
constexpr unsigned kThreads = 512;                // of a block; one element for each was fastest on an H100
constexpr int kMostLog2Bytes = 4;                 // the widest load of a GPU is 16 bytes

/// The widest element that all addresses of the box are multiples of.
int log2_of_element(const Box& box) noexcept {
  auto all =
      static_cast<uint64_t>(box.unit) | reinterpret_cast<uint64_t>(box.to) | reinterpret_cast<uint64_t>(box.from);
  for (int64_t d = 0; d < box.shape.size(); ++d) {
    all |= static_cast<uint64_t>(box.to_strides[d]) | static_cast<uint64_t>(box.from_strides[d]);
  }
  return std::min(std::countr_zero(all), kMostLog2Bytes);
}

/// The box as dimensions of elements alone.
KernelBox kernel_box(const Box& box, int64_t element) {
  KernelBox result{};
  result.to = reinterpret_cast<uint64_t>(box.to);
  result.from = reinterpret_cast<uint64_t>(box.from);
  result.count = 1;
  const auto add = [&](int64_t size, int64_t to_stride, int64_t from_stride) {
    result.shape[result.dims] = static_cast<unsigned>(size);
    result.to_strides[result.dims] = to_stride;
    result.from_strides[result.dims] = from_stride;
    result.count *= static_cast<unsigned>(size);
    ++result.dims;
  };
  for (int64_t d = 0; d < box.shape.size(); ++d) add(box.shape[d], box.to_strides[d], box.from_strides[d]);
  if (box.unit > element || result.dims == 0) add(box.unit / element, element, element);
  return result;
}

}  // namespace

void StridedLaunches::add(const Box& box, const Gpu& gpu) {
  // Neighbouring threads write neighbouring memory.
  for_parts(sorted(box, box.to_strides), kMostBytes,
            [&](const Box& part) { collect(part, gpu, log2_of_element(part)); });
}

void StridedLaunches::collect(const Box& box, const Gpu& gpu, int log2_bytes) {
  if (box.shape.size() >= kKernelDims) {
    Box inner = without_first(box);
    for (int64_t i = 0; i < box.shape[0]; ++i) {
      collect(inner, gpu, log2_bytes);
      inner.to += box.to_strides[0];
      inner.from += box.from_strides[0];
    }
    return;
  }
  const auto is_like = [&](const Collected& each) { return each.gpu == &gpu && each.log2_bytes == log2_bytes; };
  auto found = std::ranges::find_if(collected_, is_like);
  if (found == collected_.end()) {
    found = collected_.insert(collected_.end(), Collected{&gpu, log2_bytes, 0, {}});
  }
  found->parameter.boxes[found->boxes++] = kernel_box(box, int64_t{1} << log2_bytes);
  if (found->boxes == kKernelBoxes) launch(&*found);
}

void StridedLaunches::launch(Collected* collected) {
  if (collected->boxes == 0) return;
  unsigned most = 0;
  for (int i = 0; i < collected->boxes; ++i) most = std::max(most, collected->parameter.boxes[i].count);
  const Gpu& gpu = *collected->gpu;
  const ContextScope scope(driver_, gpu, "copy");
  const Function kernel = gpu.strided_kernel(driver_, collected->log2_bytes);
  std::array<void*, 1> parameters = {&collected->parameter};
  driver_.check(driver_.launch(kernel, (most + kThreads - 1) / kThreads, static_cast<unsigned>(collected->boxes), 1,
                               kThreads, 1, 1, 0, gpu.within(), parameters.data(), nullptr),
                "copy", "cuLaunchKernel");
  collected->boxes = 0;
}

void StridedLaunches::launch_all() {
  for (Collected& each : collected_) launch(&each);
}

}  // namespace artifex_devices::cuda
