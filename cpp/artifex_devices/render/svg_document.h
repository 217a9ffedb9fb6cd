// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace artifex_devices {

/// Escaped for SVG text and attributes: markup characters as entities, what XML does not allow as U+FFFD.
std::string svg_escape(std::string_view text);

/// Collects the elements of one picture. Lengths are pixels; texts are given plain and escaped here. Lines and words
/// take the colour of the page around (currentColor), tiles bring their own.
class SvgDocument {
 public:
  enum class Anchor : uint8_t { kStart, kMiddle, kEnd };
  struct Stroke {
    int64_t colour = -1;  // of lines(), by number; -1: the page's
    double width = 1;
    double opacity = 0.45;
    bool is_dashed = false;
  };
  struct SmallTile {
    double x = 0, y = 0;
    int64_t number = 0;  // of its colour
    std::string label, tooltip;
  };
  /// Colours of lines: each has a contrast of 3 or more on white and on dark pages (#0d1117).
  static constexpr int64_t kStrokeColours = 6;
  static constexpr double kFontSize = 12;
  static constexpr double kLineHeight = 20;
  /// Around the whole picture.
  static constexpr double kMargin = 12;

  /// Pixels that a text of so many characters takes at most, with some room on both sides.
  static double label_width(int64_t characters) { return 7.0 * static_cast<double>(characters) + 8.0; }

  /// How many of `count` boxes of one size go beside each other, no more than `room` holds: rows are full where that
  /// can be, and the whole is somewhat wider than high. Example: 8 boxes of 118 by 76: 4.
  static int64_t boxes_across(int64_t count, double width, double height, double room);

  explicit SvgDocument(std::string_view title);

  /// A tile in the colour of `number`, -1: hollow. `label` in its middle when there is room, `tooltip` under the
  /// pointer.
  void tile(double x, double y, double width, double height, int64_t number, std::string_view label,
            std::string_view tooltip);
  /// An outline for others to lie in.
  void box(double x, double y, double width, double height, std::string_view tooltip);
  /// Many tiles of one size in little space. Without labels and tooltips they are one path a colour.
  void tiles(const std::vector<SmallTile>& tiles, double width, double height);
  /// A path in SVG's words, such as "M0 0H10".
  void lines(std::string_view path, const Stroke& stroke);
  /// The head of an arrow that flies to the right, its tip at (x, y).
  void arrow_head(double x, double y, const Stroke& stroke);
  /// A filled disc, or with `is_hollow` a ring, in a colour of lines.
  void dot(double x, double y, int64_t colour, bool is_hollow, std::string_view tooltip);
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
