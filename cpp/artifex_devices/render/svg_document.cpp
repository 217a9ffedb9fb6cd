// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/svg_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "artifex_devices/partition/python_repr.h"
#include "artifex_devices/render/labels.h"

namespace artifex_devices {
namespace {

/// Light enough for dark letters on it. Hues go round by the golden angle, so that neighbours in number differ well.
std::string colour_of(int64_t number) {
  const double hue = std::fmod(205.0 + 137.508 * static_cast<double>(number % 3600), 360.0);
  const double lightness = number % 2 == 0 ? 0.79 : 0.71;
  const double amplitude = 0.55 * (1.0 - lightness);
  const auto channel = [&](double offset) {
    const double k = std::fmod(offset + hue / 30.0, 12.0);
    const double value = lightness - amplitude * std::max(-1.0, std::min({k - 3.0, 9.0 - k, 1.0}));
    return static_cast<int>(std::lround(value * 255.0));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

}  // namespace

std::string svg_escape(std::string_view text) {
  std::string escaped;
  for (size_t at = 0; at < text.size();) {
    uint32_t point = 0;
    const int length = decode_utf8(text.substr(at), &point);
    const std::string_view bytes = text.substr(at, static_cast<size_t>(std::max(length, 1)));
    at += bytes.size();
    const bool is_allowed = length > 0 && (point >= 0x20 || point == '\t' || point == '\n' || point == '\r') &&
                            !(point >= 0xD800 && point <= 0xDFFF) && point != 0xFFFE && point != 0xFFFF;
    if (!is_allowed) {
      escaped += "\xEF\xBF\xBD";
    } else if (point == '&') {
      escaped += "&amp;";
    } else if (point == '<') {
      escaped += "&lt;";
    } else if (point == '>') {
      escaped += "&gt;";
    } else if (point == '"') {
      escaped += "&quot;";
    } else if (point == '\'') {
      escaped += "&#39;";
    } else {
      escaped += bytes;
    }
  }
  return escaped;
}

SvgDocument::SvgDocument(std::string_view title) : title_(svg_escape(title)) {}

void SvgDocument::tile(double x, double y, double width, double height, int64_t number, std::string_view label,
                       std::string_view tooltip) {
  const std::string fill = number < 0 ? "none" : colour_of(number);
  elements_ += fmt::format(
      "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "stroke=\"currentColor\" stroke-opacity=\"0.45\"{}/>",
      svg_escape(tooltip), x, y, width, height, fill, number < 0 ? " stroke-dasharray=\"3 3\"" : "");
  if (label_width(text_width(label)) <= width && kFontSize + 4 <= height) {
    elements_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" dy=\"0.35em\" fill=\"{}\">{}</text>",
                    x + width / 2, y + height / 2, number < 0 ? "currentColor" : "#10161d", svg_escape(label));
  }
  elements_ += "</g>\n";
}

void SvgDocument::box(double x, double y, double width, double height, std::string_view tooltip) {
  elements_ += fmt::format(
      "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"none\" "
      "stroke=\"currentColor\" stroke-opacity=\"0.45\" pointer-events=\"all\"/></g>\n",
      svg_escape(tooltip), x, y, width, height);
}

void SvgDocument::text(double x, double y, Anchor anchor, std::string_view text, bool faint) {
  constexpr std::string_view kAnchors[] = {"start", "middle", "end"};
  elements_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" dy=\"0.35em\"{}>{}</text>\n", x, y,
                           kAnchors[static_cast<size_t>(anchor)], faint ? " opacity=\"0.7\"" : "", svg_escape(text));
}

void SvgDocument::upward_text(double x, double y, std::string_view text) {
  elements_ += fmt::format(
      "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" text-anchor=\"middle\" dy=\"0.35em\" "
      "opacity=\"0.7\">{}</text>\n",
      x, y, svg_escape(text));
}

std::string SvgDocument::finish(double width, double height) const {
  // `svg:root` is a picture of its own, which follows the reader's colour scheme; inside a page the page's colour
  // holds.
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"{2:.0f}\" fill=\"currentColor\" "
      "style=\"max-width:100%;height:auto\">\n"
      "<title>{3}</title>\n"
      "<style>svg:root{{color:#1f2328}}@media (prefers-color-scheme:dark){{svg:root{{color:#e6edf3}}}}</style>\n"
      "{4}</svg>\n",
      width, height, kFontSize, title_, elements_);
}

}  // namespace artifex_devices
