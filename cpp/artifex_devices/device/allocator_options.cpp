// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/allocator_options.h"

#include <string>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

std::string_view to_string(AllocatorKind kind) noexcept {
  switch (kind) {
    case AllocatorKind::kDefault:
      return "DEFAULT";
    case AllocatorKind::kPlatform:
      return "PLATFORM";
    case AllocatorKind::kBfc:
      return "BFC";
    case AllocatorKind::kCudaAsync:
      return "CUDA_ASYNC";
  }
  return "DEFAULT";
}

void AllocatorOptions::check(std::string_view operation) const {
  std::string wrong;
  if (!(memory_fraction > 0 && memory_fraction <= 1)) {  // also NaN
    wrong = fmt::format("memory_fraction is {}; expected a number greater than 0 and at most 1", memory_fraction);
  }
  if (collective_memory_size < 0) {
    wrong += fmt::format("{}collective_memory_size is {}; expected a number of bytes, 0 or more",
                         wrong.empty() ? "" : "; ", collective_memory_size);
  }
  if (!wrong.empty()) throw_error("{}: {}; correct it, or leave it out", operation, wrong);
}

void AllocatorOptions::check_for_cpu(std::string_view operation) const {
  check(operation);
  if (kind == AllocatorKind::kCudaAsync) {
    throw_error(
        "{}: the allocator kind CUDA_ASYNC requires CUDA; expected DEFAULT, BFC or PLATFORM for a CPU client; choose "
        "one of them",
        operation);
  }
  if (kind == AllocatorKind::kPlatform && preallocate) {
    throw_error(
        "{}: the allocator kind PLATFORM caches no memory, so none can be preallocated; expected preallocate=False or "
        "the kind BFC, got preallocate=True; change one of them",
        operation);
  }
}

}  // namespace artifex_devices
