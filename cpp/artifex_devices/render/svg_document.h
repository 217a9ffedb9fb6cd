// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace artifex_devices {

/// Escaped for SVG text and attributes: markup characters as entities, what XML does not allow as U+FFFD.
std::string svg_escape(std::string_view text);

/// Collects the elements of one picture. Lengths are pixels; texts are given plain and escaped here. Lines and words
/// take the colour of the page around (currentColor), tiles bring their own.
class SvgDocument {
 public:
  enum class Anchor : uint8_t { kStart, kMiddle, kEnd };
  static constexpr double kFontSize = 12;

  /// Pixels that a text of so many characters takes at most, with some room on both sides.
  static double label_width(int64_t characters) { return 7.0 * static_cast<double>(characters) + 8.0; }

  explicit SvgDocument(std::string_view title);

  /// A tile in the colour of `number`, -1: hollow. `label` in its middle when there is room, `tooltip` under the
  /// pointer.
  void tile(double x, double y, double width, double height, int64_t number, std::string_view label,
            std::string_view tooltip);
  /// An outline for others to lie in.
  void box(double x, double y, double width, double height, std::string_view tooltip);
  /// One line; `y` is its middle.
  void text(double x, double y, Anchor anchor, std::string_view text, bool faint = false);
  /// The same, turned to read upwards.
  void upward_text(double x, double y, std::string_view text);

  /// The whole document, with what has been added.
  std::string finish(double width, double height) const;

 private:
  std::string title_;
  std::string elements_;
};

}  // namespace artifex_devices
