// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

std::vector<StoredTensor> parse(std::string_view header, int64_t data_bytes) {
  return parse_safetensors(header, 8 + static_cast<int64_t>(header.size()) + data_bytes, "file");
}

std::string fault(std::string_view header, int64_t data_bytes) {
  try {
    parse(header, data_bytes);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Safetensors, ReadsWhatItWrites) {
  const std::vector<uint32_t> checksums{0x01234567};
  const NewTensor tensors[] = {
      {"layers.0.\"w\"", DType::kBFloat16, {{2, 0}, {2, 3}}, {4, 3}, 12, checksums},
      {"z", DType::kComplex64, {{1}, {2}}, {3}, 16, checksums},
      {"empty", DType::kInt4, {{0, 0}, {0, 3}}, {0, 3}, 0, {}},
  };
  const std::string bytes = format_safetensors(tensors);
  EXPECT_EQ(bytes.size(), 4096U);
  const auto found = parse_safetensors(std::string_view(bytes).substr(8), 4096 + 28, "file");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, "layers.0.\"w\"");
  EXPECT_EQ(found[0].type, "BF16");
  EXPECT_EQ(found[0].shape, (Dims{2, 3}));
  EXPECT_EQ(found[0].origin, (Dims{2, 0}));
  EXPECT_EQ(found[0].global_shape, (Dims{4, 3}));
  EXPECT_EQ(found[0].checksums, checksums);
  EXPECT_EQ(found[0].begin, 4096);
  EXPECT_EQ(found[0].end, 4108);
  EXPECT_EQ(found[1].type, "F32");
  EXPECT_EQ(found[1].shape, (Dims{2, 2}));
  EXPECT_EQ(found[1].origin, (Dims{1, 0}));
  EXPECT_EQ(found[1].global_shape, (Dims{3, 2}));
  EXPECT_EQ(found[2].type, "U8");
  EXPECT_EQ(found[2].shape, (Dims{0, 3}));
}

TEST(Safetensors, EveryDtypeHasATypeOfItsSize) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const StoredType type = stored_type(dtype);
    ASSERT_TRUE(dtype_of_stored(type.name)) << name(dtype);
    EXPECT_EQ(itemsize(*dtype_of_stored(type.name)) * (type.is_pair ? 2 : 1), itemsize(dtype)) << name(dtype);
  }
  EXPECT_EQ(dtype_of_stored("F4"), std::nullopt);
}

TEST(Safetensors, ATensorOfAnUnknownTypeIsListed) {
  const auto found = parse(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].type, "F4");
}

TEST(Safetensors, EveryFaultOfAHeaderIsAnError) {
  const std::string tail = "; the file is damaged or not a safetensors file";
  EXPECT_EQ(fault(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,4]}})", 3),
            "file: bytes 0 to 4 of tensor a are outside the 3 bytes of data" + tail);
  EXPECT_EQ(fault(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[2,1]}})", 3),
            "file: bytes 2 to 1 of tensor a are outside the 3 bytes of data" + tail);
  EXPECT_EQ(fault(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,4]}})", 4),
            "file: tensor a of shape (3,) and type F32 has 4 bytes" + tail);
  EXPECT_EQ(fault(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", 4),
            "file: tensor a of shape (4611686018427387904, 4) and type F32 has 4 bytes" + tail);
  EXPECT_EQ(
      fault(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          2),
      "file: tensor a occurs twice" + tail);
  EXPECT_EQ(
      fault(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          3),
      "file: tensors overlap or leave a gap at byte 115" + tail);
  EXPECT_EQ(fault(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3),
            "file: the tensors end at byte 63 of 64" + tail);
  EXPECT_EQ(
      fault(R"({"a":{"dtype":"U8","shape":[1]}})", 0),
      "file: the JSON is not valid at byte 31: expected a tensor with dtype, shape and two data_offsets before this");
  EXPECT_EQ(fault(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"__metadata__":{"DCP_SHARDING_INFO":)"
                  R"("{\"a\":{\"saved_offsets\":[5],\"global_shape\":[5]}}"}})",
                  1),
            "file: tensor a of shape (1,) does not fit at (5,) into (5,)" + tail);
  EXPECT_EQ(fault(R"({"__metadata__":{"DCP_SHARDING_INFO":"[]"}})", 0),
            "file: DCP_SHARDING_INFO: the JSON is not valid at byte 0: expected '{'");
  EXPECT_EQ(
      fault(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"__metadata__":{"CRC32C":"{\"a\":\"12\"}"}})", 1),
      "file: tensor a has 2 digits of checksums; expected 8 for 1 pieces" + tail);
}

}  // namespace
}  // namespace artifex_devices
