// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/streamed_boxes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/base/file.h"
#include "artifex_devices/checkpoint/boxes.h"
#include "artifex_devices/checkpoint/crc32c.h"
#include "artifex_devices/checkpoint/safetensors.h"
#include "artifex_devices/checkpoint/streamed_file.h"

namespace artifex_devices {
namespace {

namespace fs = std::filesystem;
using Tensor = StreamedBoxes::Tensor;

std::string random_text(std::mt19937_64& random, int64_t bytes) {
  std::string text(static_cast<size_t>(bytes + 8), '\0');
  for (size_t i = 0; i + 8 <= text.size(); i += 8) {
    const uint64_t word = random();
    std::memcpy(text.data() + i, &word, 8);
  }
  text.resize(static_cast<size_t>(bytes));
  return text;
}

/// Boxes of 0 to 3 pieces: of rank 0, without elements, and of rows that are longer than a piece.
std::vector<Tensor> random_tensors(std::mt19937_64& random) {
  std::vector<Tensor> tensors;
  const int64_t count = 1 + static_cast<int64_t>(random() % 5);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t large = static_cast<int64_t>(random() % 3 * 900'000 + random() % 1000);
    const std::vector<Dims> shapes{{}, {large}, {3, large / 3}, {large / 5, 5}, {2, 0, 7}, {2, large / 6, 3}};
    Tensor tensor{.name = "w" + std::to_string(i),
                  .dtype = random() % 2 ? DType::kUInt8 : DType::kInt16,
                  .global_shape = {},
                  .box = {{}, shapes[random() % shapes.size()]}};
    for (const int64_t size : tensor.box.shape) {
      tensor.box.origin.push_back(static_cast<int64_t>(random() % 3));
      tensor.global_shape.push_back(tensor.box.origin.back() + size + static_cast<int64_t>(random() % 3));
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

int64_t bytes_of(const Tensor& tensor) { return tensor.box.volume() * itemsize(tensor.dtype); }

/// The header with the checksums of `data`, which begins with the first box.
std::string expected_header(std::vector<Tensor> tensors, const std::string& data) {
  size_t at = 0;
  std::vector<NewTensor> rows;
  for (Tensor& tensor : tensors) {
    const PieceGrid grid(tensor.box.shape, itemsize(tensor.dtype));
    for (int64_t i = 0; i < grid.count(); ++i) {
      const size_t size = static_cast<size_t>(grid.piece(i).volume() * itemsize(tensor.dtype));
      tensor.checksums.push_back(crc32c_by_table(data.data() + at, size));
      at += size;
    }
    rows.push_back({tensor.name, tensor.dtype, tensor.box, tensor.global_shape, bytes_of(tensor), tensor.checksums});
  }
  EXPECT_EQ(at, data.size());
  return format_safetensors(rows);
}

int64_t total_of(const std::vector<Tensor>& tensors) {
  int64_t total = 0;
  for (const Tensor& tensor : tensors) total += bytes_of(tensor);
  return total;
}

const std::byte* bytes_at(const std::string& text, int64_t at) {
  return reinterpret_cast<const std::byte*>(text.data()) + at;
}

TEST(StreamedBoxes, ChecksumsDoNotDependOnTheSizesOfWhatIsAdded) {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 6; ++turn) {
    const std::vector<Tensor> tensors = random_tensors(random);
    const std::string data = random_text(random, total_of(tensors));
    const int64_t size = static_cast<int64_t>(data.size());
    StreamedBoxes boxes(tensors);
    const size_t header_bytes = boxes.header().size();
    for (int64_t at = 0; at < size;) {
      const int64_t most = random() % 4 ? int64_t{3} << 19 : int64_t{1} << 12;
      const int64_t bytes = std::min(static_cast<int64_t>(random() % static_cast<uint64_t>(most)), size - at);
      boxes.add(bytes_at(data, at), bytes);  // also 0 bytes
      at += bytes;
    }
    EXPECT_EQ(boxes.header(), expected_header(tensors, data));
    EXPECT_EQ(boxes.header().size(), header_bytes);
  }
}

TEST(StreamedBoxes, AFileHasTheBoxesBehindTheHeaderWithTheirChecksums) {
  std::mt19937_64 random(2);
  const fs::path path = fs::path(testing::TempDir()) / ("streamed_boxes_" + std::to_string(::getpid()));
  const std::vector<Tensor> tensors = random_tensors(random);
  const std::string data = random_text(random, total_of(tensors));
  StreamedBoxes boxes(tensors);
  const int64_t head = static_cast<int64_t>(boxes.header().size());
  {
    StreamedFile file(path, "save", head);
    for (int64_t at = 0; at < static_cast<int64_t>(data.size());) {
      const int64_t bytes = std::min(int64_t{777'777}, static_cast<int64_t>(data.size()) - at);
      boxes.add(bytes_at(data, at), bytes);
      file.write(bytes_at(data, at), bytes);
      at += bytes;
    }
    file.finish(boxes.header());
  }
  EXPECT_EQ(read_regular_file(path, int64_t{1} << 30, "test"), expected_header(tensors, data) + data);
  const std::vector<StoredTensor> found = read_safetensors(File::open(path, "test"), "test");
  ASSERT_EQ(found.size(), tensors.size());
  int64_t begin = head;
  for (const Tensor& tensor : tensors) {
    const auto same = std::ranges::find(found, tensor.name, &StoredTensor::name);
    ASSERT_NE(same, found.end());
    EXPECT_EQ(same->origin, tensor.box.origin);
    EXPECT_EQ(same->shape, tensor.box.shape);
    EXPECT_EQ(same->global_shape, tensor.global_shape);
    EXPECT_EQ(same->begin, begin);
    EXPECT_EQ(same->end, begin += bytes_of(tensor));
  }
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_THROW(read_safetensors(File::open(path, "test"), "test"), InvalidArgument);
  fs::remove(path);
}

TEST(StreamedBoxes, MissingBytesLeaveTheChecksumsOfOtherBoxesRight) {
  const std::vector<Tensor> tensors{{.name = "a", .dtype = DType::kUInt8, .global_shape = {4}, .box = {{0}, {4}}},
                                    {.name = "b", .dtype = DType::kUInt8, .global_shape = {3}, .box = {{0}, {3}}}};
  StreamedBoxes boxes(tensors);
  const std::string data = "abcdef";
  boxes.add(bytes_at(data, 0), 6);
  std::vector<Tensor> expected = tensors;
  const std::vector<uint32_t> sums[] = {{crc32c_by_table("abcd", 4)}, {crc32c_by_table("ef", 2)}};
  const NewTensor rows[] = {{"a", DType::kUInt8, tensors[0].box, {4}, 4, sums[0]},
                            {"b", DType::kUInt8, tensors[1].box, {3}, 3, sums[1]}};
  EXPECT_EQ(boxes.header(), format_safetensors(rows));
}

TEST(StreamedBoxes, BytesBehindTheLastBoxAreIgnored) {
  StreamedBoxes none({});
  StreamedBoxes one({{.name = "a", .dtype = DType::kUInt8, .global_shape = {2}, .box = {{0}, {2}}}});
  const std::string data = "abcdef";
  none.add(bytes_at(data, 0), 6);
  one.add(bytes_at(data, 0), 6);
  EXPECT_EQ(none.header(), format_safetensors({}));
  EXPECT_EQ(one.header(),
            expected_header({{.name = "a", .dtype = DType::kUInt8, .global_shape = {2}, .box = {{0}, {2}}}}, "ab"));
}

}  // namespace
}  // namespace artifex_devices
