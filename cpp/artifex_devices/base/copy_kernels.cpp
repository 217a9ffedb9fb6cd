// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/copy_kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"baseline", "avx2", "avx512"};

bool runs_here(Isa isa) noexcept {
  if (isa == Isa::kBaseline) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == Isa::kAvx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  if (isa == Isa::kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return false;
}

const CopyKernels& kernels_of(Isa isa) noexcept {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return copy_kernels_avx2;
  if (isa == Isa::kAvx512) return copy_kernels_avx512;
#endif
  static_cast<void>(isa);
  return copy_kernels_baseline;
}

// Good for copies before the best ones are chosen, which is when the library is loaded: a guarded static could be in
// the making when another thread forks.
constinit std::atomic<const CopyKernels*> g_kernels{&copy_kernels_baseline};
constinit std::atomic<Isa> g_isa{Isa::kBaseline};

void use(Isa isa) noexcept {
  g_isa.store(isa, std::memory_order_relaxed);
  g_kernels.store(&kernels_of(isa), std::memory_order_relaxed);
}

[[maybe_unused]] const bool g_chosen = [] {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (runs_here(isa)) use(isa);
  }
  return true;
}();

}  // namespace

std::string_view to_string(Isa isa) noexcept {
  const auto index = static_cast<size_t>(isa);
  return index < kNames.size() ? kNames[index] : std::string_view("unknown");
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (runs_here(isa)) found.push_back(isa);
  }
  return found;
}

Isa active_isa() noexcept { return g_isa.load(std::memory_order_relaxed); }

void set_active_isa(std::string_view name, std::string_view operation) {
  std::string names;
  for (const Isa isa : supported_isas()) {
    if (to_string(isa) == name) return use(isa);
    names += fmt::format("{}{:?}", names.empty() ? "" : ", ", to_string(isa));
  }
  const bool known = std::ranges::find(kNames, name) != kNames.end();
  throw_error("{}: the instruction set of copies is {:?}, which {}; expected one of {}; leave it out for the fastest",
              operation, name, known ? "this processor does not run" : "is not known here", names);
}

const CopyKernels& copy_kernels() noexcept { return *g_kernels.load(std::memory_order_relaxed); }

}  // namespace artifex_devices
