// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/svg_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/render/labels.h"

namespace artifex_devices {
namespace {

/// Light enough for dark text on it. Hues advance by the golden angle, so consecutive numbers differ clearly.
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

std::string stroke_colour(int64_t number) {
  constexpr std::string_view kColours[SvgDocument::kStrokeColours] = {"#3b82f6", "#d97706", "#16a34a",
                                                                      "#a855f7", "#ef4444", "#0e9aa7"};
  return std::string(number < 0 ? "currentColor" : kColours[number % SvgDocument::kStrokeColours]);
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

int64_t SvgDocument::boxes_across(int64_t count, double width, double height, double max_width) {
  constexpr double kShape = 1.6;
  const int64_t most = std::clamp<int64_t>(static_cast<int64_t>(max_width / width), 1, count);
  const double wanted = std::sqrt(static_cast<double>(count) * kShape * height / width);
  const int64_t best = std::clamp<int64_t>(std::lround(wanted), 1, most);
  for (int64_t away = 0; 2 * away <= best + 1; ++away) {
    for (const int64_t columns : {best + away, best - away}) {
      if (2 * columns >= best && columns <= most && columns > 0 && count % columns == 0) return columns;
    }
  }
  return best;
}

SvgDocument::SvgDocument(std::string_view title) : title_(svg_escape(title)) {}

void SvgDocument::tile(double x, double y, double width, double height, int64_t number, std::string_view label,
                       std::string_view tooltip) {
  const std::string fill = number < 0 ? "none" : colour_of(number);
  elements_ += fmt::format(
      "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
      "stroke=\"currentColor\" stroke-opacity=\"0.45\"{}/>",
      svg_escape(tooltip), x, y, width, height, fill, number < 0 ? " stroke-dasharray=\"3 3\"" : "");
  const bool is_small = label_width(text_width(label)) > width;
  if ((!is_small || small_label_width(text_width(label)) <= width) && kFontSize + 4 <= height) {
    elements_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" dy=\"0.35em\" fill=\"{}\"{}>{}</text>",
                    x + width / 2, y + height / 2, number < 0 ? "currentColor" : "#10161d",
                    is_small ? fmt::format(" font-size=\"{:g}\"", kSmallFontSize) : "", svg_escape(label));
  }
  elements_ += "</g>\n";
}

void SvgDocument::box(double x, double y, double width, double height, std::string_view tooltip) {
  elements_ += fmt::format(
      "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\" fill=\"none\" "
      "stroke=\"currentColor\" stroke-opacity=\"0.45\" pointer-events=\"all\"/></g>\n",
      svg_escape(tooltip), x, y, width, height);
}

void SvgDocument::tiles(const std::vector<SmallTile>& tiles, double width, double height) {
  std::map<int64_t, std::string> bare;  // one path for each colour
  std::string rects;
  std::string labels;
  for (const SmallTile& tile : tiles) {
    if (tile.label.empty() && tile.tooltip.empty()) {
      bare[tile.number] += fmt::format("M{:g} {:g}h{:g}v{:g}h{:g}z", tile.x, tile.y, width, height, -width);
      continue;
    }
    const std::string fill = tile.number < 0 ? "none" : colour_of(tile.number);
    rects += fmt::format("<rect x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\" fill=\"{}\"", tile.x, tile.y,
                         width, height, fill);
    rects += tile.tooltip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", svg_escape(tile.tooltip));
    if (tile.label.empty()) continue;
    labels += fmt::format("<text x=\"{:g}\" y=\"{:g}\" dy=\"0.35em\">{}</text>\n", tile.x + width / 2,
                          tile.y + height / 2, svg_escape(tile.label));
  }
  if (!rects.empty()) {
    elements_ += fmt::format("<g stroke=\"currentColor\" stroke-opacity=\"0.45\">\n{}</g>\n", rects);
  }
  for (const auto& [number, path] : bare) {
    elements_ += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", number < 0 ? "none" : colour_of(number), path);
  }
  if (!labels.empty()) {
    elements_ += fmt::format("<g text-anchor=\"middle\" fill=\"#10161d\" pointer-events=\"none\">\n{}</g>\n", labels);
  }
}

void SvgDocument::lines(std::string_view path, const Stroke& stroke) {
  elements_ +=
      fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:g}\" stroke-opacity=\"{:g}\"{}/>\n",
                  svg_escape(path), stroke_colour(stroke.colour), stroke.width, stroke.opacity,
                  stroke.is_dashed ? " stroke-dasharray=\"3 3\"" : "");
}

void SvgDocument::arrow_head(double x, double y, const Stroke& stroke) {
  elements_ += fmt::format("<path d=\"M{:g} {:g}l-8 -4v8z\" fill=\"{}\" fill-opacity=\"{:g}\"/>\n", x, y,
                           stroke_colour(stroke.colour), stroke.opacity);
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
  // `svg:root` matches a stand-alone picture only, also in an <img>, which follows the reader's colour scheme. It has a
  // background of its own because a page may have another scheme. Within a page the page's colours apply.
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"{2:.0f}\" fill=\"currentColor\" "
      "style=\"max-width:100%;height:auto\">\n"
      "<title>{3}</title>\n"
      "<style>svg:root{{color:#1f2328;background:#fff}}"
      "@media (prefers-color-scheme:dark){{svg:root{{color:#e6edf3;background:#111}}}}</style>\n"
      "{4}</svg>\n",
      width, height, kFontSize, title_, elements_);
}

}  // namespace artifex_devices
