// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/roofline_svg.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/log_axis.h"
#include "artifex_devices/render/svg_document.h"

namespace artifex_devices {
namespace {

using Anchor = SvgDocument::Anchor;

constexpr double kLeft = 92;
constexpr double kTop = 44;
constexpr double kWidth = 560;
constexpr double kHeight = 320;
constexpr size_t kMaxRoofs = 64;
constexpr size_t kMaxPoints = 4096;
constexpr size_t kMaxLabels = 16;
constexpr int kLabelSteps = 6;
constexpr int64_t kNoteWidth = 90;  // characters
constexpr double kMinNumber = 1e-30;
constexpr double kMaxNumber = 1e30;  // ratios of two such numbers still fit on an axis

void check(const RooflinePlot& plot) {
  std::vector<std::string> wrong;
  const auto is_valid = [](double value) { return std::isfinite(value) && value >= kMinNumber && value <= kMaxNumber; };
  const auto count = [&](bool per_byte) {
    return std::ranges::count_if(plot.roofs, [&](const Roof& roof) { return roof.per_byte == per_byte; });
  };
  if (count(false) == 0) wrong.emplace_back("there is no roof in FLOP/s");
  if (count(true) == 0) wrong.emplace_back("there is no roof in bytes/s");
  if (plot.roofs.size() > kMaxRoofs) wrong.push_back(fmt::format("there are {} roofs", plot.roofs.size()));
  if (plot.points.size() > kMaxPoints) wrong.push_back(fmt::format("there are {} points", plot.points.size()));
  for (const Roof& roof : plot.roofs) {
    if (!is_valid(roof.rate)) wrong.push_back(fmt::format("the rate of {} is {}", roof.name, roof.rate));
  }
  for (const RooflinePoint& point : plot.points) {
    if (!is_valid(point.flops_per_byte)) {
      wrong.push_back(fmt::format("{} has {} FLOP per byte", point.label, point.flops_per_byte));
    }
    if (point.flops != 0 && !is_valid(point.flops)) {
      wrong.push_back(fmt::format("{} has {} FLOP/s", point.label, point.flops));
    }
    if (point.roof >= static_cast<int64_t>(plot.roofs.size()) ||
        (point.roof >= 0 && !plot.roofs[static_cast<size_t>(point.roof)].per_byte)) {
      wrong.push_back(fmt::format("{} is of roof {}, which is none in bytes/s", point.label, point.roof));
    }
    if (wrong.size() > 10) break;
  }
  if (wrong.empty()) return;
  throw_error(
      "to_svg: {}; expected a roof of each kind, at most {} roofs and {} points, and numbers of {:g} to {:g}; correct "
      "them",
      fmt::join(wrong, "; "), kMaxRoofs, kMaxPoints, kMinNumber, kMaxNumber);
}

class RooflineDrawing {
 public:
  explicit RooflineDrawing(const RooflinePlot& plot)
      : plot_(plot),
        level_(first(false)),
        slope_(first(true)),
        x_(intensities(), kLeft, kLeft + kWidth),
        y_(heights(), kTop + kHeight, kTop) {}

  std::string draw() {
    SvgDocument document(plot_.title);
    document.text(SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight / 2, Anchor::kStart,
                  plot_.title);
    draw_axes(document);
    int64_t colour = 0;
    for (const Roof& roof : plot_.roofs) draw_roof(document, roof, colour++);
    draw_points(document);
    double width =
        std::max({kLeft + kWidth + 90, SvgDocument::label_width(text_width(plot_.title)) + 2 * SvgDocument::kMargin});
    double end = kTop + kHeight + 3 * SvgDocument::kLineHeight;
    colour = 0;
    for (const Roof& roof : plot_.roofs) {
      const std::string text = legend(roof);
      document.lines(fmt::format("M{:g} {:g}h20", kLeft, end + SvgDocument::kLineHeight / 2),
                     stroke_of(roof, colour++));
      document.text(kLeft + 26, end + SvgDocument::kLineHeight / 2, Anchor::kStart, text);
      width = std::max(width, kLeft + 26 + SvgDocument::label_width(text_width(text)));
      end += SvgDocument::kLineHeight;
    }
    for (const std::string& note : notes()) {
      for (const std::string& line : wrapped(note, kNoteWidth)) {
        document.text(kLeft, end + SvgDocument::kLineHeight / 2, Anchor::kStart, line, true);
        width = std::max(width, kLeft + SvgDocument::label_width(text_width(line)));
        end += SvgDocument::kLineHeight;
      }
    }
    return document.finish(width + SvgDocument::kMargin, end + SvgDocument::kMargin);
  }

