// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/select_elements.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <vector>

#include "artifex_devices/base/stream_copy.h"

namespace artifex_devices {
namespace {

template <class T>
void check(T seed) {
  for (const size_t elements : {size_t{1}, size_t{33}, size_t{9001}}) {
    std::vector<T> a(elements);
    std::vector<T> b(elements);
    std::vector<uint8_t> condition(elements);
    for (size_t i = 0; i < elements; ++i) {
      a[i] = static_cast<T>(seed + static_cast<T>(static_cast<uint8_t>(i)));
      b[i] = static_cast<T>(seed - static_cast<T>(static_cast<uint8_t>(i)));
      condition[i] = static_cast<uint8_t>(i * i % 7 % 3);  // 2 is true as well
    }
    for (const bool one_is_one : {false, true}) {
      for (const bool other_is_one : {false, true}) {
        for (const bool stream : {false, true}) {
          std::vector<T> out(elements + 1, seed);
          ASSERT_TRUE(select_elements(out.data(), condition.data(), {a.data(), one_is_one}, {b.data(), other_is_one},
                                      static_cast<int64_t>(elements), sizeof(T), stream));
          stream_fence();
          for (size_t i = 0; i < elements; ++i) {
            const T expected = condition[i] != 0 ? a[one_is_one ? 0 : i] : b[other_is_one ? 0 : i];
            ASSERT_EQ(out[i], expected) << "element " << i << " of " << elements;
          }
          ASSERT_EQ(out[elements], seed);  // nothing is written beyond
        }
      }
    }
  }
}

TEST(Select, TakesEachElementFromEitherInput) {
  check<uint8_t>(100);
  check<uint16_t>(40000);
  check<float>(1.5F);
  check<double>(-2.25);
  check<std::complex<double>>({3.0, -1.0});
}

TEST(Select, RefusesOtherItemSizes) {
  uint8_t byte = 7;
  EXPECT_FALSE(select_elements(&byte, &byte, {&byte, true}, {&byte, true}, 1, 3, false));
  EXPECT_EQ(byte, 7);
}

}  // namespace
}  // namespace artifex_devices
