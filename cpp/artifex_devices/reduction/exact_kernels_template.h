// SPDX-License-Identifier: Apache-2.0
// The loops of exact_kernels.h, compiled once for each instruction set: exact_kernels_*.cpp set ARTIFEX_EXACT_KERNELS,
// the name of the table, and include this. All else is private to each object, as in base/copy_kernels_template.h;
// hence no inline function of the standard library is used. Products are not contracted with sums (CMakeLists.txt).
#include <cstddef>
#include <cstring>

#include "artifex_devices/base/register_bytes.h"
#include "artifex_devices/reduction/exact_kernels.h"

namespace artifex_devices {
namespace {

typedef double Doubles __attribute__((vector_size(kRegisterBytes)));
typedef int64_t Words __attribute__((vector_size(kRegisterBytes)));
typedef float Floats __attribute__((vector_size(kRegisterBytes / 2)));
constexpr int64_t kLanes = kRegisterBytes / 8;
constexpr int64_t kUnrolled = 4;  // independent sums hide the latency of additions
constexpr int64_t kSignless = INT64_MAX;

[[gnu::always_inline]] inline Doubles load(const double* from) noexcept {
  Doubles loaded;
  std::memcpy(&loaded, from, sizeof loaded);
  return loaded;
}

[[gnu::always_inline]] inline Doubles load(const float* from) noexcept {
  Floats loaded;
  std::memcpy(&loaded, from, sizeof loaded);
  return __builtin_convertvector(loaded, Doubles);
}

template <ExactTerm kTerm, class T>
void convert(const T* from, const T* others, int64_t count, double* to) noexcept {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Doubles term = load(from + i);
    if constexpr (kTerm == ExactTerm::kSquare) term = term * term;
    if constexpr (kTerm == ExactTerm::kProduct) term = term * load(others + i);
    std::memcpy(to + i, &term, sizeof term);
  }
  for (; i < count; ++i) {
    auto term = static_cast<double>(from[i]);
    if constexpr (kTerm == ExactTerm::kSquare) term = term * term;
    if constexpr (kTerm == ExactTerm::kProduct) term = term * static_cast<double>(others[i]);
    to[i] = term;
  }
}

[[gnu::always_inline]] inline Words bits_of(Doubles numbers) noexcept {
  Words bits;
  std::memcpy(&bits, &numbers, sizeof bits);
  return bits & kSignless;
}

[[gnu::always_inline]] inline int64_t bits_of(double number) noexcept {
  int64_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits & kSignless;
}

int64_t largest(const double* from, int64_t count) noexcept {
  Words greatest[kUnrolled] = {};
  int64_t i = 0;
  for (; i + kUnrolled * kLanes <= count; i += kUnrolled * kLanes) {
    for (int64_t u = 0; u < kUnrolled; ++u) {
      const Words bits = bits_of(load(from + i + u * kLanes));
      greatest[u] = bits > greatest[u] ? bits : greatest[u];
    }
  }
  int64_t result = 0;
  for (const Words& each : greatest) {
    for (int64_t lane = 0; lane < kLanes; ++lane) result = each[lane] > result ? each[lane] : result;
  }
  for (; i < count; ++i) {
    const int64_t bits = bits_of(from[i]);
    result = bits > result ? bits : result;
  }
  return result;
}

// The bits of single-precision numbers without their signs, less 1, so that zeros are the greatest.
typedef uint32_t Bits32 __attribute__((vector_size(kRegisterBytes / 2)));

double near32(const float* from, int64_t count) noexcept {
  constexpr uint32_t kSignless32 = INT32_MAX;
  Doubles sums[kUnrolled] = {};
  Bits32 least = ~Bits32{};
  Bits32 greatest = {};
  int64_t i = 0;
  for (; i + kUnrolled * kLanes <= count; i += kUnrolled * kLanes) {
    for (int64_t u = 0; u < kUnrolled; ++u) {
      Bits32 bits;
      std::memcpy(&bits, from + i + u * kLanes, sizeof bits);
      bits &= kSignless32;
      greatest = bits > greatest ? bits : greatest;
      bits -= 1;
      least = bits < least ? bits : least;
      sums[u] += load(from + i + u * kLanes);
    }
  }
  double total = 0;
  uint32_t most = 0;
  uint32_t fewest = UINT32_MAX;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    for (const Doubles& each : sums) total += each[lane];
    most = greatest[lane] > most ? greatest[lane] : most;
    fewest = least[lane] < fewest ? least[lane] : fewest;
  }
  for (; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, from + i, sizeof bits);
    bits &= kSignless32;
    most = bits > most ? bits : most;
    fewest = bits - 1 < fewest ? bits - 1 : fewest;
    total += static_cast<double>(from[i]);
  }
  constexpr uint32_t kInfinite = 0xFF;
  constexpr uint32_t kDistance = 53 - 24 - 11;  // 2^11 numbers of 24 bits in 53 bits
  const uint32_t exponent = most >> 23;
  const bool is_near = most != 0 && exponent != kInfinite && ((fewest + 1) >> 23) + kDistance >= exponent;
  return is_near ? total : __builtin_nan("");
}

