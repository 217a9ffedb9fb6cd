// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/wire.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

using namespace std::string_literals;

// Reads all of the fields, and what it says instead.
std::string fault_of(const std::string& bytes) {
  try {
    WireReader reader(bytes, "load", "Point");
    while (reader.next()) {
    }
    return "(none)";
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    const size_t begin = text.find("Point: ") + 7;
    return text.substr(begin, text.find("; expected") - begin);
  }
}

WireReader at_first(const std::string& bytes) {
  WireReader reader(bytes, "load", "Point");
  EXPECT_TRUE(reader.next());
  return reader;
}

TEST(WireWriter, MatchesTheExamplesOfTheProtobufGuide) {
  WireWriter inner;
  inner.add_number(1, 150);
  EXPECT_EQ(inner.bytes(), "\x08\x96\x01");
  WireWriter writer;
  writer.add_text(2, "testing");
  writer.add_item(3, inner);
  writer.add_packed(6, std::array<int64_t, 3>{3, 270, 86942});
  EXPECT_EQ(writer.bytes(), "\x12\x07testing\x1a\x03\x08\x96\x01\x32\x06\x03\x8e\x02\x9e\xa7\x05"s);
}

TEST(WireWriter, OmitsTheDefaultsOfProto3) {
  WireWriter writer;
  writer.add_number(1, 0);
  writer.add_text(2, "");
  writer.add_packed(3, {});
  EXPECT_EQ(writer.bytes(), "");
  writer.add_item(4, "");
  EXPECT_EQ(writer.bytes(), "\x22\x00"s);
  writer.add_number(5, -1);
  EXPECT_EQ(writer.bytes(), "\x22\x00\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(WireReader, ReadsFieldsInTheirOrderAndSkipsTheRest) {
  const std::string bytes =
      "\x08\x96\x01"                       // 1: 150
      "\x11********"                       // 2: fixed64
      "\x1d****"                           // 3: fixed32
      "\x22\x02hi"                         // 4: "hi"
      "\x2b\x08\x07\x33\x34\x2a\x01x\x2c"  // 5: a group with a number, a group and a string
      "\x0a\x02\x08\x05"s;                 // 1: a message
  WireReader reader(bytes, "load", "Point");
  std::vector<int> fields;
  while (reader.next()) {
    fields.push_back(reader.field());
    if (fields.size() == 1) {
      EXPECT_EQ(reader.number(), 150);
    }
    if (reader.field() == 4) {
      EXPECT_EQ(reader.text(), "hi");
    }
  }
  EXPECT_EQ(fields, (std::vector{1, 2, 3, 4, 5, 1}));
  WireReader inner = reader.message("Inner");
  ASSERT_TRUE(inner.next());
  EXPECT_EQ(inner.number(), 5);
  EXPECT_FALSE(inner.next());
}

TEST(WireReader, ReadsPackedAndUnpackedLists) {
  const std::string bytes = "\x08\x01\x0a\x03\x02\x96\x01\x08\x04"s;
  WireReader reader(bytes, "load", "Point");
  std::vector<int64_t> values;
  while (reader.next()) reader.numbers(values, 200, 4);
  EXPECT_EQ(values, (std::vector<int64_t>{1, 2, 150, 4}));
}

TEST(WireReader, ReportsWhatIsDamagedAndWhere) {
  EXPECT_EQ(fault_of("\x08"), "they end within a number at byte 0");
  EXPECT_EQ(fault_of("\x08\x01\x10\x80"), "they end within a number at byte 2");
  EXPECT_EQ(fault_of("\x08\x01\x12\x05hi"), "a field of 5 bytes has only 2 left at byte 2");
  EXPECT_EQ(fault_of("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            "a field of 18446744073709551615 bytes has only 0 left at byte 0");
  EXPECT_EQ(fault_of("\x0d***"), "a field of 4 bytes has only 3 left at byte 0");
  EXPECT_EQ(fault_of("\x09***"), "a field of 8 bytes has only 3 left at byte 0");
  EXPECT_EQ(fault_of("\x00\x01"s), "0 is not a field number at byte 0");
  EXPECT_EQ(fault_of("\x0e"), "6 is not a wire type at byte 0");
  EXPECT_EQ(fault_of("\x0c"), "group 1 ends without a start at byte 0");
  EXPECT_EQ(fault_of("\x0b\x08\x01"), "group 1 has no end at byte 0");
  EXPECT_EQ(fault_of("\x0b\x14"), "group 1 ends as group 2 at byte 0");
  EXPECT_EQ(fault_of(std::string(1 << 20, '\x0b')), "groups are nested deeper than 32 at byte 0");
  EXPECT_EQ(fault_of("\x80\x80\x80\x80\x10"s), "536870912 is not a field number at byte 0");
}

TEST(WireReader, LimitsNumbersTo64BitsInTenBytes) {
  EXPECT_EQ(at_first("\x08\x81\x80\x80\x00"s).number(), 1);  // not the shortest, as every protobuf reader takes it
  EXPECT_EQ(at_first("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f").number(), INT64_MAX);
  EXPECT_EQ(fault_of("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "a number has more than 64 bits at byte 0");
  EXPECT_EQ(fault_of("\x08" + std::string(10, '\x80') + "\x01"), "a number has more than 64 bits at byte 0");
  EXPECT_EQ(fault_of("\x08" + std::string(1 << 20, '\x80')), "a number has more than 64 bits at byte 0");
}

TEST(WireReader, ChecksTheRequestedType) {
  const auto says = [](const std::function<void()>& call, const std::string& text) {
    try {
      call();
      ADD_FAILURE() << "no error; expected " << text;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  const std::string number = "\x08\x96\x01";
  says([&] { at_first(number).number(149); },
       "load: the bytes are not a valid Point: field 1 is 150, the maximum is 149 at byte 0; expected");
  says([&] { at_first("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").number(); }, "field 1 is -1, below 0");
  says([&] { at_first(number).text(); }, "field 1 is a number by its wire type, 0, and not one of type 2, a string");
  says([&] { at_first(number).message("Inner"); }, "not one of type 2, a message");
  says([&] { at_first("\x0a\x01x").number(); },
       "field 1 is a string or message by its wire type, 2, and not one of type 0");
  says([&] { at_first("\x0b\x0c").number(); }, "field 1 is a value by its wire type, 3");
  says([&] { at_first("\x0a\x02\xc3(").text(); }, "field 1 is text that is not UTF-8");
  std::vector<int64_t> values;
  says([&] { at_first("\x0a\x03\x01\x02\x03").numbers(values, 9, 2); }, "field 1 has more than 2 numbers");
  says([&] { at_first("\x0a\x02\x01\x80").numbers(values, 9, 9); }, "Point: they end within a number at byte 3");
  says([&] { at_first("\x0a\x01\x0a").numbers(values, 9, 9); }, "field 1 is 10, the maximum is 9");
}

TEST(Utf8, AcceptsOnlyTheShortestFormsOfCodePoints) {
  for (const std::string good : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
                                 "\xee\x80\x80", "\xf4\x8f\xbf\xbf", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  EXPECT_TRUE(is_utf8("a\0b"s));
  for (const std::string bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe2\x28\xa1"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

}  // namespace
}  // namespace artifex_devices
