// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/measure/stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace artifex_devices {
namespace {

constexpr size_t kCount = 1024;

struct alignas(64) Line {
  double elements[8];
};

TEST(Stream, WritesExactlyTheResultOfEachLoop) {
  std::vector<Line> a(kCount / 8), b(kCount / 8);
  for (size_t i = 0; i < kCount; ++i) {
    a[i / 8].elements[i % 8] = static_cast<double>(i);
    b[i / 8].elements[i % 8] = 1000.0 - static_cast<double>(i);
  }
  for (const StreamKernel kernel : kStreamKernels) {
    SCOPED_TRACE(to_string(kernel));
    std::vector<Line> c(kCount / 8 + 1, Line{{-1, -1, -1, -1, -1, -1, -1, -1}});
    run_stream(kernel, a[0].elements, b[0].elements, c[0].elements, kCount);
    const bool copies = kernel == StreamKernel::kCopy || kernel == StreamKernel::kCopyStreaming;
    for (size_t i = 0; i < kCount; ++i) {
      const double expected =
          copies ? static_cast<double>(i) : static_cast<double>(i) + 3 * (1000.0 - static_cast<double>(i));
      ASSERT_EQ(c[i / 8].elements[i % 8], expected) << i;
    }
    EXPECT_EQ(c.back().elements[0], -1);
  }
}

TEST(Stream, CountsBytesAsTheStreamBenchmark) {
  EXPECT_EQ(stream_bytes_per_element(StreamKernel::kCopy), 16);
  EXPECT_EQ(stream_bytes_per_element(StreamKernel::kCopyStreaming), 16);
  EXPECT_EQ(stream_bytes_per_element(StreamKernel::kTriad), 24);
  EXPECT_EQ(stream_bytes_per_element(StreamKernel::kTriadStreaming), 24);
  EXPECT_EQ(to_string(StreamKernel::kTriadStreaming), "triad, streaming stores");
  EXPECT_EQ(to_string(static_cast<StreamKernel>(9)), "unknown");
}

}  // namespace
}  // namespace artifex_devices
