// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/stored_checkpoint.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

std::string document(std::string_view arrays, std::string_view more = R"(,"values":{})") {
  return std::string(R"({"format":"artifex_devices.checkpoint","version":1,"process_count":2,"arrays":)")
      .append(arrays)
      .append(more)
      .append("}");
}

std::string fault(std::string_view text) {
  try {
    parse_manifest(text, "file");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Manifest, HasArraysAndTheTextOfValues) {
  const std::string text =
      document(R"({"w":{"shape":[8, 0],"dtype":"bfloat16"},"b":{"dtype":"int4","shape":[]}})",
               R"(,"values": {"step": {"type": "int", "text": "0x3e8"}}, "paths": {"a.b": ["a", "b"]} )");
  const Manifest found = parse_manifest(text, "file");
  EXPECT_EQ(found.process_count, 2);
  ASSERT_EQ(found.arrays.size(), 2U);
  EXPECT_EQ(found.arrays[0].name, "w");
  EXPECT_EQ(found.arrays[0].shape, (Dims{8, 0}));
  EXPECT_EQ(found.arrays[0].dtype, DType::kBFloat16);
  EXPECT_EQ(found.arrays[1].dtype, DType::kInt4);
  EXPECT_TRUE(found.arrays[1].shape.empty());
  EXPECT_EQ(found.values, R"({"step": {"type": "int", "text": "0x3e8"}})");
  EXPECT_EQ(found.paths, R"({"a.b": ["a", "b"]})");
}

TEST(Manifest, MembersMayHaveAnyOrder) {
  const Manifest found = parse_manifest(
      R"({"values":{},"later":[1],"arrays":{"w":{"shape":[3],"dtype":"int8"}},"process_count":1,"version":1,)"
      R"("format":"artifex_devices.checkpoint"})",
      "file");
  ASSERT_EQ(found.arrays.size(), 1U);
  EXPECT_EQ(found.arrays[0].shape, (Dims{3}));
}

TEST(Manifest, NamesTheFault) {
  EXPECT_NE(fault("").find("file: the JSON is not valid at byte 0"), std::string::npos);
  EXPECT_NE(fault("{}").find("file: the file does not have the format artifex_devices.checkpoint"), std::string::npos);
  EXPECT_NE(fault(R"({"arrays":5,"format":"artifex_devices.checkpoint","version":2})")
                .find("has version 2; expected at most 1; update with"),
            std::string::npos);
  EXPECT_NE(fault(document("{}", "")).find("`arrays` or `values` is missing"), std::string::npos);
  EXPECT_NE(fault(document("{}", R"(,"values":[])")).find("`arrays` or `values` is missing"), std::string::npos);
  EXPECT_NE(fault(document(R"({"w":{"shape":[1],"dtype":"object"}})")).find("the array \"w\" has no shape, or an"),
            std::string::npos);
  EXPECT_NE(fault(document(R"({"w":{"shape":[-1],"dtype":"int8"}})")).find("expected a number from 0"),
            std::string::npos);
  EXPECT_NE(fault(R"({"format":"artifex_devices.checkpoint","version":1,"arrays":{},"values":{}})")
                .find("`process_count` is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace artifex_devices