 private:
  const Roof& first(bool per_byte) const {
    return *std::ranges::find_if(plot_.roofs, [&](const Roof& roof) { return roof.per_byte == per_byte; });
  }

  double ridge(const Roof& slope) const { return level_.rate / slope.rate; }

  double height_of(const RooflinePoint& point) const {
    const Roof& slope = point.roof < 0 ? slope_ : plot_.roofs[static_cast<size_t>(point.roof)];
    return point.flops > 0 ? point.flops : std::min(level_.rate, slope.rate * point.flops_per_byte);
  }

  // Values that the x axis must cover: ridge points, with space on both sides, and points.
  std::vector<double> intensities() const {
    std::vector<double> values;
    for (const Roof& roof : plot_.roofs) {
      if (!roof.per_byte) continue;
      values.push_back(ridge(roof) / 30);
      values.push_back(ridge(roof) * 10);
    }
    for (const RooflinePoint& point : plot_.points) values.push_back(point.flops_per_byte);
    return values;
  }

  std::vector<double> heights() const {
    std::vector<double> values;
    for (const Roof& roof : plot_.roofs) {
      values.push_back(roof.per_byte ? std::max(roof.rate * x_.low(), level_.rate / 1e4) : roof.rate * 1.5);
    }
    for (const RooflinePoint& point : plot_.points) values.push_back(height_of(point) * 0.6);  // space for the label
    return values;
  }

  void draw_axes(SvgDocument& document) const {
    std::string grid;
    for (const double tick : x_.ticks()) {
      grid += fmt::format("M{:g} {:g}V{:g}", x_.pixel(tick), kTop, kTop + kHeight);
      document.text(x_.pixel(tick), kTop + kHeight + SvgDocument::kLineHeight / 2 + 2, Anchor::kMiddle, si_text(tick),
                    true);
    }
    for (const double tick : y_.ticks()) {
      grid += fmt::format("M{:g} {:g}H{:g}", kLeft, y_.pixel(tick), kLeft + kWidth);
      document.text(kLeft - 8, y_.pixel(tick), Anchor::kEnd, si_text(tick), true);
    }
    document.lines(grid, {.opacity = 0.15});
    document.lines(fmt::format("M{:g} {:g}V{:g}H{:g}", kLeft, kTop, kTop + kHeight, kLeft + kWidth), {.opacity = 0.6});
    document.text(kLeft + kWidth / 2, kTop + kHeight + 1.5 * SvgDocument::kLineHeight + 4, Anchor::kMiddle,
                  "FLOP for each byte that moves");
    document.upward_text(SvgDocument::kMargin + SvgDocument::kLineHeight / 2, kTop + kHeight / 2, "FLOP/s");
  }

  // The roofs that limit the points have solid lines, other roofs dashed lines.
  SvgDocument::Stroke stroke_of(const Roof& roof, int64_t colour) const {
    const bool is_limit = &roof == &level_ || &roof == &slope_;
    return {.colour = colour, .width = is_limit ? 2.5 : 2.0, .opacity = 1, .is_dashed = !is_limit};
  }

  void draw_roof(SvgDocument& document, const Roof& roof, int64_t colour) const {
    const SvgDocument::Stroke stroke = stroke_of(roof, colour);
    if (!roof.per_byte) {
      // Left of the ridge point the slope is the limit, not the level.
      const double begin = std::max(roof.rate / slope_.rate, x_.low());
      document.lines(fmt::format("M{:g} {:g}H{:g}", x_.pixel(begin), y_.pixel(roof.rate), kLeft + kWidth), stroke);
      return;
    }
    const double begin = std::max(x_.low(), y_.low() / roof.rate);
    const double end = std::min(x_.high(), ridge(roof));
    document.lines(fmt::format("M{:g} {:g}L{:g} {:g}", x_.pixel(begin), y_.pixel(begin * roof.rate), x_.pixel(end),
                               y_.pixel(end * roof.rate)),
                   stroke);
    const double x = x_.pixel(ridge(roof));
    document.lines(fmt::format("M{:g} {:g}V{:g}", x, y_.pixel(level_.rate), kTop + kHeight),
                   {.colour = colour, .opacity = 0.8, .is_dashed = true});
    document.dot(x, y_.pixel(level_.rate), colour, true,
                 fmt::format("ridge point of {}: {:.4g} FLOP per byte", roof.name, ridge(roof)));
  }

