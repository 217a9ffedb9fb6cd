// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/heap_profile.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/wire.h"

namespace artifex_devices {
namespace {

// The numbers of each sample; the schema as a whole is tested against protobuf in Python.
std::vector<std::vector<int64_t>> values_of(const std::string& profile) {
  std::vector<std::vector<int64_t>> values;
  WireReader reader(profile, "test", "Profile");
  while (reader.next()) {
    if (reader.field() != 2) continue;
    WireReader sample = reader.message("Sample");
    std::vector<int64_t> pair;
    while (sample.next()) {
      if (sample.field() == 2) sample.numbers(pair, INT64_MAX, 9);
    }
    values.push_back(pair);
  }
  return values;
}

std::string refusal(const HeapSample& sample) {
  try {
    heap_profile({{.device = "cpu:0", .count = 1, .bytes = 1}, sample}, 0);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(HeapProfile, SumsTheArraysOfOneLineAndDevice) {
  const HeapSample one{.device = "cpu:0", .count = 1, .bytes = 100, .file = "a.py", .line = 3, .function = "f"};
  HeapSample elsewhere = one;
  elsewhere.device = "cpu:1";
  HeapSample below = one;
  below.line = 4;
  EXPECT_EQ(values_of(heap_profile({one, elsewhere, one, below, one}, 0)),
            (std::vector<std::vector<int64_t>>{{3, 300}, {1, 100}, {1, 100}}));
  EXPECT_EQ(values_of(heap_profile({}, 0)), (std::vector<std::vector<int64_t>>{}));
}

TEST(HeapProfile, RefusesProfilesThatPprofCannotRead) {
  EXPECT_EQ(refusal({.device = "cpu:0", .count = 1, .bytes = -1}),
            "heap_profile: sample 1 has 1 allocations of -1 bytes made in line 0; expected 0 or more of each");
  EXPECT_EQ(refusal({.device = "cpu:0", .file = "\xff"}),
            "heap_profile: sample 1 has text that is not UTF-8; give the names as UTF-8");
  EXPECT_EQ(refusal({.device = "cpu:0", .count = 1, .bytes = INT64_MAX}),
            "heap_profile: the samples add up to more than 2^63 - 1; give fewer");
}

}  // namespace
}  // namespace artifex_devices
