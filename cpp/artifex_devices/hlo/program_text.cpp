// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/program_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/hlo/stablehlo_text.h"
#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

bool contains(std::string_view text, std::string_view part) noexcept { return text.find(part) != kNone; }

/// The backend that compiled a text, as far as its layouts and configurations tell.
std::string_view backend_of(std::string_view text, bool is_scheduled, const std::vector<Collective>& collectives) {
  static constexpr std::array<std::string_view, 7> kGpu = {
      "operation_queue_id", "collective_backend_config", "fusion_backend_config", "__cublas", "__cudnn",
      "__triton",           "fingerprint_before_lhs"};
  if (contains(text, ":T(8,128)") || contains(text, ":T(128)") || contains(text, ":T(1024)")) return "tpu";
  if (std::any_of(kGpu.begin(), kGpu.end(), [&](std::string_view mark) { return contains(text, mark); })) return "gpu";
  const auto is_async = [](const Collective& each) { return each.is_async; };
  if (!is_scheduled || std::any_of(collectives.begin(), collectives.end(), is_async)) return {};
  return "cpu";  // which has no marks of its own in every program
}

std::string text_of(const MeshAxes& mesh) {
  std::string text;
  for (const auto& [name, size] : mesh) text += (text.empty() ? "" : ", ") + name + "=" + std::to_string(size);
  return text;
}

/// Chooses the mesh and sets the axes of each collective.
void name_axes(ProgramText& program, const MeshAxes& given, const MeshAxes& declared) {
  const int64_t size = device_count(given);
  if (!given.empty() && size != program.devices && !program.collectives.empty()) {
    throw_error(
        "audit.program: mesh has {} devices ({}), the program {}; expected as many; give the mesh that the "
        "program was compiled for",
        size, text_of(given), program.devices);
  }
  if (program.devices == 1) program.devices = std::max<int64_t>(1, device_count(given.empty() ? declared : given));
  program.mesh = given.empty() ? declared : given;
  if (program.mesh.empty() || device_count(program.mesh) != program.devices) {
    std::vector<const Groups*> groups;
    std::vector<bool> is_seen(program.groups.size(), false);
    for (const Collective& each : program.collectives) {
      if (each.has_pairs || is_seen[each.groups]) continue;
      is_seen[each.groups] = true;
      groups.push_back(&program.groups.at(each.groups));
    }
    if (!program.collectives.empty()) program.mesh = find_mesh(groups, program.devices);
  }
  std::vector<std::optional<std::optional<std::vector<size_t>>>> known(2 * program.groups.size());
  for (Collective& each : program.collectives) {
    std::optional<std::optional<std::vector<size_t>>>& axes = known[2 * each.groups + (each.has_pairs ? 1 : 0)];
    if (each.groups == 0) continue;
    if (!axes) {
      const Groups& groups = program.groups.at(each.groups);
      axes = each.has_pairs ? axes_of_pairs(groups, program.mesh) : axes_of_groups(groups, program.mesh);
    }
    each.axes = *axes;
  }
}

void add_notes(ProgramText& program, bool is_cut, int64_t unread_lines) {
  const auto& collectives = program.collectives;
  if (is_cut) program.notes.emplace_back("the text ends in the middle: it was read as far as it goes");
  if (unread_lines > 0)
    program.notes.push_back(std::to_string(unread_lines) + " lines of the text were not understood");
  if (!program.is_partitioned) {
    program.notes.emplace_back(
        "the text is from before partitioning: collectives that the compiler inserts are missing");
  }
  if (program.groups.is_incomplete()) program.notes.emplace_back("the groups of some collectives could not be read");
  if (std::any_of(collectives.begin(), collectives.end(), [](const Collective& each) { return !each.runs; })) {
    program.notes.emplace_back(is_cut ? "runs are unknown where the text lacks the caller or a trip count"
                                      : "runs are unknown where the text lacks a trip count or has branches");
  }
}

ProgramText read_hlo(std::string_view text, const MeshAxes& mesh) {
  const Module module = read_module(text);
  if (module.instructions.empty()) {
    throw_error(
        "audit.program: the HLO text has no instructions; expected computations below its first line; give the "
        "whole text of compiled.as_text()");
  }
  ProgramText program;
  program.source = "HLO text";
  program.name = std::string(module.name);
  program.collectives = find_collectives(module, count_executions(module), program.groups, program.devices);
  const bool is_scheduled = attribute(module.attributes, "is_scheduled") == "true";
  program.backend = backend_of(text, is_scheduled, program.collectives);
  const std::string_view entry =
      module.entry < 0 ? std::string_view() : module.computations[static_cast<size_t>(module.entry)].name;
  program.is_partitioned = is_scheduled || contains(entry, "_spmd");
  program.findings = find_suspicious(module, program.collectives, program.groups, program.devices, program.backend);
  name_axes(program, mesh, declared_mesh(text.substr(0, text.find('\n', text.find("HloModule")))));
  add_notes(program, module.is_cut, module.unread_lines);
  return program;
}

ProgramText read_mlir(std::string_view text, const MeshAxes& mesh) {
  const MeshAxes declared = declared_mesh(text);
  ProgramText program;
  StablehloModule module = read_stablehlo(text, declared.empty() ? mesh : declared, program.groups);
  program.source = "StableHLO text";
  program.name = std::string(module.name);
  program.devices = module.devices;
  program.collectives = std::move(module.collectives);
  name_axes(program, mesh, declared);
  add_notes(program, module.is_cut, 0);
  return program;
}

}  // namespace

ProgramText read_program(std::string_view text, const MeshAxes& mesh) {
  if (is_hlo_text(text)) return read_hlo(text, mesh);
  if (is_stablehlo_text(text)) return read_mlir(text, mesh);
  throw_error(
      "audit.program: the text is neither HLO nor StableHLO; expected a first line \"HloModule name\" or "
      "\"module @name\"; give compiled.as_text() or lowered.as_text()");
}

}  // namespace artifex_devices::hlo
