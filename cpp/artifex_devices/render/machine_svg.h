// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// A machine as a stand-alone SVG picture: boxes in boxes as its parts lie in each other, a tile for each PU and memory
/// node in the colour of the CPU device that owns it (hollow: none), hardware behind PCI below. Parts that hold one
/// part only are one box. At most `max_cells` PUs are drawn; a line says what is left out.
std::string machine_svg(const Machine& machine, int max_cells = 1024);

}  // namespace artifex_devices
