// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/data/file_rows.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "artifex_devices/base/file.h"

namespace artifex_devices {
namespace {

constexpr int64_t kOffset = 24;  // bytes before row 0

/// A file in memory whose rows are `width` copies of their number.
class NumberedRows {
 public:
  NumberedRows(int64_t count, int64_t width) : descriptor_(::memfd_create("rows", 0)), width_(width) {
    std::vector<int64_t> values(static_cast<size_t>(kOffset / 8 + count * width), -1);
    for (int64_t i = 0; i < count * width; ++i) values[static_cast<size_t>(kOffset / 8 + i)] = i / width;
    const auto bytes = static_cast<ssize_t>(values.size() * 8);
    EXPECT_EQ(::write(descriptor_, values.data(), values.size() * 8), bytes);
  }
  NumberedRows(const NumberedRows&) = delete;
  NumberedRows& operator=(const NumberedRows&) = delete;
  ~NumberedRows() { ::close(descriptor_); }

  /// Reads rows; returns their numbers as the file has them, nothing at the end of the file.
  std::vector<int64_t> read(const std::vector<int64_t>& numbers) const {
    std::vector<int64_t> values(numbers.size() * static_cast<size_t>(width_), -2);
    const FileRows rows = {.descriptor = descriptor_, .offset = kOffset, .bytes = width_ * 8};
    if (!read_rows(rows, numbers, reinterpret_cast<std::byte*>(values.data()))) return {};
    std::vector<int64_t> found;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto row = std::span(values).subspan(i * static_cast<size_t>(width_), static_cast<size_t>(width_));
      EXPECT_TRUE(std::ranges::all_of(row, [&](int64_t value) { return value == row.front(); }));
      found.push_back(row.front());
    }
    return found;
  }

 private:
  int descriptor_;
  int64_t width_;
};

TEST(FileRows, AreReadAcrossGapsOfEachSize) {
  const NumberedRows file(30000, 3);
  const std::vector<int64_t> numbers = {0, 1, 2, 5, 9, 9 + 2730, 9 + 2730 + 2731, 20000, 29999};
  EXPECT_EQ(file.read(numbers), numbers);
}

TEST(FileRows, AreMoreThanOneCallTakes) {
  const NumberedRows file(6000, 2);
  std::vector<int64_t> all(6000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(file.read(all), all);
  std::vector<int64_t> odd(3000);
  for (size_t i = 0; i < odd.size(); ++i) odd[i] = static_cast<int64_t>(2 * i + 1);
  EXPECT_EQ(file.read(odd), odd);
}

TEST(FileRows, EndWithTheFile) {
  const NumberedRows file(10, 2);
  EXPECT_EQ(file.read({9}), std::vector<int64_t>{9});
  EXPECT_TRUE(file.read({9, 10}).empty());
  EXPECT_TRUE(file.read({1000}).empty());
  EXPECT_TRUE(file.read({}).empty());
}

TEST(FileRows, AnErrorOfTheSystemIsReported) {
  std::byte out[8];
  const std::vector<int64_t> numbers = {0};
  EXPECT_THROW(read_rows({.descriptor = -1, .offset = 0, .bytes = 8}, numbers, out), FileError);
  EXPECT_TRUE(read_rows({.descriptor = -1, .offset = 0, .bytes = 0}, numbers, out));
}

}  // namespace
}  // namespace artifex_devices
