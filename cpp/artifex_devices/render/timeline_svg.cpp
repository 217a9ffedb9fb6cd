// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/seconds_text.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/svg_document.h"

namespace artifex_devices {
namespace {

using Anchor = SvgDocument::Anchor;

constexpr double kAxisWidth = 640;   // of the time axis
constexpr double kRow = 24;          // height of a track
constexpr double kBar = 18;          // height of a span
constexpr double kCurve = 22;        // height of a curve of memory
constexpr double kLeastWidth = 1;    // of a span
constexpr int64_t kNameWidth = 28;   // characters
constexpr int64_t kLineWidth = 100;  // characters
constexpr size_t kMostTracks = 64;
constexpr size_t kMostSpans = 4000;
constexpr size_t kMostArrows = 200;
constexpr int64_t kMostTicks = 8;

void check(const TimelinePicture& picture) {
  const auto tracks = static_cast<int64_t>(picture.tracks.size());
  const auto is_track = [&](int64_t track) { return track >= 0 && track < tracks; };
  const auto is_time = [](double begin_s, double end_s) {
    return std::isfinite(begin_s) && std::isfinite(end_s) && begin_s <= end_s;
  };
  for (const auto& span : picture.spans) {
    const bool is_kind = span.kind >= 0 && span.kind < static_cast<int64_t>(picture.kinds.size());
    if (is_track(span.track) && is_kind && is_time(span.begin_s, span.end_s)) continue;
    throw_error(
        "to_svg: a span is on track {}, of kind {}, from {} s to {} s; expected one of {} tracks and {} kinds, and an end "
        "after the begin; correct it",
        span.track, span.kind, span.begin_s, span.end_s, tracks, picture.kinds.size());
  }
  for (const auto& arrow : picture.arrows) {
    const bool is_finite = std::isfinite(arrow.from_s) && std::isfinite(arrow.to_s);
    if (is_track(arrow.from_track) && is_track(arrow.to_track) && is_finite) continue;
    throw_error("to_svg: an arrow leads from track {} to track {}; expected 0 to {}, and times; correct it",
                arrow.from_track, arrow.to_track, tracks - 1);
  }
  for (const auto& memory : picture.memory) {
    if (is_track(memory.track)) continue;
    throw_error("to_svg: memory is that of track {}; expected 0 to {}; correct it", memory.track, tracks - 1);
  }
}

// The largest of 1, 2 and 5 times a power of ten with at most kMostTicks steps of it in the range.
double tick_of(double range) {
  const double rough = range / static_cast<double>(kMostTicks);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

class TimelineDrawing {
 public:
  explicit TimelineDrawing(const TimelinePicture& picture) : picture_(picture) {
    int64_t characters = 8;
    for (const std::string& name : picture.tracks) characters = std::max(characters, text_width(short_name(name)));
    left_ = SvgDocument::kMargin + SvgDocument::label_width(characters);
    bool is_first = true;
    const auto include = [&](double time_s) {
      begin_s_ = is_first ? time_s : std::min(begin_s_, time_s);
      end_s_ = is_first ? time_s : std::max(end_s_, time_s);
      is_first = false;
    };
    for (const auto& span : picture.spans) {
      include(span.begin_s);
      include(span.end_s);
    }
    if (!(end_s_ > begin_s_)) end_s_ = begin_s_ + 1e-6;
    double y = SvgDocument::kMargin + 2 * SvgDocument::kLineHeight;
    for (size_t track = 0; track < shown_tracks(); ++track) {
      rows_.push_back(y);
      y += kRow;
      if (memory_of(track)) y += kCurve + 6;
    }
    bottom_ = y;
  }

  std::string draw() {
    SvgDocument document(picture_.title);
    document.text(SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight / 2, Anchor::kStart,
                  picture_.title);
    draw_axis(document);
    for (size_t track = 0; track < shown_tracks(); ++track) {
      document.text(left_ - 8, rows_[track] + kRow / 2, Anchor::kEnd, short_name(picture_.tracks[track]));
    }
    size_t drawn = 0;
    for (const auto& span : picture_.spans) {
      if (!is_shown(span.track) || drawn == kMostSpans) {
        ++hidden_spans_;
        continue;
      }
      ++drawn;
      const double x = pixel(span.begin_s);
      document.tile(x, row(span.track) + (kRow - kBar) / 2, std::max(pixel(span.end_s) - x, kLeastWidth), kBar,
                    span.kind, span.label, span.tooltip);
    }
    for (const auto& memory : picture_.memory) draw_memory(document, memory);
    draw_arrows(document);
    return finish(document);
  }

 private:
  static std::string short_name(const std::string& name) {
    if (text_width(name) <= kNameWidth) return name;
    std::string cut;
    int64_t width = 0;
    for (const char c : name) {
      const bool begins = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
      if (begins && ++width > kNameWidth - 3) break;
      cut += c;
    }
    return cut + "...";
  }

  size_t shown_tracks() const { return std::min(picture_.tracks.size(), kMostTracks); }
  bool is_shown(int64_t track) const { return track < static_cast<int64_t>(shown_tracks()); }
  double row(int64_t track) const { return rows_[static_cast<size_t>(track)]; }
  double pixel(double time_s) const {
    return left_ + kAxisWidth * std::clamp((time_s - begin_s_) / (end_s_ - begin_s_), 0.0, 1.0);
  }

  bool memory_of(size_t track) const {
    return std::ranges::any_of(picture_.memory, [&](const auto& memory) {
      return memory.track == static_cast<int64_t>(track) && !memory.steps.empty();
    });
  }

  void draw_axis(SvgDocument& document) const {
    const double step = tick_of(end_s_ - begin_s_);
    std::string grid;
    for (int64_t i = 0; static_cast<double>(i) * step <= end_s_ - begin_s_; ++i) {
      const double time_s = static_cast<double>(i) * step;
      const double x = pixel(begin_s_ + time_s);
      grid += fmt::format("M{:.1f} {:.1f}V{:.1f}", x, SvgDocument::kMargin + 2 * SvgDocument::kLineHeight - 4, bottom_);
      document.text(x, SvgDocument::kMargin + 1.5 * SvgDocument::kLineHeight, Anchor::kMiddle, seconds_text(time_s),
                    true);
    }
    document.lines(grid, {.opacity = 0.15});
  }

  // Steps of bytes over time, from 0 to the most.
  void draw_memory(SvgDocument& document, const TimelinePicture::Memory& memory) const {
    if (!is_shown(memory.track) || memory.steps.empty()) return;
    int64_t most = 1;
    for (const auto& [time_s, bytes] : memory.steps) most = std::max(most, bytes);
    const double floor = row(memory.track) + kRow + kCurve;
    const auto height = [&](int64_t bytes) {
      return floor - kCurve * static_cast<double>(std::max<int64_t>(bytes, 0)) / static_cast<double>(most);
    };
    std::string path = fmt::format("M{:.1f} {:.1f}", pixel(memory.steps[0].first), height(memory.steps[0].second));
    for (const auto& [time_s, bytes] : memory.steps) {
      path += fmt::format("H{:.1f}V{:.1f}", pixel(time_s), height(bytes));
    }
    path += fmt::format("H{:.1f}", left_ + kAxisWidth);
    document.lines(path, {.colour = 0, .width = 1.5, .opacity = 0.9});
    document.text(left_ - 8, floor - kCurve / 2, Anchor::kEnd, fmt::format("up to {}", bytes_text(most)), true);
  }

  void draw_arrows(SvgDocument& document) {
    const SvgDocument::Stroke stroke{.colour = 1, .width = 1.2, .opacity = 0.8};
    size_t drawn = 0;
    for (const auto& arrow : picture_.arrows) {
      if (!is_shown(arrow.from_track) || !is_shown(arrow.to_track) || drawn == kMostArrows) {
        ++hidden_arrows_;
        continue;
      }
      ++drawn;
      const double from_x = pixel(arrow.from_s);
      const double to_x = pixel(arrow.to_s);
      const double to_y = row(arrow.to_track) + kRow / 2;
      document.lines(fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}H{:.1f}", from_x, row(arrow.from_track) + kRow / 2,
                                 std::max(to_x - 10, from_x), to_y, to_x),
                     stroke);
      document.arrow_head(to_x, to_y, stroke);
    }
  }

