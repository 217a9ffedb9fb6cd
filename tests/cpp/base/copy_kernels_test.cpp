// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/copy_kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "artifex_devices/base/isa.h"
#include "byte_array.h"

namespace artifex_devices {
namespace {

using test::ByteArray;

/// The sets that this processor runs, each chosen in turn.
class CopyKernelsTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    before_ = active_isa();
    set_active_isa(to_string(GetParam()), "test");
  }
  void TearDown() override { set_active_isa(to_string(before_), "test"); }

 private:
  Isa before_{};
};

ByteArray random_bytes(int64_t count) {
  std::mt19937_64 random(5);
  return test::random_bytes(random, count);
}

TEST_P(CopyKernelsTest, CopiesRunsOfEveryLengthAndStride) {
  for (const int64_t run :
       {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 129, 300}) {
    for (const int64_t step : {-3, -2, -1, 0, 1, 2, 3, 4, 5, 64}) {
      for (const int64_t extra : {0, 5}) {
        for (const int64_t count : {0, 1, 2, 15, 16, 17, 33, 64, 67, 130, 200}) {
          for (const int64_t ahead : {0, 4096}) {
            const int64_t s_stride = step * run;
            const int64_t d_stride = run + extra;
            // Nothing behind the last unit may be read: it is the end of the memory, which the sanitizers watch.
            const int64_t span = count > 0 ? (count - 1) * std::abs(s_stride) + run : 0;
            const ByteArray source = random_bytes(span);
            const std::byte* const from = source.data() + (s_stride < 0 && count > 0 ? span - run : 0);
            ByteArray to(static_cast<size_t>(count * d_stride + 70), std::byte{0x5A});
            ByteArray expected = to;
            for (int64_t i = 0; i < count; ++i) {
              std::memcpy(expected.data() + 3 + i * d_stride, from + i * s_stride, static_cast<size_t>(run));
            }
            copy_kernels().copy_runs(to.data() + 3, d_stride, from, s_stride, run, count, ahead);
            ASSERT_EQ(to, expected) << "run " << run << " step " << step << " extra " << extra << " count " << count;
          }
        }
      }
    }
  }
}

TEST_P(CopyKernelsTest, CopiesLinesAsMemcpy) {
  const ByteArray source = random_bytes(64 * 64);
  alignas(64) std::byte to[64 * 40];
  for (const int64_t lines : {0, 1, 2, 3, 4, 5, 7, 31}) {
    for (const std::byte* ahead : {static_cast<const std::byte*>(nullptr), source.data() + 1000}) {
      std::memset(to, 0x5A, sizeof(to));
      copy_kernels().stream_lines(to + 64, source.data() + 13, lines, ahead);
      ASSERT_EQ(std::memcmp(to + 64, source.data() + 13, static_cast<size_t>(lines * 64)), 0) << lines;
      ASSERT_EQ(to[63], std::byte{0x5A});
      ASSERT_EQ(to[64 + lines * 64], std::byte{0x5A});
    }
  }
}

TEST_P(CopyKernelsTest, TransposesAsALoop) {
  for (const int64_t unit : {1, 2, 4, 8, 16}) {
    for (const int64_t rows : {1, 2, 3, 4, 8, 16, 17, 33, 64, 130}) {
      for (const int64_t columns : {1, 2, 8, 16, 31, 64, 66, 131}) {
        const int64_t stride = columns * unit + (rows % 2 == 0 ? 0 : 5);
        const ByteArray source = random_bytes((rows - 1) * stride + columns * unit);
        ByteArray to(static_cast<size_t>(rows * columns * unit + 1), std::byte{0x5A});
        ByteArray expected = to;
        for (int64_t c = 0; c < columns; ++c) {
          for (int64_t r = 0; r < rows; ++r) {
            std::memcpy(expected.data() + (c * rows + r) * unit, source.data() + r * stride + c * unit,
                        static_cast<size_t>(unit));
          }
        }
        copy_kernels().transpose(to.data(), source.data(), stride, rows, columns, unit, 0);
        ASSERT_EQ(to, expected) << "unit " << unit << " rows " << rows << " columns " << columns;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, CopyKernelsTest, testing::ValuesIn(supported_isas()),
                         [](const auto& each) { return std::string(to_string(each.param)); });

}  // namespace
}  // namespace artifex_devices
