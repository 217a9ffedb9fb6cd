// SPDX-License-Identifier: Apache-2.0
// Reading XLA's text of a layout.
#include <charconv>

#include "artifex_devices/array/layout.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Layout read() {
    if (std::ssize(text_) > Layout::kMaxText) {
      throw_error("Layout.parse: the text has {} characters; expected at most {}", text_.size(), Layout::kMaxText);
    }
    expect('{', "that begins a layout");
    const Dims order = numbers('}', false, Layout::kMaxRank);
    std::vector<Dims> tiles;
    int64_t tail = 1;
    int64_t bits = 0;
    int64_t space = 0;
    if (take(':')) {
      if (take('T')) {
        if (!is_next('(')) refuse("the sizes of a tile, in parentheses");
        while (take('(')) {
          if (std::ssize(tiles) == Layout::kMaxTiles) refuse("at most 16 tiles");
          tiles.push_back(numbers(')', true, Layout::kMaxRank));
          expect(')', "that ends a tile");
        }
      }
      if (take('L')) tail = number_in_parentheses();
      if (take('E')) bits = number_in_parentheses();
      if (is_next('S') && !is_next("SC")) {
        ++at_;
        space = number_in_parentheses();
      }
      if (!is_next('}')) refuse("'}', or T(..), L(..), E(..), S(..) in this order, each once");
    }
    expect('}', "that ends the layout");
    skip_spaces();
    if (at_ != text_.size()) refuse("the end of the text");
    return {order, std::move(tiles), bits, tail, space};
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) {
    skip_spaces();
    std::string found = "the end of the text";
    if (at_ < text_.size()) {
      const auto letter = static_cast<unsigned char>(text_[at_]);
      found = letter < 32 || letter > 126 ? fmt::format("the byte {:#04x}", letter) : fmt::format("'{}'", text_[at_]);
    }
    throw_error("Layout.parse: character {} is {}; expected {}; write {{1,0:T(8,128)}}, with only dense parts", at_,
                found, expected);
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool is_next(char letter) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == letter;
  }
  bool is_next(std::string_view word) {
    skip_spaces();
    return text_.substr(at_).starts_with(word);
  }
  bool take(char letter) {
    if (!is_next(letter)) return false;
    ++at_;
    return true;
  }
  void expect(char letter, std::string_view what) {
    if (!take(letter)) refuse(fmt::format("'{}' {}", letter, what));
  }

  int64_t number() {
    skip_spaces();
    int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) refuse("a number that fits 64 bits");
    if (error != std::errc()) refuse("a number");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  int64_t number_in_parentheses() {
    expect('(', "and a number");
    const int64_t value = number();
    expect(')', "after the number");
    return value;
  }

  /// Up to `end` or ':', which stay.
  Dims numbers(char end, bool is_tile, int64_t limit) {
    Dims result;
    if (is_next(end) || (!is_tile && is_next(':'))) return result;
    do {
      if (result.size() == limit) refuse("at most 64 numbers");
      result.push_back(is_tile && take('*') ? Layout::kCombine : number());
    } while (take(','));
    return result;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Layout Layout::parse(std::string_view text) { return Reader(text).read(); }

}  // namespace artifex_devices
