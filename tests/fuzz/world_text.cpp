// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/world_text.h"

#include <string>

#include "artifex_devices/base/error.h"
#include "fuzz.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const WorldText world = parse_world(std::string(fuzz::text_of(data, size)));
    fuzz::require(world.synthetic.empty() || world.xml_path.empty());
    fuzz::require(!world.num_devices || *world.num_devices >= 1);
  } catch (const InvalidArgument&) {
  }
  return 0;
}
