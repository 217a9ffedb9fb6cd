// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/reshard_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/sharding_panel.h"
#include "artifex_devices/render/svg_document.h"
#include "artifex_devices/render/traffic_groups.h"

namespace artifex_devices {
namespace {

constexpr double kPort = 17;  // distance between the ends of arrows
constexpr double kRowHeight = 28;
constexpr double kCurveWidth = 200;
constexpr int64_t kMaxArrows = 32;
constexpr int64_t kMaxGroups = 24;
constexpr ShardingPanel::Limits kPanel = {.width = 300, .height = 220, .slices = 8};

double pixels(const std::string& text) { return SvgDocument::label_width(text_width(text)); }

std::vector<int64_t> ids_of(const Sharding& sharding) {
  std::vector<int64_t> ids;
  for (const Device* device : sharding.devices()->devices()) ids.push_back(device->id().number());
  return ids;
}

/// One of the two columns of groups.
struct Column {
  std::vector<int64_t> groups;
  std::map<int64_t, double> heights;
  std::map<int64_t, double> tops;
  double height = 0;
  double label_width = 0;
};

class ReshardDrawing {
 public:
  ReshardDrawing(const Sharding& source, const Sharding& destination, const Dims& shape, const ReshardPicture& picture)
      : picture_(picture),
        before_(source, shape, kPanel, "reshard_svg"),
        after_(destination, shape, kPanel, "reshard_svg") {
    if (picture.traffic.empty()) return;
    const std::vector<int64_t> from = ids_of(source);
    const std::vector<int64_t> to = ids_of(destination);
    groups_ = group_traffic(picture.traffic, from, to, picture.cluster, kMaxArrows, kMaxGroups);
    for (size_t i = 0; i < from.size(); ++i) {
      members_from_[group_of(from[i])].push_back(from[i]);
      part_before_[from[i]] = before_.grid().part_of_tile(source.grid().tile(Position(static_cast<int64_t>(i))));
    }
    for (size_t i = 0; i < to.size(); ++i) {
      members_to_[group_of(to[i])].push_back(to[i]);
      part_after_[to[i]] = after_.grid().part_of_tile(destination.grid().tile(Position(static_cast<int64_t>(i))));
    }
  }

  std::string draw() const {
    SvgDocument document(picture_.title);
    document.text(SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight / 2,
                  SvgDocument::Anchor::kStart, picture_.title);
    double y = SvgDocument::kMargin + 1.5 * SvgDocument::kLineHeight;
    width_ = pixels(picture_.title);
    y = draw_ends(document, y) + SvgDocument::kLineHeight;
    if (!groups_.arrows.empty()) y = draw_arrows(document, y) + SvgDocument::kLineHeight / 2;
    for (const std::string& note : notes()) {
      document.text(SvgDocument::kMargin, y + SvgDocument::kLineHeight / 2, SvgDocument::Anchor::kStart, note, true);
      width_ = std::max(width_, pixels(note));
      y += SvgDocument::kLineHeight;
    }
    return document.finish(width_ + 2 * SvgDocument::kMargin, y + SvgDocument::kMargin);
  }

 private:
  int64_t group_of(int64_t device) const {
    if (groups_.kind == TrafficGroups::Kind::kHosts) return picture_.cluster->place_of(device).process;
    if (groups_.kind == TrafficGroups::Kind::kSlices) return picture_.cluster->place_of(device).slice;
    return device;
  }

