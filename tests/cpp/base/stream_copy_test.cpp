// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/stream_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "byte_array.h"

namespace artifex_devices {
namespace {

TEST(StreamCopy, CopiesExactlyEveryLengthAtEveryAlignment) {
  test::ByteArray from(1024);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31 + 1);
  for (int64_t shift = 0; shift < 64; shift += 7) {
    for (const int64_t bytes : {0, 1, 63, 64, 65, 127, 128, 129, 200, 256, 300, 512, 700}) {
      test::ByteArray to(1024, std::byte{0});
      test::ByteArray expected = to;
      std::copy(from.begin() + 3, from.begin() + 3 + bytes, expected.begin() + shift);
      stream_copy(to.data() + shift, from.data() + 3, bytes);
      stream_fence();
      ASSERT_EQ(to, expected) << "shift " << shift << " bytes " << bytes;
    }
  }
}

}  // namespace
}  // namespace artifex_devices
