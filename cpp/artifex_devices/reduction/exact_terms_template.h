// SPDX-License-Identifier: Apache-2.0
// The terms of exact sums and their magnitudes: a part of exact_kernels_template.h, which includes it.
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

// The four quarters of a run are read in turn, while the elements `ahead` are fetched. Calls visit(u, index in quarter
// u), and returns the number of elements in the quarters; other elements follow.
template <class T, class Visit>
[[gnu::always_inline]] inline int64_t visit_quarters(const T* from, int64_t count, int64_t ahead,
                                                     const Visit& visit) noexcept {
  const int64_t quarter = count / (kUnrolled * kLanes) * kLanes;
  for (int64_t i = 0; i < quarter; i += kLanes) {
    for (int64_t u = 0; u < kUnrolled; ++u) {
      __builtin_prefetch(from + u * quarter + i + ahead);  // never faults behind the end
      visit(u, u * quarter + i);
    }
  }
  return kUnrolled * quarter;
}

// The greatest of the bits of absolute values.
struct Largest {
  Words lanes[kUnrolled] = {};
  int64_t one = 0;

  [[gnu::always_inline]] void add(int64_t u, Doubles numbers) noexcept {
    const Words bits = bits_of(numbers);
    lanes[u] = bits > lanes[u] ? bits : lanes[u];
  }
  [[gnu::always_inline]] void add(double number) noexcept {
    const int64_t bits = bits_of(number);
    one = bits > one ? bits : one;
  }
  [[gnu::always_inline]] int64_t all() const noexcept {
    Words most = lanes[0];
    for (const Words& each : lanes) most = each > most ? each : most;
    int64_t result = one;
    for (int64_t lane = 0; lane < kLanes; ++lane) result = most[lane] > result ? most[lane] : result;
    return result;
  }
};

int64_t largest(const double* from, int64_t count, int64_t ahead) noexcept {
  Largest found;
  int64_t i = visit_quarters(from, count, ahead, [&](int64_t u, int64_t at) { found.add(u, load(from + at)); });
  for (; i < count; ++i) found.add(from[i]);
  return found.all();
}

[[gnu::always_inline]] inline Doubles absolute(Doubles number) noexcept {
  const Words bits = bits_of(number);
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

[[gnu::always_inline]] inline double absolute(double number) noexcept { return __builtin_fabs(number); }

template <ExactTerm kTerm, class V>
[[gnu::always_inline]] inline V term_of(V number, V other) noexcept {
  if constexpr (kTerm == ExactTerm::kAbsolute) return absolute(number);
  if constexpr (kTerm == ExactTerm::kSquare) return number * number;
  if constexpr (kTerm == ExactTerm::kProduct) return number * other;
  if constexpr (kTerm == ExactTerm::kDeviation) return (number - other) * (number - other);
  return number;
}

template <ExactTerm kTerm, bool kHasOthers, class T, class U>
int64_t convert_each(const T* from, const U* others, int64_t count, int64_t ahead, double* to) noexcept {
  Largest found;
  const double fixed = kHasOthers ? 0 : static_cast<double>(others[0]);
  int64_t i = visit_quarters(from, count, ahead, [&](int64_t u, int64_t at) {
    if constexpr (kTerm == ExactTerm::kProduct) __builtin_prefetch(others + at + ahead);
    Doubles other = fixed - Doubles{};
    if constexpr (kHasOthers) other = load(others + at);
    const Doubles term = term_of<kTerm>(load(from + at), other);
    std::memcpy(to + at, &term, sizeof term);
    found.add(u, term);
  });
  for (; i < count; ++i) {
    to[i] = term_of<kTerm>(static_cast<double>(from[i]), kHasOthers ? static_cast<double>(others[i]) : fixed);
    found.add(to[i]);
  }
  return found.all();
}

template <ExactTerm kTerm, class T, class U>
int64_t convert(const T* from, const U* others, int64_t others_stride, int64_t count, int64_t ahead,
                double* to) noexcept {
  if constexpr (kTerm == ExactTerm::kProduct || kTerm == ExactTerm::kDeviation) {
    if (others_stride == 0) return convert_each<kTerm, false>(from, others, count, ahead, to);
  }
  return convert_each<kTerm, true>(from, others, count, ahead, to);
}

}  // namespace
}  // namespace artifex_devices
