// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/device_words.h"

#include <algorithm>
#include <array>

namespace artifex_devices {

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::vector<std::string> words_of_kind(std::string_view kind) {
  constexpr std::array<std::string_view, 4> kVendorWords = {"nvidia", "tesla", "amd", "instinct"};
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && std::ranges::find(kVendorWords, word) == kVendorWords.end()) words.push_back(word);
    word.clear();
  };
  for (const char c : lower_case(kind.substr(0, kind.find(':')))) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    } else {
      end_word();
    }
  }
  end_word();
  return words;
}

}  // namespace artifex_devices
