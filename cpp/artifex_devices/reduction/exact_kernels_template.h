// SPDX-License-Identifier: Apache-2.0
// The loops of exact_kernels.h, compiled once for each instruction set: exact_kernels_*.cpp set ARTIFEX_EXACT_KERNELS,
// the name of the table, and include this. All else is private to each object, as in base/copy_kernels_template.h;
// hence no inline function of the standard library is used. Products are not contracted with sums (CMakeLists.txt).
#include "artifex_devices/reduction/exact_terms_template.h"

namespace artifex_devices {
namespace {

// The least and the greatest magnitude of single-precision numbers but zeros.
struct Range {
  typedef uint32_t Bits __attribute__((vector_size(kRegisterBytes / 2)));
  static constexpr uint32_t kSignless32 = INT32_MAX;
  Bits leasts = ~Bits{};  // less 1, so that zeros are the greatest
  Bits greatests = {};
  uint32_t least = UINT32_MAX;
  uint32_t greatest = 0;

  // Returns the numbers, or their absolute values.
  template <bool kIsAbsolute>
  [[gnu::always_inline]] Doubles load_next(const float* from) noexcept {
    Floats numbers;
    std::memcpy(&numbers, from, sizeof numbers);
    Bits bits;
    std::memcpy(&bits, &numbers, sizeof bits);
    bits &= kSignless32;
    if constexpr (kIsAbsolute) std::memcpy(&numbers, &bits, sizeof numbers);
    greatests = bits > greatests ? bits : greatests;
    bits -= 1;
    leasts = bits < leasts ? bits : leasts;
    return __builtin_convertvector(numbers, Doubles);
  }

  template <bool kIsAbsolute>
  [[gnu::always_inline]] double next(float number) noexcept {
    uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    bits &= kSignless32;
    greatest = bits > greatest ? bits : greatest;
    least = bits - 1 < least ? bits - 1 : least;
    return static_cast<double>(kIsAbsolute ? __builtin_fabsf(number) : number);
  }

  // Returns whether the bits of all sums of `count` numbers fit in a double.
  [[gnu::always_inline]] bool is_near(int64_t count) const noexcept {
    uint32_t most = greatest;
    uint32_t fewest = least;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      most = greatests[lane] > most ? greatests[lane] : most;
      fewest = leasts[lane] < fewest ? leasts[lane] : fewest;
    }
    constexpr uint32_t kInfinite = 0xFF;
    const uint32_t distance = 53 - 24 - (count <= kExactRows ? 8 : 11);  // 2^11 numbers of 24 bits in 53 bits
    const uint32_t exponent = most >> 23;
    return most != 0 && exponent != kInfinite && ((fewest + 1) >> 23) + distance >= exponent;
  }
};

template <bool kIsAbsolute>
double near32(const float* from, int64_t count) noexcept {
  Doubles sums[kUnrolled] = {};
  Range range;
  double total = 0;
  int64_t i = visit_quarters(from, count, kExactRun,
                             [&](int64_t u, int64_t at) { sums[u] += range.load_next<kIsAbsolute>(from + at); });
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    for (const Doubles& each : sums) total += each[lane];
  }
  for (; i < count; ++i) total += range.next<kIsAbsolute>(from[i]);
  return range.is_near(count) ? total : __builtin_nan("");
}

constexpr int64_t kStreams = 8;  // rows at a time, as many as a processor follows

template <bool kIsAbsolute>
bool near_columns32(const float* const* rows, int64_t count, int64_t width, int64_t ahead, double* sums) noexcept {
  Range range;
  for (int64_t i = 0; i < width; ++i) sums[i] = -0.0;
  for (int64_t first = 0; first < count; first += kStreams) {
    const int64_t last = count - first < kStreams ? count : first + kStreams;
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
      Doubles sum = load(sums + i);
      for (int64_t row = first; row < last; ++row) {
        __builtin_prefetch(rows[row] + i + ahead);
        sum += range.load_next<kIsAbsolute>(rows[row] + i);
      }
      std::memcpy(sums + i, &sum, sizeof sum);
    }
    for (; i < width; ++i) {
      for (int64_t row = first; row < last; ++row) sums[i] += range.next<kIsAbsolute>(rows[row][i]);
    }
  }
  return range.is_near(count);
}

