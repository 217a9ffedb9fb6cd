// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/name_pattern.h"

#include <algorithm>
#include <utility>

#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr size_t kLongest = 4096;  // bytes of a pattern

bool is_separator(char c) noexcept { return c == '.' || c == '/'; }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_name_character(char c) noexcept {
  return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

NamePattern::NamePattern(std::string text, std::string_view operation) : text_(std::move(text)) {
  const auto refuse = [&](std::string_view problem, std::string_view fix) {
    throw_error("{}: the pattern {} {}; {}", operation, python_repr(text_), problem, fix);
  };
  if (text_.size() > kLongest) {
    throw_error("{}: the pattern {} and so on has {} bytes; expected at most {}; shorten it", operation,
                python_repr(text_.substr(0, 60)), text_.size(), kLongest);
  }
  if (text_.empty()) refuse("is empty", "write the name of an array, such as \"lm_head.weight\"");
  for (size_t i = 0; i < text_.size();) {
    const char c = text_[i];
    if (c == '}') refuse("has '}' without '{'", "write a placeholder as {layer}");
    if (c != '{' && c != '*') {
      if (tokens_.empty() || tokens_.back().kind != Kind::kText) tokens_.push_back({Kind::kText, ""});
      tokens_.back().text += c;
      ++i;
      continue;
    }
    if (!tokens_.empty() && tokens_.back().kind != Kind::kText) {
      refuse("has placeholders side by side", "put a character between them");
    }
    if (c == '*') {
      tokens_.push_back({Kind::kStar, ""});
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < text_.size() && is_name_character(text_[end])) ++end;
    if (end == i + 1 || end == text_.size() || text_[end] != '}') {
      refuse("has '{' without a name and '}'", "write a placeholder as {layer}");
    }
    std::string name = text_.substr(i + 1, end - i - 1);
    if (std::ranges::any_of(tokens_, [&](const Token& t) { return t.kind != Kind::kText && t.text == name; })) {
      refuse("uses one placeholder twice", "give each placeholder its own name");
    }
    const bool begins_part = i == 0 || is_separator(text_[i - 1]);
    const bool ends_part = end + 1 == text_.size() || is_separator(text_[end + 1]);
    tokens_.push_back({begins_part && ends_part ? Kind::kPart : Kind::kDigits, std::move(name)});
    i = end + 1;
  }
}

std::set<std::string> NamePattern::names() const {
  std::set<std::string> found;
  for (const Token& token : tokens_) {
    if (token.kind == Kind::kPart || token.kind == Kind::kDigits) found.insert(token.text);
  }
  return found;
}

int64_t NamePattern::star_count() const noexcept {
  return std::ranges::count_if(tokens_, [](const Token& token) { return token.kind == Kind::kStar; });
}

bool NamePattern::is_one_name() const noexcept {
  return std::ranges::all_of(tokens_, [](const Token& token) { return token.kind == Kind::kText; });
}

// can(t, i) is whether tokens from t on match characters from i on, so the time is the product of both.
std::optional<NameMatch> NamePattern::match(std::string_view name) const {
  // Most names differ at an end.
  if (tokens_.front().kind == Kind::kText && !name.starts_with(tokens_.front().text)) return std::nullopt;
  if (tokens_.back().kind == Kind::kText && !name.ends_with(tokens_.back().text)) return std::nullopt;
  const size_t length = name.size();
  std::string table((tokens_.size() + 1) * (length + 1), '\0');
  const auto can = [&](size_t t, size_t i) -> char& { return table[t * (length + 1) + i]; };
  can(tokens_.size(), length) = 1;
  for (size_t t = tokens_.size(); t-- > 0;) {
    const auto& [kind, text] = tokens_[t];
    for (size_t i = length + 1; i-- > 0;) {
      if (kind == Kind::kText) {
        can(t, i) = name.substr(i).starts_with(text) && can(t + 1, i + text.size()) != 0;
        continue;
      }
      const bool takes = i < length && (kind == Kind::kDigits ? is_digit(name[i]) : !is_separator(name[i]));
      const bool matches =
          (kind == Kind::kStar && can(t + 1, i) != 0) || (takes && (can(t + 1, i + 1) != 0 || can(t, i + 1) != 0));
      can(t, i) = static_cast<char>(matches);
    }
  }
  if (can(0, 0) == 0) return std::nullopt;
  NameMatch found;
  size_t begin = 0;
  for (size_t t = 0; t < tokens_.size(); ++t) {
    const auto& [kind, text] = tokens_[t];
    if (kind == Kind::kText) {
      begin += text.size();
      continue;
    }
    size_t end = begin + (kind == Kind::kStar ? 0 : 1);
    while (can(t + 1, end) == 0) ++end;
    std::string part(name.substr(begin, end - begin));
    if (kind == Kind::kStar) {
      found.stars.push_back(std::move(part));
    } else {
      found.names[text] = std::move(part);
    }
    begin = end;
  }
  return found;
}

std::string NamePattern::fill(const NameMatch& match) const {
  std::string name;
  size_t star = 0;
  for (const Token& token : tokens_) {
    name += token.kind == Kind::kText   ? token.text
            : token.kind == Kind::kStar ? match.stars[star++]
                                        : match.names.at(token.text);
  }
  return name;
}

}  // namespace artifex_devices
