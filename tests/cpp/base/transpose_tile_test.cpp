// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/transpose_tile.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "byte_array.h"

namespace artifex_devices {
namespace {

TEST(TransposeTile, TransposesRowsToColumns) {
  const int32_t from[] = {1, 2, 3, 4, 5, 6};
  int32_t to[6] = {};
  transpose_tile(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), 12, 2, 3, 4);
  EXPECT_EQ(std::vector<int32_t>(to, to + 6), (std::vector<int32_t>{1, 4, 2, 5, 3, 6}));
}

TEST(TransposeTile, EqualsAnElementLoopForEveryUnitAndShape) {
  for (const int64_t unit : {1, 2, 3, 4, 8, 12, 16, 24}) {
    for (const int64_t rows : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 70}) {
      for (const int64_t columns : {1, 3, 4, 8, 16, 19, 32, 65}) {
        for (const int64_t sign : {1, -1}) {
          const int64_t stride = columns * unit + 5;
          test::ByteArray memory(static_cast<size_t>(rows * stride));
          for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7919 >> 5);
          const std::byte* const from = memory.data() + (sign < 0 ? (rows - 1) * stride : 0);
          const auto bytes = static_cast<size_t>(rows * columns * unit);
          test::ByteArray to(bytes + 1, std::byte{0x5A});
          test::ByteArray expected = to;
          for (int64_t c = 0; c < columns; ++c) {
            for (int64_t r = 0; r < rows; ++r) {
              std::memcpy(&expected[static_cast<size_t>((c * rows + r) * unit)], from + sign * r * stride + c * unit,
                          static_cast<size_t>(unit));
            }
          }
          transpose_tile(to.data(), from, sign * stride, rows, columns, unit);
          ASSERT_EQ(to, expected) << "unit " << unit << " rows " << rows << " columns " << columns << " sign " << sign;
        }
      }
    }
  }
}

}  // namespace
}  // namespace artifex_devices
