// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

// The one place that chooses code for the processor. Loops are compiled once for each instruction set, as
// `name_baseline`, `name_avx2` and `name_avx512`, in files with separate compile options (CMakeLists.txt).
namespace artifex_devices {

/// Instruction sets that loops are compiled for. The baseline is SSE2 on x86-64 and NEON on aarch64, which has no
/// other. kAvx2 includes FMA and F16C, kAvx512 the extensions F, DQ, BW and VL.
enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };

std::string_view to_string(Isa isa) noexcept;  // "baseline", "avx2", "avx512"

/// Whether this processor runs code for `isa`.
bool is_supported(Isa isa) noexcept;

/// The instruction sets that this processor runs, least first; never empty.
std::vector<Isa> supported_isas();

/// Returns the supported instruction set of this name. Throws InvalidArgument that names the supported ones; `subject`
/// is how the message calls the value ("gemm: isa").
Isa isa_from_name(std::string_view name, std::string_view subject);

namespace internal {
// The baseline until the library is loaded, then the best supported set. Not a guarded static, which a fork could
// interrupt while another thread initializes it.
extern std::atomic<Isa> g_active_isa;
}  // namespace internal

/// The instruction set that copies, selections and reductions use.
inline Isa active_isa() noexcept { return internal::g_active_isa.load(std::memory_order_relaxed); }

/// Changes active_isa() for all later calls, for tests and for reproducible counts of instructions. Throws as
/// isa_from_name.
void set_active_isa(std::string_view name, std::string_view operation);

/// Returns the variant for `isa`. Example: variant_of<Loop>(Isa::kAvx2, a, b, c) is b.
template <class T>
constexpr T variant_of(Isa isa, T baseline, T avx2, T avx512) noexcept {
  return isa == Isa::kAvx512 ? avx512 : isa == Isa::kAvx2 ? avx2 : baseline;
}

}  // namespace artifex_devices

/// The variant of `name` for `isa`, as a T: name_baseline, name_avx2 or name_avx512.
#if defined(__x86_64__)
#define ARTIFEX_VARIANT(T, isa, name) \
  (::artifex_devices::variant_of<T>((isa), name##_baseline, name##_avx2, name##_avx512))
#else
#define ARTIFEX_VARIANT(T, isa, name) (static_cast<void>(isa), static_cast<T>(name##_baseline))
#endif