  std::string finish(SvgDocument& document) const {
    double x = left_;
    double y = bottom_ + SvgDocument::kLineHeight;
    double width = std::max(left_ + kAxisWidth + 30, SvgDocument::label_width(text_width(picture_.title)));
    for (size_t kind = 0; kind < picture_.kinds.size(); ++kind) {
      const double needed = 20 + SvgDocument::label_width(text_width(picture_.kinds[kind]));
      if (x + needed > left_ + kAxisWidth && x > left_) {
        x = left_;
        y += SvgDocument::kLineHeight;
      }
      document.tile(x, y - 6, 12, 12, static_cast<int64_t>(kind), "", picture_.kinds[kind]);
      document.text(x + 18, y, Anchor::kStart, picture_.kinds[kind]);
      x += needed;
    }
    y += SvgDocument::kLineHeight;
    for (const std::string& note : notes()) {
      for (const std::string& line : wrapped(note, kLineWidth)) {
        document.text(SvgDocument::kMargin, y, Anchor::kStart, line, true);
        width = std::max(width, SvgDocument::kMargin + SvgDocument::label_width(text_width(line)));
        y += SvgDocument::kLineHeight;
      }
    }
    return document.finish(width + SvgDocument::kMargin, y);
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = picture_.notes;
    if (picture_.tracks.size() > kMostTracks) {
      notes.push_back(
          fmt::format("{} of {} tracks are not drawn", picture_.tracks.size() - kMostTracks, picture_.tracks.size()));
    }
    if (hidden_spans_ > 0) {
      notes.push_back(fmt::format("{} of {} spans are not drawn", hidden_spans_, picture_.spans.size()));
    }
    if (hidden_arrows_ > 0) {
      notes.push_back(fmt::format("{} of {} arrows are not drawn", hidden_arrows_, picture_.arrows.size()));
    }
    return notes;
  }

  const TimelinePicture& picture_;
  std::vector<double> rows_;  // y of each track
  double left_ = 0;
  double bottom_ = 0;
  double begin_s_ = 0;
  double end_s_ = 0;
  size_t hidden_spans_ = 0;
  size_t hidden_arrows_ = 0;
};

}  // namespace

std::string timeline_svg(const TimelinePicture& picture) {
  check(picture);
  return TimelineDrawing(picture).draw();
}

}  // namespace artifex_devices
