// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/wire.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr uint64_t kMostField = (uint64_t{1} << 29) - 1;
constexpr int kDeepestGroup = 32;

}  // namespace

void WireWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
  bytes_.push_back(static_cast<char>(value));
}

void WireWriter::key(int field, uint64_t type) { varint(static_cast<uint64_t>(field) << 3 | type); }

void WireWriter::add_number(int field, int64_t value) {
  if (value == 0) return;
  key(field, 0);
  varint(static_cast<uint64_t>(value));
}

void WireWriter::add_text(int field, std::string_view text) {
  if (!text.empty()) add_item(field, text);
}

void WireWriter::add_packed(int field, std::span<const int64_t> values) {
  if (values.empty()) return;
  WireWriter packed;
  for (const int64_t value : values) packed.varint(static_cast<uint64_t>(value));
  add_item(field, packed.bytes_);
}

void WireWriter::add_item(int field, std::string_view text) {
  key(field, 2);
  varint(text.size());
  bytes_ += text;
}

void WireReader::fail_here(std::string_view fault) const {
  throw_error(
      "{}: the bytes are not a valid {}: {} at byte {}; expected bytes returned by serialize(), got others or damaged "
      "ones; read them again from their source",
      operation_, what_, fault, offset_ + start_);
}

uint64_t WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (position_ == bytes_.size()) fail_here("they end within a number");
    const auto byte = static_cast<uint8_t>(bytes_[position_++]);
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail_here("a number has more than 64 bits");
}

std::string_view WireReader::take(uint64_t size) {
  const size_t left = bytes_.size() - position_;
  if (size > left) fail_here(fmt::format("a field of {} bytes has only {} left", size, left));
  const std::string_view taken = bytes_.substr(position_, static_cast<size_t>(size));
  position_ += static_cast<size_t>(size);
  return taken;
}

void WireReader::key() {
  const uint64_t key = varint();
  if (key >> 3 == 0 || key >> 3 > kMostField) fail_here(fmt::format("{} is not a field number", key >> 3));
  if ((key & 7) > static_cast<uint64_t>(Type::kFixed32)) fail_here(fmt::format("{} is not a wire type", key & 7));
  field_ = static_cast<int>(key >> 3);
  type_ = static_cast<Type>(key & 7);
}

void WireReader::value() {
  switch (type_) {
    case Type::kVarint:
      number_ = varint();
      return;
    case Type::kFixed64:
      content_ = take(8);
      return;
    case Type::kFixed32:
      content_ = take(4);
      return;
    case Type::kBytes:
      content_ = take(varint());
      return;
    case Type::kGroup:
      skip_group();
      return;
    case Type::kGroupEnd:
      fail_here(fmt::format("group {} ends without a start", field_));
  }
}

void WireReader::skip_group() {
  int open[kDeepestGroup] = {field_};
  int depth = 1;
  while (depth > 0) {
    if (position_ == bytes_.size()) fail_here(fmt::format("group {} has no end", open[depth - 1]));
    key();
    if (type_ == Type::kGroup) {
      if (depth == kDeepestGroup) fail_here(fmt::format("groups are nested deeper than {}", kDeepestGroup));
      open[depth++] = field_;
    } else if (type_ == Type::kGroupEnd) {
      if (open[--depth] != field_) fail_here(fmt::format("group {} ends as group {}", open[depth], field_));
    } else {
      value();
    }
  }
  field_ = open[0];
  type_ = Type::kGroup;
}

bool WireReader::next() {
  start_ = position_;
  if (position_ == bytes_.size()) return false;
  key();
  value();
  return true;
}

void WireReader::expect(Type type, std::string_view name) const {
  if (type_ != type) {
    fail_here(fmt::format("field {} is {} by its wire type, {}, and not one of type {}, {}", field_,
                          type_ == Type::kVarint  ? "a number"
                          : type_ == Type::kBytes ? "a string or message"
                                                  : "a value",
                          static_cast<int>(type_), static_cast<int>(type), name));
  }
}

int64_t WireReader::checked(uint64_t value, int64_t most) const {
  if (value > static_cast<uint64_t>(most)) {
    fail_here(static_cast<int64_t>(value) < 0
                  ? fmt::format("field {} is {}, below 0", field_, static_cast<int64_t>(value))
                  : fmt::format("field {} is {}, the maximum is {}", field_, value, most));
  }
  return static_cast<int64_t>(value);
}

int64_t WireReader::number(int64_t most) const {
  expect(Type::kVarint, "a number");
  return checked(number_, most);
}

std::string WireReader::text() const {
  expect(Type::kBytes, "a string");
  if (!is_utf8(content_)) fail_here(fmt::format("field {} is text that is not UTF-8", field_));
  return std::string(content_);
}

void WireReader::numbers(std::vector<int64_t>& values, int64_t most, int64_t count) const {
  const auto add = [&](uint64_t value) {
    if (static_cast<int64_t>(values.size()) == count) {
      fail_here(fmt::format("field {} has more than {} numbers", field_, count));
    }
    values.push_back(checked(value, most));
  };
  if (type_ == Type::kVarint) return add(number_);
  expect(Type::kBytes, "a list of numbers");
  WireReader packed = message(what_);
  packed.field_ = field_;
  while (packed.position_ < packed.bytes_.size()) {
    packed.start_ = packed.position_;
    add(packed.varint());
  }
}

WireReader WireReader::message(std::string_view what) const {
  expect(Type::kBytes, "a message");
  return {content_, operation_, what, offset_ + static_cast<size_t>(content_.data() - bytes_.data())};
}

bool is_utf8(std::string_view text) noexcept {
  size_t i = 0;
  while (i < text.size()) {
    const auto first = static_cast<uint8_t>(text[i++]);
    if (first < 0x80) continue;
    if (first < 0xc2 || first > 0xf4) return false;
    const size_t more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if (text.size() - i < more) return false;
    const auto second = static_cast<uint8_t>(text[i]);
    // The second byte excludes overlong forms, surrogates, and values above U+10FFFF.
    const int low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const int high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (second < low || second > high) return false;
    for (size_t k = 1; k < more; ++k) {
      if ((static_cast<uint8_t>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    i += more;
  }
  return true;
}

}  // namespace artifex_devices
