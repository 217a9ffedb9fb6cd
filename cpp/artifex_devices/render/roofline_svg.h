// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace artifex_devices {

/// A limit in a roofline plot: with `per_byte`, the bandwidth of memory or a network in bytes/s, drawn as a slope;
/// otherwise the peak rate of a number format in FLOP/s, drawn as a level.
struct Roof {
  std::string name;
  double rate = 0;
  bool per_byte = false;
};

/// A computation in a roofline plot.
struct RooflinePoint {
  std::string label;  // "batch 8"
  double flops_per_byte = 0;
  double flops = 0;  // FLOP/s; 0 means the rate that the roofs allow
  bool is_measured = false;
  int64_t roof =
      -1;  // index of the roof that carries the bytes, for the colour; -1: the first slope, in the page's colour
};

struct RooflinePlot {
  std::string title;
  std::vector<Roof> roofs;  // at least one level and one slope; the first of each limit the points
  std::vector<RooflinePoint> points;
  std::vector<std::string> notes;  // sources of the numbers
};

/// A roofline plot as a stand-alone SVG picture: FLOP/s over FLOP per byte, both logarithmic. It has the roofs, the
/// ridge points where slopes meet the first level, and the points: measured ones filled, modelled ones hollow. Labels
/// without enough space beside or below their points appear only as tooltips, and a note counts them. Example: 1e14
/// FLOP/s and 1e12 bytes/s have a ridge point at 100 FLOP per byte. Throws one InvalidArgument that lists all faults:
/// rates, FLOP/s and FLOP per byte that are not finite and above 0, no level or no slope, points whose roof is not a
/// slope, and more than 64 roofs or 4096 points.
std::string roofline_svg(const RooflinePlot& plot);

}  // namespace artifex_devices
