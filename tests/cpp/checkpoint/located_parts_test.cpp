// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/located_parts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/checkpoint/read_boxes.h"

namespace artifex_devices {
namespace {

namespace fs = std::filesystem;

/// Two files of 100 bytes: the first has the values 0 to 99, the second 100 to 199.
class LocatedPartsTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("located_parts_" + std::to_string(::getpid()));
    fs::create_directory(root_);
    for (int file = 0; file < 2; ++file) {
      paths_.push_back(root_ / std::to_string(file));
      std::string text(100, '\0');
      std::iota(text.begin(), text.end(), static_cast<char>(100 * file));
      std::ofstream(paths_.back()) << text;
    }
  }
  void TearDown() override { fs::remove_all(root_); }

  static LocatedPart part(Dims origin, Dims shape, size_t file, int64_t begin, Dims array = {4, 6}) {
    return {"w", DType::kUInt8, std::move(array), {std::move(origin), std::move(shape)}, file, begin};
  }

  std::string fault(const std::vector<LocatedPart>& parts) const {
    try {
      checkpoint_of_parts(paths_, parts, "load");
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  }

  static std::vector<uint8_t> read(const StoredCheckpoint& found, const IndexDomain& box) {
    std::vector<uint8_t> out(static_cast<size_t>(box.volume()));
    ReadRequest request = found.request(0);
    request.destinations.push_back({box, reinterpret_cast<std::byte*>(out.data()), row_major_strides(box.shape, 1)});
    std::vector<ReadRequest> requests;
    requests.push_back(std::move(request));
    read_boxes(found.files, std::move(requests), {.operation = "read"});
    return out;
  }

  fs::path root_;
  std::vector<std::string> paths_;
};

TEST_F(LocatedPartsTest, ABoxIsReadFromThePartsThatItTouches) {
  // Rows 0 and 1 are at byte 10 of the first file; the left and the right half of rows 2 and 3 in the second file.
  const StoredCheckpoint found = checkpoint_of_parts(
      paths_, {part({0, 0}, {2, 6}, 0, 10), part({2, 0}, {2, 3}, 1, 0), part({2, 3}, {2, 3}, 1, 50)}, "load");
  ASSERT_EQ(found.arrays.size(), 1U);
  EXPECT_EQ(found.arrays[0].shape, (Dims{4, 6}));
  EXPECT_EQ(read(found, {{1, 2}, {2, 2}}), (std::vector<uint8_t>{18, 19, 102, 150}));
  EXPECT_EQ(read(found, {{3, 0}, {1, 6}}), (std::vector<uint8_t>{103, 104, 105, 153, 154, 155}));
}

TEST_F(LocatedPartsTest, ErrorsOfAReadNameTheReadAndTheFile) {
  const StoredCheckpoint found = checkpoint_of_parts(paths_, {part({0, 0}, {4, 6}, 1, 60)}, "load");
  fs::resize_file(paths_[1], 70);
  try {
    read(found, {{0, 0}, {4, 6}});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()).find("read: " + paths_[1] + " ends at byte 70"), 0U) << error.what();
  }
}

TEST_F(LocatedPartsTest, RefusesPartsThatAreNotWithinTheirFileAndArray) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t begin : {int64_t{-1}, int64_t{77}, kMost}) {
    EXPECT_NE(fault({part({0, 0}, {4, 6}, 0, begin)}).find("end after the 100 bytes of the file"), std::string::npos);
  }
  for (const LocatedPart& wrong :
       {part({1, 0}, {4, 6}, 0, 0), part({-1, 0}, {4, 6}, 0, 0), part({kMost, 0}, {4, 6}, 0, 0),
        part({0, 0}, {-1, 6}, 0, 0), part({0}, {24}, 0, 0), part({0, 0}, {4}, 0, 0)}) {
    EXPECT_NE(fault({wrong}).find("expected a part of shape (4, 6)"), std::string::npos);
  }
  EXPECT_NE(fault({part({0, 0}, {4, kMost}, 0, 0, {4, kMost})}), "");
}

TEST_F(LocatedPartsTest, EachElementIsInOnePart) {
  EXPECT_NE(fault({part({0, 0}, {3, 6}, 0, 0)}).find("'w' has 18 bytes in the files; expected 24"), std::string::npos);
  EXPECT_NE(fault({part({0, 0}, {3, 6}, 0, 0), part({2, 0}, {2, 6}, 0, 0)}).find("two stored parts of w overlap"),
            std::string::npos);
  EXPECT_NE(fault({part({0, 0}, {2, 6}, 0, 0), part({2, 0}, {2, 6}, 0, 0, {5, 6})}).find("several shapes or dtypes"),
            std::string::npos);
  EXPECT_EQ(fault({part({0, 0}, {0, 6}, 0, 100, {0, 6})}), "");
}

}  // namespace
}  // namespace artifex_devices
