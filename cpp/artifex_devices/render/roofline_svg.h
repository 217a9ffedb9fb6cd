// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace artifex_devices {

/// A limit of a roofline plot. Where `per_byte` it is bytes/s, a slope: what the memory or a network carries; else
/// FLOP/s, a level: what a number format does at most.
struct Roof {
  std::string name;
  double rate = 0;
  bool per_byte = false;
};

/// A computation in a roofline plot.
struct RooflinePoint {
  std::string label;  // "batch 8"
  double flops_per_byte = 0;
  double flops = 0;  // FLOP/s; 0: what the roofs allow
  bool is_measured = false;
  int64_t roof = -1;  // that the bytes are of, for its colour; -1: the first in bytes/s, in the colour of the page
};

struct RooflinePlot {
  std::string title;
  std::vector<Roof> roofs;  // a level and a slope at least; the first of each are the limits of points
  std::vector<RooflinePoint> points;
  std::vector<std::string> notes;  // where the numbers are from
};

/// FLOP/s over FLOP a byte, both logarithmic, as a stand-alone SVG picture: the roofs, the ridge points where a slope
/// meets the first level, and the points: filled where they are measured, hollow where the model says them. Labels
/// that find no room beside or below their points are under the pointer only, and a line says so.
/// Example: 1e14 FLOP/s and 1e12 bytes/s have a ridge point at 100 FLOP a byte.
/// Throws InvalidArgument, naming all that is wrong, for rates, FLOP/s and FLOP a byte that are not finite and above 0,
/// without a level or a slope, for bytes of a roof that is none, and for more than 64 roofs or 4096 points.
std::string roofline_svg(const RooflinePlot& plot);

}  // namespace artifex_devices
