// SPDX-License-Identifier: Apache-2.0
#include "question.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::playground {

Question::Question(std::string_view json) {
  JsonReader reader(json, "question");
  std::string name;
  reader.begin_object();
  for (bool first = true; reader.next_member(first, name);) values_[name] = reader.raw();
  reader.end();
}

const std::string& Question::value(const std::string& field) const {
  const auto found = values_.find(field);
  if (found == values_.end()) throw_error("question: the field {:?} is missing; expected a value; add it", field);
  return found->second;
}

std::string Question::text(const std::string& field) const { return JsonReader(value(field), field).string(); }

std::string Question::text_or_empty(const std::string& field) const {
  return values_.contains(field) ? text(field) : std::string();
}

int64_t Question::integer(const std::string& field) const { return JsonReader(value(field), field).integer(); }

bool Question::flag(const std::string& field) const { return flag_of(value(field), field); }

bool flag_of(std::string_view word, std::string_view field) {
  if (word != "true" && word != "false") {
    throw_error("{}: the value is {}; expected true or false; correct it", field, word);
  }
  return word == "true";
}

}  // namespace artifex_devices::playground
