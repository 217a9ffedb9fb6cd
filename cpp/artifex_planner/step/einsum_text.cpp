// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/einsum_text.h"

#include "artifex_devices/base/python_repr.h"

namespace artifex_devices::planner {
namespace {

bool is_letter(std::string_view letter) {
  const char first = letter.front();
  return letter.size() > 1 || (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
}

EinsumTerm term_of(std::string_view text, bool& has_letters_only) {
  EinsumTerm term{std::string(text), {}};
  while (!text.empty()) {
    uint32_t point = 0;
    const int length = decode_utf8(text, &point);
    term.letters.emplace_back(text.substr(0, length > 0 ? static_cast<size_t>(length) : 1));
    has_letters_only = has_letters_only && is_letter(term.letters.back());
    text.remove_prefix(term.letters.back().size());
  }
  return term;
}

}  // namespace

std::optional<EinsumText> parse_einsum(std::string_view text) {
  std::string packed(text);
  std::erase(packed, ' ');
  const size_t arrow = packed.find("->");
  if (arrow == std::string::npos) return {};
  EinsumText einsum;
  std::string_view rest = std::string_view(packed).substr(0, arrow);
  while (true) {
    const size_t comma = rest.find(',');
    einsum.inputs.push_back(term_of(rest.substr(0, comma), einsum.has_letters_only));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  einsum.output = term_of(std::string_view(packed).substr(arrow + 2), einsum.has_letters_only);
  return einsum;
}

}  // namespace artifex_devices::planner
