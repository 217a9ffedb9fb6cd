// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/error.h"
#include "artifex_devices/hlo/program_text.h"
#include "fuzz.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const hlo::ProgramText program = hlo::read_program(fuzz::text_of(data, size), {});
    fuzz::require(program.devices >= 1);
    for (const hlo::Collective& each : program.collectives) {
      fuzz::require(each.groups < program.groups.size());
      fuzz::require(!each.bytes || *each.bytes >= 0);
      fuzz::require(!each.runs || *each.runs >= 0);
      fuzz::require(!each.axes || each.axes->size() <= program.mesh.size());
      fuzz::require(each.dtypes.size() == each.shapes.size());
    }
    for (const hlo::Finding& each : program.findings) fuzz::require(each.collective < program.collectives.size());
  } catch (const InvalidArgument&) {
  }
  return 0;
}
