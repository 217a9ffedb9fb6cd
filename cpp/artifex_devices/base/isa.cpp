// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/isa.h"

#include <algorithm>
#include <array>
#include <string>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"baseline", "avx2", "avx512"};

[[maybe_unused]] const bool g_is_chosen = [] {
  internal::g_active_isa.store(supported_isas().back(), std::memory_order_relaxed);
  return true;
}();

}  // namespace

constinit std::atomic<Isa> internal::g_active_isa{Isa::kBaseline};

std::string_view to_string(Isa isa) noexcept {
  const auto index = static_cast<size_t>(isa);
  return index < kNames.size() ? kNames[index] : std::string_view("unknown");
}

bool is_supported(Isa isa) noexcept {
  if (isa == Isa::kBaseline) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (isa == Isa::kAvx2) return has_avx2;
  if (isa == Isa::kAvx512) {
    return has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  }
#endif
  return false;
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> supported;
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (is_supported(isa)) supported.push_back(isa);
  }
  return supported;
}

Isa isa_from_name(std::string_view name, std::string_view subject) {
  std::string names;
  for (const Isa isa : supported_isas()) {
    if (to_string(isa) == name) return isa;
    names += fmt::format("{}{:?}", names.empty() ? "" : ", ", to_string(isa));
  }
  const bool is_known = std::ranges::find(kNames, name) != kNames.end();
  throw_error("{} is {:?}, which {}; expected one of {}; leave it out for the fastest", subject, name,
              is_known ? "this processor does not run" : "is not known here", names);
}

void set_active_isa(std::string_view name, std::string_view operation) {
  const Isa isa = isa_from_name(name, fmt::format("{}: the instruction set of copies", operation));
  internal::g_active_isa.store(isa, std::memory_order_relaxed);
}

}  // namespace artifex_devices
