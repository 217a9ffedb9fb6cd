// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace artifex_devices {

/// Reads JSON from untrusted text, value by value, without a tree of the document. Every fault throws InvalidArgument
/// `<what>: the JSON is not valid at byte 12: expected ...`. Takes linear time, and memory for the returned values
/// only. Interruptible between members of objects. Example:
///   JsonReader json(text, "the header");
///   json.begin_object();
///   for (bool first = true; json.next_member(first, name);) total += json.integer();
///   json.end();
class JsonReader {
 public:
  static constexpr int kMaxDepth = 32;  // of a skipped value

  /// `text` and `what` must outlive the reader.
  JsonReader(std::string_view text, std::string_view what) noexcept : text_(text), what_(what) {}

  void begin_object() { expect('{'); }
  /// Reads the name of the next member; returns false after the last one. `first` is true before the first call.
  bool next_member(bool& first, std::string& name);
  void begin_list() { expect('['); }
  /// Returns whether another item follows. `first` is true before the first call.
  bool next_item(bool& first);

  std::string string();
  /// A number from 0 to 2^63 - 1.
  int64_t integer();
  void skip() { skip(0); }
  /// Skips a value and returns its text, which is valid JSON except for numbers and words. Its strings may have escaped
  /// halves of surrogate pairs, as texts of Python do.
  std::string_view raw();
  /// Checks that nothing follows but white space.
  void end();

  /// Throws for a fault found by the caller.
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  char peek();
  void expect(char sign);
  void skip(int depth);
  void skip_word();
  uint32_t code_unit();
  void append_escape(std::string& result);

  std::string_view text_;
  std::string_view what_;
  size_t position_ = 0;
  size_t members_ = 0;
  bool allows_lone_surrogates_ = false;
};

/// The text as a JSON string, with its quotation marks.
std::string json_string(std::string_view text);

}  // namespace artifex_devices