  // Draws both arrays, with an arrow and the steps between them.
  double draw_ends(SvgDocument& document, double y) const {
    double words = 80;
    for (const std::string& step : picture_.steps) words = std::max(words, pixels(step));
    const auto lines = static_cast<double>(std::max<size_t>(picture_.steps.size(), 1));
    const double height =
        std::max({before_.height(), after_.height(), lines * SvgDocument::kLineHeight + SvgDocument::kLineHeight});
    const double left = SvgDocument::kMargin;
    const double arrow = left + before_.width() + SvgDocument::kLineHeight / 2;
    const double right = arrow + words + SvgDocument::kLineHeight;
    document.text(left, y + SvgDocument::kLineHeight / 2, SvgDocument::Anchor::kStart, "before");
    document.text(right, y + SvgDocument::kLineHeight / 2, SvgDocument::Anchor::kStart, "after");
    y += SvgDocument::kLineHeight;
    before_.draw(document, left, y + (height - before_.height()) / 2);
    after_.draw(document, right, y + (height - after_.height()) / 2);
    const double middle = y + (height + lines * SvgDocument::kLineHeight) / 2;
    double text = middle - lines * SvgDocument::kLineHeight;
    for (const std::string& step : picture_.steps) {
      document.text(arrow + words / 2, text + SvgDocument::kLineHeight / 2 - 2, SvgDocument::Anchor::kMiddle, step);
      text += SvgDocument::kLineHeight;
    }
    const SvgDocument::Stroke stroke = {.width = 2, .opacity = 0.7};
    document.lines(fmt::format("M{:g} {:g}H{:g}", arrow, middle, arrow + words - 6), stroke);
    document.arrow_head(arrow + words, middle, stroke);
    width_ = std::max(width_, right + after_.width() - SvgDocument::kMargin);
    return y + height;
  }

  std::string label_of(int64_t group, const std::vector<int64_t>& devices) const {
    const std::string members = devices_label(before_.grid().platform(), devices, 16);
    if (groups_.kind == TrafficGroups::Kind::kHosts) return fmt::format("host {}: {}", group, members);
    if (groups_.kind == TrafficGroups::Kind::kSlices) return fmt::format("slice {}: {}", group, members);
    return members;
  }

  bool is_of_devices() const {
    return groups_.kind == TrafficGroups::Kind::kDevices || groups_.kind == TrafficGroups::Kind::kBusiest;
  }

  Column column_of(bool is_after) const {
    Column column;
    column.groups = is_after ? groups_.to : groups_.from;
    const auto& members = is_after ? members_to_ : members_from_;
    std::map<int64_t, int64_t> ports;
    for (const TrafficGroups::Arrow& arrow : groups_.arrows) ++ports[is_after ? arrow.to : arrow.from];
    for (const int64_t group : column.groups) {
      if (is_after && groups_.internal.contains(group)) ++ports[group];
      const double spacing = is_after ? kPort : kPort / 2;
      const double height = std::max(kRowHeight - 4, static_cast<double>(ports[group]) * spacing + 4);
      column.heights[group] = height;
      column.height += height + 4;
      column.label_width = std::max(column.label_width, pixels(label_of(group, members.at(group))) + 8);
    }
    return column;
  }

  // Spreads the shorter column over the height of the longer one.
  static void place(Column& column, double top, double height) {
    const double extra = (height - column.height) / static_cast<double>(column.groups.size());
    double y = top + extra / 2;
    for (const int64_t group : column.groups) {
      column.tops[group] = y;
      y += column.heights[group] + 4 + extra;
    }
  }