  std::string legend(const Roof& roof) const {
    const std::string rate = si_text(roof.rate);
    const std::string_view space = rate.find(' ') == std::string::npos ? " " : "";
    if (!roof.per_byte) return fmt::format("{}: {}{}FLOP/s", roof.name, rate, space);
    return fmt::format("{}: {}{}B/s, ridge point at {:.4g} FLOP per byte", roof.name, rate, space, ridge(roof));
  }

  // Labels are to the right of and below their points, low enough not to cover another label. A label that does not fit
  // appears only as a tooltip.
  void draw_points(SvgDocument& document) {
    struct Box {
      double left, right, y;
    };
    std::vector<Box> boxes;
    std::vector<const RooflinePoint*> from_the_right;  // so that lines to labels do not cross other labels
    for (const RooflinePoint& point : plot_.points) {
      document.dot(x_.pixel(point.flops_per_byte), y_.pixel(height_of(point)), point.roof, !point.is_measured,
                   tooltip_of(point));
      from_the_right.push_back(&point);
    }
    std::ranges::stable_sort(from_the_right, std::ranges::greater{}, &RooflinePoint::flops_per_byte);
    for (const RooflinePoint* each : from_the_right) {
      const RooflinePoint& point = *each;
      const double x = x_.pixel(point.flops_per_byte);
      const double y = y_.pixel(height_of(point));
      bool is_placed = false;
      for (int step = 0; step < kLabelSteps && !is_placed && boxes.size() < kMaxLabels; ++step) {
        const Box box{x + 8, x + 8 + SvgDocument::label_width(text_width(point.label)), y + 13 + step * 16.0};
        const bool is_free = box.y < kTop + kHeight - 8 && std::ranges::none_of(
                                                               boxes,
                                                               [&](const Box& other) {
                                                                 return box.left < other.right &&
                                                                        other.left < box.right &&
                                                                        std::abs(box.y - other.y) < 15;
                                                               });
        if (!is_free) continue;
        if (step > 0) {
          document.lines(fmt::format("M{:g} {:g}V{:g}h5", x, y + 5, box.y), {.colour = point.roof, .opacity = 0.8});
        }
        document.text(box.left, box.y, Anchor::kStart, point.label);
        boxes.push_back(box);
        is_placed = true;
      }
      if (!is_placed) ++hidden_labels_;
    }
  }

  std::string tooltip_of(const RooflinePoint& point) const {
    const std::string flops = si_text(height_of(point));
    const std::string of = point.roof < 0 ? "" : " of " + plot_.roofs[static_cast<size_t>(point.roof)].name;
    return fmt::format("{}: {:.4g} FLOP per byte{}, {}{}FLOP/s, {}", point.label, point.flops_per_byte, of, flops,
                       flops.find(' ') == std::string::npos ? " " : "",
                       point.is_measured ? "measured" : "by the model");
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    const bool has_measured = std::ranges::any_of(plot_.points, &RooflinePoint::is_measured);
    const bool has_modelled =
        std::ranges::any_of(plot_.points, [](const RooflinePoint& point) { return !point.is_measured; });
    if (has_measured && has_modelled) {
      notes.emplace_back("filled points are measured, hollow ones by the model");
    } else if (has_measured) {
      notes.emplace_back("points are measured");
    } else if (has_modelled) {
      notes.emplace_back("points are by the model");
    }
    if (hidden_labels_ > 0) {
      notes.push_back(
          fmt::format("{} of {} points have their label under the pointer only", hidden_labels_, plot_.points.size()));
    }
    notes.insert(notes.end(), plot_.notes.begin(), plot_.notes.end());
    return notes;
  }

  const RooflinePlot& plot_;
  const Roof& level_;
  const Roof& slope_;
  LogAxis x_;
  LogAxis y_;
  size_t hidden_labels_ = 0;
};

}  // namespace

std::string roofline_svg(const RooflinePlot& plot) {
  check(plot);
  return RooflineDrawing(plot).draw();
}

}  // namespace artifex_devices