// Takes the multiples of the last bit of magic[level] out of a number; returns what is left.
template <int kLevels, class V>
[[gnu::always_inline]] inline V extract_from(V left, const V* magic, V* sums) noexcept {
  for (int level = 0; level < kLevels; ++level) {
    const V part = (left + magic[level]) - magic[level];
    left = left - part;
    sums[level] = sums[level] + part;
  }
  return left;
}

template <int kLevels>
bool extract(const double* from, int64_t count, const double* magic, double* sums) noexcept {
  Doubles all_magic[kLevels];
  Doubles parts[kUnrolled][kLevels] = {};
  Words left[kUnrolled] = {};
  for (int level = 0; level < kLevels; ++level) {
    all_magic[level] = magic[level] - Doubles{};
    sums[level] = 0;
  }
  int64_t i = 0;
  for (; i + kUnrolled * kLanes <= count; i += kUnrolled * kLanes) {
    for (int64_t u = 0; u < kUnrolled; ++u) {
      const Doubles rest = extract_from<kLevels>(load(from + i + u * kLanes), all_magic, parts[u]);
      Words bits;
      std::memcpy(&bits, &rest, sizeof bits);
      left[u] |= bits;
    }
  }
  int64_t any_left = 0;
  for (int64_t u = 0; u < kUnrolled; ++u) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      any_left |= left[u][lane] & kSignless;  // the rest of -0.0 is -0.0
      for (int level = 0; level < kLevels; ++level) sums[level] += parts[u][level][lane];
    }
  }
  for (; i < count; ++i) any_left |= bits_of(extract_from<kLevels>(from[i], magic, sums));
  return any_left == 0;
}

// Adds one number to a sum, its error to the rest, and the bits of the error of that to the mark. As D. Knuth's
// TwoSum, which needs no order of magnitudes. Not finite: the errors are NaN, which leaves a mark.
template <class V, class W>
[[gnu::always_inline]] inline void add_exactly(V number, V& sum, V& rest, W& is_inexact) noexcept {
  const V total = sum + number;
  const V other = total - sum;
  const V error = (sum - (total - other)) + (number - other);
  const V both = rest + error;
  const V added = both - rest;
  is_inexact |= bits_of((rest - (both - added)) + (error - added));
  sum = total;
  rest = both;
}

template <class T>
void cascade(const T* const* rows, int64_t count, int64_t width, ExactColumns* to) noexcept {
  constexpr int64_t kRows = 8;  // streams that a processor follows
  for (int64_t first = 0; first < count; first += kRows) {
    const int64_t last = count - first < kRows ? count : first + kRows;
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      Doubles sum = load(to->sum + i);
      Doubles rest = load(to->rest + i);
      Words is_inexact;
      std::memcpy(&is_inexact, to->is_inexact + i, sizeof is_inexact);
      for (int64_t row = first; row < last; ++row) add_exactly(load(rows[row] + i), sum, rest, is_inexact);
      std::memcpy(to->sum + i, &sum, sizeof sum);
      std::memcpy(to->rest + i, &rest, sizeof rest);
      std::memcpy(to->is_inexact + i, &is_inexact, sizeof is_inexact);
    }
    for (; i < width; ++i) {
      for (int64_t row = first; row < last; ++row) {
        add_exactly(static_cast<double>(rows[row][i]), to->sum[i], to->rest[i], to->is_inexact[i]);
      }
    }
  }
}

}  // namespace

extern const ExactKernels ARTIFEX_EXACT_KERNELS;
const ExactKernels ARTIFEX_EXACT_KERNELS = {
    {convert<ExactTerm::kValue, float>, convert<ExactTerm::kSquare, float>, convert<ExactTerm::kProduct, float>},
    {convert<ExactTerm::kValue, double>, convert<ExactTerm::kSquare, double>, convert<ExactTerm::kProduct, double>},
    near32,
    largest,
    {extract<1>, extract<2>, extract<3>},
    cascade<float>,
    cascade<double>};

}  // namespace artifex_devices