  double draw_arrows(SvgDocument& document, double top) const {
    Column from = column_of(false);
    Column to = column_of(true);
    const double height = std::max(from.height, to.height);
    place(from, top, height);
    place(to, top, height);
    double words = 0;
    for (const TrafficGroups::Arrow& arrow : groups_.arrows) words = std::max(words, pixels(bytes_text(arrow.bytes)));
    for (const auto& [group, bytes] : groups_.internal) words = std::max(words, pixels(internal_text(bytes)));
    const double left = SvgDocument::kMargin + from.label_width;
    const double tips = left + kCurveWidth;
    const double right = tips + words;

    std::map<int64_t, int64_t> leaving;
    std::map<int64_t, int64_t> coming;
    std::map<int64_t, int64_t> all_leaving;
    for (const TrafficGroups::Arrow& arrow : groups_.arrows) ++all_leaving[arrow.from];
    for (const TrafficGroups::Arrow& arrow : groups_.arrows) {
      const double share =
          (static_cast<double>(leaving[arrow.from]++) + 0.5) / static_cast<double>(all_leaving[arrow.from]);
      const double start = from.tops[arrow.from] + from.heights[arrow.from] * share;
      const double end = port(to, arrow.to, coming[arrow.to]++);
      const auto source = std::ranges::lower_bound(from.groups, arrow.from) - from.groups.begin();
      const SvgDocument::Stroke stroke = {.colour = source, .width = 1.5, .opacity = 0.9};
      document.lines(fmt::format("M{0:g} {1:g}C{2:g} {1:g} {2:g} {3:g} {4:g} {3:g}", left, start,
                                 left + kCurveWidth / 2, end, tips - 7),
                     stroke);
      document.arrow_head(tips, end, stroke);
      document.text(tips + 4, end, SvgDocument::Anchor::kStart, bytes_text(arrow.bytes));
    }
    for (const auto& [group, bytes] : groups_.internal) {
      document.text(tips + 4, port(to, group, coming[group]), SvgDocument::Anchor::kStart, internal_text(bytes), true);
    }
    draw_column(document, from, SvgDocument::kMargin, members_from_, part_before_);
    draw_column(document, to, right, members_to_, part_after_);
    width_ = std::max(width_, right + to.label_width - SvgDocument::kMargin);
    return top + height;
  }

  std::string internal_text(int64_t bytes) const {
    return fmt::format("{} {}", bytes_text(bytes), is_of_devices() ? "stay" : "inside");
  }

  // The y coordinate at which arrow `number` of a group ends.
  double port(const Column& column, int64_t group, int64_t number) const {
    int64_t ports = groups_.internal.contains(group) ? 1 : 0;
    for (const TrafficGroups::Arrow& arrow : groups_.arrows) ports += arrow.to == group ? 1 : 0;
    const double middle = column.tops.at(group) + column.heights.at(group) / 2;
    return middle + (static_cast<double>(number) - static_cast<double>(ports - 1) / 2) * kPort;
  }

  void draw_column(SvgDocument& document, const Column& column, double x,
                   const std::map<int64_t, std::vector<int64_t>>& members,
                   const std::map<int64_t, int64_t>& part_of) const {
    for (const int64_t group : column.groups) {
      const std::vector<int64_t>& devices = members.at(group);
      const double y = column.tops.at(group);
      const double height = column.heights.at(group);
      const std::string tooltip = devices_label(before_.grid().platform(), devices, 200);
      if (is_of_devices()) {
        document.tile(x, y, column.label_width, height, part_of.at(group), label_of(group, devices), tooltip);
      } else {
        document.box(x, y, column.label_width, height, tooltip);
        document.text(x + column.label_width / 2, y + height / 2, SvgDocument::Anchor::kMiddle,
                      label_of(group, devices));
      }
    }
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (picture_.traffic.empty()) {
      if (!picture_.why_no_traffic.empty()) notes.push_back(picture_.why_no_traffic);
    } else if (groups_.arrows.empty()) {
      notes.emplace_back("nothing goes from device to device");
    } else {
      if (is_of_devices()) notes.emplace_back("tiles of one colour in a column hold the same part of the array");
      if (std::string note = groups_.note(picture_.bytes_by_link); !note.empty()) notes.push_back(std::move(note));
    }
    for (const std::string& note : before_.grid().notes()) notes.push_back("before: " + note);
    for (const std::string& note : after_.grid().notes()) notes.push_back("after: " + note);
    return notes;
  }

  const ReshardPicture& picture_;
  ShardingPanel before_;
  ShardingPanel after_;
  TrafficGroups groups_;
  std::map<int64_t, std::vector<int64_t>> members_from_;
  std::map<int64_t, std::vector<int64_t>> members_to_;
  std::map<int64_t, int64_t> part_before_;
  std::map<int64_t, int64_t> part_after_;
  mutable double width_ = 0;  // of the elements drawn so far
};

}  // namespace

std::string reshard_svg(const Sharding& source, const Sharding& destination, const Dims& shape,
                        const ReshardPicture& picture) {
  return ReshardDrawing(source, destination, shape, picture).draw();
}

}  // namespace artifex_devices
