// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// A machine as a stand-alone SVG picture: nested boxes for its objects, and a tile for each PU and memory node in the
/// colour of the CPU device that owns it (hollow if none does). PCI hardware is drawn below. An object with a single
/// child shares the child's box. At most `max_cells` PUs are drawn; a note counts the omitted ones.
std::string machine_svg(const Machine& machine, int max_cells = 1024);

}  // namespace artifex_devices
