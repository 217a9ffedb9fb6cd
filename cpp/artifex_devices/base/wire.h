// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace artifex_devices {

/// Writes a message in the protobuf wire format, with the same bytes as proto3's writers if fields are added in the
/// order of their numbers.
/// Example: `add_number(1, 150)` writes 08 96 01.
class WireWriter {
 public:
  void add_number(int field, int64_t value);                    // int32, int64 or unsigned; omitted if 0
  void add_text(int field, std::string_view text);              // omitted if empty
  void add_packed(int field, std::span<const int64_t> values);  // omitted if empty
  /// Adds one value of a repeated field, even if empty.
  void add_item(int field, std::string_view text);
  void add_item(int field, const WireWriter& message) { add_item(field, message.bytes_); }
  const std::string& bytes() const noexcept { return bytes_; }
  std::string take() noexcept { return std::move(bytes_); }

 private:
  void varint(uint64_t value);
  void key(int field, uint64_t type);
  std::string bytes_;
};

/// Reads a message in the protobuf wire format from untrusted bytes, which must outlive it. Every fault throws
/// InvalidArgument `operation: the bytes are not a valid <what>: <fault> at byte <offset>; ...`: a length past the end,
/// a varint of more than 64 bits, field number 0, an end of a group without its start, groups in groups deeper than 32.
/// Takes linear time, and memory for the results only. Example:
///   WireReader reader(bytes, "load", "Point");
///   while (reader.next()) {
///     if (reader.field() == 1) x = reader.number(kMost);  // a field of another type throws
///     // unknown fields are skipped
///   }
class WireReader {
 public:
  WireReader(std::string_view bytes, std::string_view operation, std::string_view what, size_t offset = 0) noexcept
      : bytes_(bytes), operation_(operation), what_(what), offset_(offset) {}

  /// Advances to the next field; returns false at the end.
  bool next();
  int field() const noexcept { return field_; }

  /// The field as a number from 0 to `most`.
  int64_t number(int64_t most = INT64_MAX) const;
  /// The field as text; it must be UTF-8.
  std::string text() const;
  /// Appends the numbers of the field, packed or not, each from 0 to `most`. Throws if `values` would have more than
  /// `count`.
  void numbers(std::vector<int64_t>& values, int64_t most, int64_t count) const;
  /// A reader of the message in the field.
  WireReader message(std::string_view what) const;

  /// Throws for a fault found by the caller, such as inconsistent numbers.
  [[noreturn]] void fail_here(std::string_view fault) const;

 private:
  enum class Type : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kGroupEnd = 4, kFixed32 = 5 };

  uint64_t varint();
  void key();
  void value();
  void skip_group();
  int64_t checked(uint64_t value, int64_t most) const;
  std::string_view take(uint64_t size);
  void expect(Type type, std::string_view name) const;

  std::string_view bytes_;
  std::string_view operation_;
  std::string_view what_;
  size_t offset_ = 0;    // of bytes_ in the whole message
  size_t position_ = 0;  // of the next byte
  size_t start_ = 0;     // of the field
  int field_ = 0;
  Type type_ = Type::kVarint;
  uint64_t number_ = 0;
  std::string_view content_;
};

/// Returns whether `text` is valid UTF-8: shortest forms only, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

}  // namespace artifex_devices
