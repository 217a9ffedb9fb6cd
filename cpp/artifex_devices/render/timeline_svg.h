// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace artifex_devices {

/// Input of timeline_svg.
struct TimelinePicture {
  struct Span {
    int64_t track = 0;
    int64_t kind = 0;  // place among `kinds`
    double begin_s = 0, end_s = 0;
    std::string label, tooltip;
  };
  struct Arrow {
    int64_t from_track = 0, to_track = 0;
    double from_s = 0, to_s = 0;
  };
  struct Memory {
    int64_t track = 0;                              // below which its curve is drawn
    std::vector<std::pair<double, int64_t>> steps;  // bytes from each time on, by time
  };

  std::string title = {};
  std::vector<std::string> tracks = {};
  std::vector<std::string> kinds = {};  // texts of the legend
  std::vector<Span> spans = {};
  std::vector<Arrow> arrows = {};
  std::vector<Memory> memory = {};
  std::vector<std::string> notes = {};
};

/// A row for each track, with its spans over time, arrows between tracks, and curves of memory. At most 64 tracks,
/// 4,000 spans and 200 arrows are drawn; a note reports how many are not. Throws InvalidArgument for a span or an arrow
/// of a track or kind that does not exist, and for times that are not finite or end before they begin.
std::string timeline_svg(const TimelinePicture& picture);

}  // namespace artifex_devices
