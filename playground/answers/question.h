// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "artifex_devices/checkpoint/json_reader.h"

namespace artifex_devices::playground {

/// The fields of a question: one JSON object. Throws InvalidArgument for text that is not one, for a field that is
/// missing, and for values of another kind; messages name the field.
class Question {
 public:
  explicit Question(std::string_view json);

  std::string text(const std::string& field) const;
  /// The text of a field that may be absent: "" then.
  std::string text_or_empty(const std::string& field) const;
  int64_t integer(const std::string& field) const;
  bool flag(const std::string& field) const;
  /// Calls read(reader, name) for each member of an object; `read` reads the value.
  template <class Read>
  void members(const std::string& field, const Read& read) const {
    JsonReader json(value(field), field);
    std::string name;
    json.begin_object();
    for (bool first = true; json.next_member(first, name);) read(json, name);
  }

 private:
  const std::string& value(const std::string& field) const;
  std::map<std::string, std::string> values_;  // JSON of each field
};

/// The value of a JSON word: true or false. Throws InvalidArgument for another one.
bool flag_of(std::string_view word, std::string_view field);

}  // namespace artifex_devices::playground
