// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace artifex_devices {

/// Escapes text for SVG elements and attributes: markup characters become entities, characters that XML forbids U+FFFD.
std::string svg_escape(std::string_view text);

/// Collects the elements of one picture. Lengths are in pixels. Plain texts are escaped here. Lines and texts have the
/// colour of the surrounding page (currentColor); tiles have their own colours.
class SvgDocument {
 public:
  enum class Anchor : uint8_t { kStart, kMiddle, kEnd };
  struct Stroke {
    int64_t colour = -1;  // index of a line colour; -1: the page's colour
    double width = 1;
    double opacity = 0.45;
    bool is_dashed = false;
  };
  struct SmallTile {
    double x = 0, y = 0;
    int64_t number = 0;  // index of its colour
    std::string label, tooltip;
  };
  /// Colours of lines: each has a contrast of 3 or more on white and on dark pages (#0d1117).
  static constexpr int64_t kStrokeColours = 6;
  static constexpr double kFontSize = 12;
  static constexpr double kSmallFontSize = 9;  // of a label that fits into its tile only so
  static constexpr double kLineHeight = 20;
  /// Around the picture.
  static constexpr double kMargin = 12;

  /// Largest width in pixels of a text of this length, with a margin on both sides.
  static double label_width(int64_t characters) { return 7.0 * static_cast<double>(characters) + 8.0; }
  /// The same for a text in the small font, with less margin.
  static double small_label_width(int64_t characters) { return 5.5 * static_cast<double>(characters) + 2.0; }

  /// Number of boxes of one size in a row when `count` boxes are arranged within `max_width`. Prefers full rows and a
  /// picture that is somewhat wider than high. Example: 8 boxes of 118 by 76: 4.
  static int64_t boxes_across(int64_t count, double width, double height, double max_width);

  explicit SvgDocument(std::string_view title);

  /// A tile in colour `number`; -1 is hollow. `label` is drawn in its middle if it fits. `tooltip` appears under the
  /// pointer.
  void tile(double x, double y, double width, double height, int64_t number, std::string_view label,
            std::string_view tooltip);
  /// An outline around other elements.
  void box(double x, double y, double width, double height, std::string_view tooltip);
  /// Many tiles of one size in a compact form: tiles without labels and tooltips are one path for each colour.
  void tiles(const std::vector<SmallTile>& tiles, double width, double height);
  /// An SVG path such as "M0 0H10".
  void lines(std::string_view path, const Stroke& stroke);
  /// The head of an arrow to the right, with its tip at (x, y).
  void arrow_head(double x, double y, const Stroke& stroke);
  /// One line of text; `y` is its vertical middle.
  void text(double x, double y, Anchor anchor, std::string_view text, bool faint = false);
  /// The same, rotated to read upwards.
  void upward_text(double x, double y, std::string_view text);

  /// The complete document.
  std::string finish(double width, double height) const;

 private:
  std::string title_;
  std::string elements_;
};

}  // namespace artifex_devices