// Takes the multiples of the last bit of sums[level] out of a number, which is too small to change that bit; adds them
// to the sum, and returns what is left.
template <int kLevels, class V>
[[gnu::always_inline]] inline V extract_from(V left, V* sums) noexcept {
  for (int level = 0; level < kLevels; ++level) {
    const V sum = sums[level] + left;
    left = left - (sum - sums[level]);
    sums[level] = sum;
  }
  return left;
}

[[gnu::always_inline]] inline Words word_of(Doubles number) noexcept {
  Words bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

template <int kLevels>
bool extract(const double* from, int64_t count, const double* magic, double* sums) noexcept {
  Doubles parts[kUnrolled][kLevels];
  double ends[kLevels];
  Words left[kUnrolled] = {};
  for (int level = 0; level < kLevels; ++level) {
    ends[level] = magic[level];
    for (int64_t u = 0; u < kUnrolled; ++u) parts[u][level] = magic[level] - Doubles{};
  }
  int64_t i = 0;
  for (; i + kUnrolled * kLanes <= count; i += kUnrolled * kLanes) {
    for (int64_t u = 0; u < kUnrolled; ++u) {
      left[u] |= word_of(extract_from<kLevels>(load(from + i + u * kLanes), parts[u]));
    }
  }
  int64_t any_left = 0;
  for (; i < count; ++i) any_left |= bits_of(extract_from<kLevels>(from[i], ends));
  for (int level = 0; level < kLevels; ++level) sums[level] = ends[level] - magic[level];
  for (int64_t u = 0; u < kUnrolled; ++u) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      any_left |= left[u][lane] & kSignless;  // the rest of -0.0 is -0.0
      for (int level = 0; level < kLevels; ++level) sums[level] += parts[u][level][lane] - magic[level];
    }
  }
  return any_left == 0;
}

template <int kLevels, class V, class W>
[[gnu::always_inline]] inline void extract_column(const double* const* rows, int64_t count, int64_t at,
                                                  const double* magic, double* sums, W& left) noexcept {
  constexpr int64_t kWide = sizeof(V) == sizeof(double) ? 1 : kUnrolled;
  constexpr int64_t kStep = static_cast<int64_t>(sizeof(V) / sizeof(double));
  V parts[kWide][kLevels];
  for (int level = 0; level < kLevels; ++level) {
    for (int64_t u = 0; u < kWide; ++u) parts[u][level] = magic[level] - V{};
  }
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t u = 0; u < kWide; ++u) {
      V number;
      std::memcpy(&number, rows[row] + at + u * kStep, sizeof number);
      number = extract_from<kLevels>(number, parts[u]);
      W bits;
      std::memcpy(&bits, &number, sizeof bits);
      left |= bits;
    }
  }
  for (int level = 0; level < kLevels; ++level) {
    for (int64_t u = 0; u < kWide; ++u) {
      const V sum = parts[u][level] - magic[level];
      std::memcpy(sums + level * kExactColumns + at + u * kStep, &sum, sizeof sum);
    }
  }
}

template <int kLevels>
bool extract_columns(const double* const* rows, int64_t count, int64_t width, const double* magic,
                     double* sums) noexcept {
  Words left = {};
  int64_t any_left = 0;
  int64_t i = 0;
  for (; i + kUnrolled * kLanes <= width; i += kUnrolled * kLanes) {
    extract_column<kLevels, Doubles>(rows, count, i, magic, sums, left);
  }
  for (; i < width; ++i) extract_column<kLevels, double>(rows, count, i, magic, sums, any_left);
  for (int64_t lane = 0; lane < kLanes; ++lane) any_left |= left[lane];
  return (any_left & kSignless) == 0;
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
  for (int64_t first = 0; first < count; first += kStreams) {
    const int64_t last = count - first < kStreams ? count : first + kStreams;
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
    {convert<ExactTerm::kValue, float, float>, convert<ExactTerm::kAbsolute, float, float>,
     convert<ExactTerm::kSquare, float, float>, convert<ExactTerm::kProduct, float, float>},
    {convert<ExactTerm::kValue, double, double>, convert<ExactTerm::kAbsolute, double, double>,
     convert<ExactTerm::kSquare, double, double>, convert<ExactTerm::kProduct, double, double>,
     convert<ExactTerm::kDeviation, double, double>},
    convert<ExactTerm::kDeviation, float, double>,
    {near32<false>, near32<true>},
    largest,
    {extract<1>, extract<2>, extract<3>},
    {near_columns32<false>, near_columns32<true>},
    {extract_columns<1>, extract_columns<2>, extract_columns<3>},
    cascade<float>,
    cascade<double>};

}  // namespace artifex_devices
