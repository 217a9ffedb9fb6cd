// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/weight_index.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

std::string refusal_of_index(std::string_view text) {
  try {
    parse_weight_index(text, "index");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(WeightIndex, HasTheFileOfEachTensorAndTheSumOfTheirBytes) {
  const WeightIndex index = parse_weight_index(
      R"({"metadata": {"total_size": 1.5e3, "by": ["x"]}, "weight_map": {"b": "2.safetensors", "a": "1.safetensors"}})",
      "index");
  EXPECT_EQ(index.files, (std::map<std::string, std::string>{{"a", "1.safetensors"}, {"b", "2.safetensors"}}));
  EXPECT_EQ(index.total_size, 1500);
}

TEST(WeightIndex, NeedNotStateTheSum) {
  EXPECT_EQ(parse_weight_index(R"({"weight_map": {}})", "index").total_size, std::nullopt);
  EXPECT_EQ(parse_weight_index(R"({"metadata": null, "weight_map": {}})", "index").total_size, std::nullopt);
  EXPECT_EQ(parse_weight_index(R"({"metadata": {"total_size": "1"}, "weight_map": {}})", "index").total_size,
            std::nullopt);
}

TEST(WeightIndex, NamesTheFault) {
  EXPECT_NE(refusal_of_index("[]").find("index: the JSON is not valid at byte 0"), std::string::npos);
  EXPECT_NE(refusal_of_index("{}").find("index: it has no \"weight_map\""), std::string::npos);
  EXPECT_NE(refusal_of_index(R"({"weight_map": {"a": "b/c.safetensors"}})").find("names the file 'b/c.safetensors'"),
            std::string::npos);
  EXPECT_NE(refusal_of_index(R"({"weight_map": {"a\u001b": "x.safetensors", "a\u001b": "x.safetensors"}})")
                .find(R"(it lists 'a\x1b' twice)"),
            std::string::npos);
}

}  // namespace
}  // namespace artifex_devices
