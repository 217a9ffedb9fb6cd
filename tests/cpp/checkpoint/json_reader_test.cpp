// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/json_reader.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

std::string read_string(std::string_view text) {
  JsonReader json(text, "text");
  std::string result = json.string();
  json.end();
  return result;
}

std::string fault_of_skip(std::string_view text) {
  try {
    JsonReader json(text, "text");
    json.skip();
    json.end();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(JsonReader, ReadsMembersItemsAndNumbersInOrder) {
  JsonReader json(R"( {"a" : [1, 2,30], "b": [] } )", "text");
  std::vector<std::string> found;
  json.begin_object();
  std::string name;
  for (bool first = true; json.next_member(first, name);) {
    json.begin_list();
    for (bool first_item = true; json.next_item(first_item);) found.push_back(name + std::to_string(json.integer()));
  }
  json.end();
  EXPECT_EQ(found, (std::vector<std::string>{"a1", "a2", "a30"}));
}

TEST(JsonReader, ReadsEscapesAsUtf8) {
  EXPECT_EQ(read_string(R"("a\"\\\/\n\tA")"), "a\"\\/\n\tA");
  EXPECT_EQ(read_string(R"("\u00e9\u20ac\ud83d\ude00")"), "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(JsonReader, WrittenStringsAreReadBack) {
  const std::string text = "a\"b\\c\x01\n\xC3\xA9";
  EXPECT_EQ(json_string(text), "\"a\\\"b\\\\c\\u0001\\u000a\xC3\xA9\"");
  EXPECT_EQ(read_string(json_string(text)), text);
}

TEST(JsonReader, EveryFaultNamesItsByte) {
  EXPECT_EQ(fault_of_skip("{\"a\" 1}"), "text: the JSON is not valid at byte 5: expected ':'");
  EXPECT_EQ(fault_of_skip("[1,]"), "text: the JSON is not valid at byte 3: expected a value");
  EXPECT_EQ(fault_of_skip("[1 2]"), "text: the JSON is not valid at byte 3: expected ','");
  EXPECT_EQ(fault_of_skip("\"a"), "text: the JSON is not valid at byte 2: expected the end of a string");
  EXPECT_EQ(fault_of_skip("\"\\ud800\""),
            "text: the JSON is not valid at byte 7: expected the second half of a surrogate pair");
  EXPECT_EQ(fault_of_skip("\"\xFF\""), "text: the JSON is not valid at byte 3: expected UTF-8");
  EXPECT_EQ(fault_of_skip("1 1"), "text: the JSON is not valid at byte 2: expected the end");
  EXPECT_EQ(fault_of_skip(std::string(40, '[')),
            "text: the JSON is not valid at byte 32: expected at most 32 levels of nesting");
}

TEST(JsonReader, NumbersAreIntegersOf63Bits) {
  EXPECT_EQ(JsonReader("9223372036854775807", "text").integer(), INT64_MAX);
  for (const char* text : {"9223372036854775808", "-1", "1.5", "1e3", "01", "x", ""}) {
    EXPECT_THROW(JsonReader(text, "text").integer(), InvalidArgument) << text;
  }
}

}  // namespace
}  // namespace artifex_devices
