// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/allocator_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include <utility>

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

std::optional<AllocatorOptions> AllocatorOptions::from_environment() {
  constexpr const char* kKind = "XLA_PYTHON_CLIENT_ALLOCATOR";
  constexpr const char* kFraction = "XLA_PYTHON_CLIENT_MEM_FRACTION";
  constexpr const char* kPreallocate = "XLA_PYTHON_CLIENT_PREALLOCATE";
  const auto fail = [](const char* variable, const char* text, std::string_view expected) {
    throw_error("devices: the environment variable {} is {:?}; expected {}; correct or unset it", variable, text,
                expected);
  };
  std::optional<AllocatorOptions> found;
  const auto value_of = [&](const char* variable) {
    const char* text = std::getenv(variable);
    if (text != nullptr && !found) found.emplace();
    return text;
  };
  if (const char* text = value_of(kKind)) {
    constexpr std::array<std::pair<std::string_view, AllocatorKind>, 4> kNames = {{
        {"default", AllocatorKind::kDefault},
        {"platform", AllocatorKind::kPlatform},
        {"bfc", AllocatorKind::kBfc},
        {"cuda_async", AllocatorKind::kCudaAsync},
    }};
    const auto known = std::ranges::find(kNames, text, [](const auto& each) { return each.first; });
    if (known == kNames.end()) fail(kKind, text, "default, platform, bfc or cuda_async");
    found->kind = known->second;
  }
  if (const char* text = value_of(kFraction)) {
    const std::string_view whole = text;
    const auto [end, error] = std::from_chars(whole.begin(), whole.end(), found->memory_fraction);
    if (error != std::errc{} || end != whole.end()) fail(kFraction, text, "a number greater than 0 and at most 1");
  }
  if (const char* text = value_of(kPreallocate)) {
    const std::string_view flag = text;
    found->preallocate = flag == "1" || flag == "true" || flag == "True";
    if (!found->preallocate && flag != "0" && flag != "false" && flag != "False") {
      fail(kPreallocate, text, "true or false");
    }
  }
  return found;
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
