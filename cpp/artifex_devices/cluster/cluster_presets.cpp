// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/cluster_presets.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/device_words.h"

namespace artifex_devices {
namespace {

// Steps of NCCL's own model, protocol Simple (hardware_facts: a planner's numbers to start from, not measured here).
constexpr const char* kNcclModel = "S22";
constexpr double kNvlinkStep = 3.4e-6;
constexpr double kNetworkStep = 9.6e-6;
constexpr double kTorusHop = 1e-6;

template <size_t N>
std::string joined(const std::array<std::string_view, N>& ids) {
  std::string text;
  for (const std::string_view id : ids) {
    if (id.empty()) continue;
    if (!text.empty()) text += ' ';
    text += id;
  }
  return text;
}

std::optional<SourcedNumber> figure(std::optional<double> value, const std::string& source) {
  return value ? std::optional(SourcedNumber{*value, source}) : std::nullopt;
}

struct ShortName {
  std::string_view text;
  std::string_view row;
};

constexpr std::array kTpus = {
    ShortName{"v4", "TPU v4"},           ShortName{"v5e", "TPU v5e"},
    ShortName{"v5p", "TPU v5p"},         ShortName{"v6e", "TPU v6e (Trillium)"},
    ShortName{"7x", "TPU7x (Ironwood)"},
};

constexpr std::array kGpus = {
    ShortName{"v100", "NVIDIA V100 SXM2/SXM3 32GB"},
    ShortName{"v100-32gb", "NVIDIA V100 SXM2/SXM3 32GB"},
    ShortName{"a100", "NVIDIA A100 SXM 80GB"},
    ShortName{"a100-40gb", "NVIDIA A100 SXM 40GB"},
    ShortName{"h100", "NVIDIA H100 SXM"},
    ShortName{"h800", "NVIDIA H800 SXM"},
    ShortName{"h200", "NVIDIA H200 SXM"},
    ShortName{"b200", "NVIDIA B200 (HGX, 1000 W)"},
    ShortName{"gb200", "NVIDIA GB200 NVL72 (per GPU)"},
    ShortName{"mi300x", "AMD MI300X"},
};

// The NIC bandwidth per chip of these hosts is common knowledge, without a checked source.
constexpr std::string_view kUnverified = "unverified";
constexpr std::array kUnverifiedNetworks = {std::string_view("NVIDIA A100 SXM 80GB"),
                                            std::string_view("NVIDIA A100 SXM 40GB"), std::string_view("AMD MI300X")};

/// Published memory of hosts. That of TPUs is shared evenly: machines with fewer chips have less.
struct HostMemory {
  std::string_view row;
  int chips;
  double bytes;
  std::string_view source;
};
constexpr double kHostGiB = 1073741824;
constexpr std::array kHostMemories = {
    HostMemory{"TPU v5e", 8, 384 * kHostGiB, "S2"},
    HostMemory{"TPU v6e (Trillium)", 8, 1536 * kHostGiB, "S4"},
    HostMemory{"NVIDIA V100 SXM2/SXM3 32GB", 16, 1536 * kHostGiB, "S24"},
    HostMemory{"NVIDIA A100 SXM 40GB", 8, 2048 * kHostGiB, "S24"},
    HostMemory{"NVIDIA A100 SXM 80GB", 8, 2048 * kHostGiB, "S25"},
    HostMemory{"NVIDIA H100 SXM", 8, 2048 * kHostGiB, "S26"},
    HostMemory{"NVIDIA H200 SXM", 8, 2048 * kHostGiB, "S13"},
    HostMemory{"AMD MI300X", 8, 1536 * kHostGiB, "S15"},
};

template <size_t N>
std::string names_of(const std::array<ShortName, N>& names) {
  std::vector<std::string_view> texts;
  for (const ShortName& each : names) texts.push_back(each.text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

template <size_t N>
const Accelerator* row_by_short_name(const std::array<ShortName, N>& names, std::string_view text) {
  const auto* found = std::ranges::find(names, text, &ShortName::text);
  return found == names.end() ? nullptr : find_accelerator_by_name(found->row);
}

const Accelerator* find_tpu(std::string_view generation) {
  std::string text = lower_case(generation);
  if (text.starts_with("tpu")) text.erase(0, text.starts_with("tpu ") ? 4 : 3);
  if (const Accelerator* row = row_by_short_name(kTpus, text)) return row;
  const Accelerator* row = find_accelerator_by_kind(generation);
  if (row == nullptr) row = find_accelerator_by_name(generation);
  return row != nullptr && row->platform == "tpu" && row->links.torus_dims ? row : nullptr;
}

const Accelerator& tpu_of(std::string_view generation) {
  if (const Accelerator* row = find_tpu(generation)) return *row;
  throw_error("cluster.tpu: {:?} is not a generation with known links; expected one of {}", generation,
              names_of(kTpus));
}

const std::vector<std::vector<int>> kFlatShapes = {{1, 1}, {2, 2}, {2, 4}, {4, 4}, {4, 8}, {8, 8}, {8, 16}, {16, 16}};
const std::vector<std::vector<int>> kSmallCubeShapes = {{2, 2, 1}, {2, 2, 2}, {2, 2, 4}, {2, 4, 4}};

std::string text_of(const std::vector<int>& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

std::string texts_of(const std::vector<std::vector<int>>& shapes) {
  std::string text;
  for (const std::vector<int>& shape : shapes) text += (text.empty() ? "" : ", ") + text_of(shape);
  return text;
}

bool contains(const std::vector<std::vector<int>>& shapes, const std::vector<int>& shape) {
  return std::ranges::find(shapes, shape) != shapes.end();
}

// Whether a slice has this shape of three axes.
bool is_cube_shape(const Accelerator& row, const std::vector<int>& shape) {
  if (contains(kSmallCubeShapes, shape)) return true;
  const std::array<int, 3>& pod = row.links.pod;
  bool is_cubes = shape.size() == 3 && std::ranges::is_sorted(shape);
  for (size_t a = 0; a < shape.size() && is_cubes; ++a) {
    is_cubes = shape[a] >= 4 && shape[a] % 4 == 0 && (pod[a] == 0 || shape[a] <= pod[a]);
  }
  // Of the 7x only the number of chips is known: 9216 [S6].
  return is_cubes && (pod[0] != 0 || int64_t{shape[0]} * shape[1] * shape[2] <= 9216);
}

void check_shape(const Accelerator& row, const std::vector<int>& shape) {
  if (row.links.torus_dims == 2) {
    const std::vector<int> swapped(shape.rbegin(), shape.rend());
    if (!contains(kFlatShapes, shape) && !contains(kFlatShapes, swapped)) {
      throw_error("cluster.tpu: {} has no slices of {}; expected one of {}, or the same with the axes swapped",
                  row.name, text_of(shape), texts_of(kFlatShapes));
    }
    return;
  }
  if (is_cube_shape(row, shape)) return;
  const std::array<int, 3>& pod = row.links.pod;
  throw_error(
      "cluster.tpu: {} has no slices of {}; expected one of {}, or three multiples of 4, ascending, {}; sort the axes, "
      "or describe another torus in a TOML file (cluster.from_toml)",
      row.name, text_of(shape), texts_of(kSmallCubeShapes),
      pod[0] == 0 ? "of 9216 chips at most" : fmt::format("up to {}x{}x{}", pod[0], pod[1], pod[2]));
}

// The chips of a host along each axis: the catalogue's, less where the slice is smaller.
std::vector<int> host_of(const Accelerator& row, const std::vector<int>& shape) {
  std::array<int, 3> host = row.host_shape;
  if (host[0] == 0) host = {2, 2, 1};  // 7x: four chips
  // A host of 4x2 chips that fills a 2x4 slice.
  if (shape.size() == 2 && shape[0] % host[0] != 0 && shape[0] % host[1] == 0 && shape[1] % host[0] == 0) {
    std::swap(host[0], host[1]);
  }
  std::vector<int> result;
  for (size_t a = 0; a < shape.size(); ++a) result.push_back(std::min(shape[a], host[a]));
  return result;
}

const Accelerator* find_gpu(std::string_view gpu) {
  const std::string text = lower_case(gpu);
  if (const Accelerator* row = row_by_short_name(kGpus, text)) return row;
  const Accelerator* row = find_accelerator_of_type(text);
  if (row == nullptr) row = find_accelerator_by_name(gpu);
  if (row == nullptr) row = find_accelerator_by_kind(gpu);
  return row != nullptr && row->platform == "gpu" ? row : nullptr;
}

const Accelerator& gpu_of(std::string_view gpu) {
  if (const Accelerator* row = find_gpu(gpu)) return *row;
  throw_error(
      "cluster.gpus: {:?} is not a GPU of the catalogue; expected one of {}, a name of the catalogue or a device kind",
      gpu, names_of(kGpus));
}

std::string short_name(const Accelerator& row) {
  for (const ShortName& each : kGpus) {
    if (each.row == row.name) return std::string(each.text);
  }
  return std::string(row.name);
}

}  // namespace

bool is_tpu_generation(std::string_view generation) { return find_tpu(generation) != nullptr; }

bool is_catalogue_gpu(std::string_view gpu) { return find_gpu(gpu) != nullptr; }

std::string preset_names() { return names_of(kTpus) + ", " + names_of(kGpus); }

std::vector<std::vector<int>> tpu_shapes(std::string_view generation, int64_t chips) {
  const Accelerator& row = tpu_of(generation);
  const auto has_chips = [&](const std::vector<int>& shape) {
    int64_t product = 1;
    for (const int size : shape) product *= size;
    return product == chips;
  };
  std::vector<std::vector<int>> found;
  const bool is_flat = row.links.torus_dims == 2;
  std::ranges::copy_if(is_flat ? kFlatShapes : kSmallCubeShapes, std::back_inserter(found), has_chips);
  if (is_flat || chips % 64 != 0) return found;
  for (int64_t x = 4; x * x * x <= chips; x += 4) {
    for (int64_t y = x; x * y * y <= chips; y += 4) {
      if (chips % (x * y) != 0) continue;
      const std::vector<int> shape = {static_cast<int>(x), static_cast<int>(y), static_cast<int>(chips / (x * y))};
      if (is_cube_shape(row, shape)) found.push_back(shape);
    }
  }
  return found;
}

std::optional<SourcedNumber> host_memory_of(std::string_view chip_name, int64_t chips_per_host) {
  const auto* const found = std::ranges::find(kHostMemories, chip_name, &HostMemory::row);
  if (found == kHostMemories.end()) return std::nullopt;
  const bool is_tpu = chip_name.starts_with("TPU");
  if (is_tpu ? chips_per_host > found->chips : chips_per_host != found->chips) return std::nullopt;
  const double bytes = found->bytes * static_cast<double>(chips_per_host) / found->chips;
  return SourcedNumber{bytes, std::string(found->source)};
}

ClusterChip chip_of(const Accelerator& row) {
  const std::string source = joined(row.sources);
  ClusterChip chip;
  chip.name = row.name;
  chip.platform = row.platform;
  chip.device_kind = row.device_kinds[0];
  chip.devices_per_chip = row.devices_per_chip.value_or(1);
  for (size_t i = 0; i < chip.peak_flops.size(); ++i) chip.peak_flops[i] = figure(row.peak_flops[i], source);
  chip.memory_bytes = figure(static_cast<double>(row.memory_bytes), source);
  chip.memory_bandwidth = figure(row.memory_bandwidth, source);
  chip.host_bandwidth = figure(row.pcie_one_way, joined(row.link_sources));
  return chip;
}

std::vector<bool> wraps_by_rule(const Accelerator& row, const std::vector<int>& dims) {
  const bool is_cubes = row.links.wrap == "cube4" && std::ranges::all_of(dims, [](int size) { return size % 4 == 0; });
  std::vector<bool> wraps;
  for (const int size : dims) wraps.push_back(is_cubes || (row.links.wrap == "axis16" && size == 16));
  return wraps;
}

ClusterRef tpu_cluster(std::string_view generation, const std::vector<int>& shape, int64_t slices,
                       const std::optional<SourcedNumber>& host_memory) {
  const Accelerator& row = tpu_of(generation);
  const std::string links = joined(row.link_sources);
  ClusterParts parts;
  if (std::ranges::any_of(shape, [](int size) { return size < 1; }) ||
      static_cast<int>(shape.size()) != *row.links.torus_dims) {
    throw_error("cluster.tpu: the shape {} does not fit {}; expected {} numbers of chips, 1 or more each",
                text_of(shape), row.name, *row.links.torus_dims);
  }
  check_shape(row, shape);
  parts.inside.wraps = wraps_by_rule(row, shape);
  parts.name = fmt::format("{} {}", row.name.substr(0, row.name.find(" (")), text_of(shape));
  if (slices != 1) parts.name = fmt::format("{} x {}", slices, parts.name);
  parts.chip = chip_of(row);
  parts.slices = slices;
  parts.inside.kind = NetworkKind::kTorus;
  parts.inside.link_kind = row.links.kind;
  parts.inside.dims = shape;
  parts.inside.bandwidth =
      row.links.one_way ? figure(row.links.one_way, links) : figure(row.links.nominal_one_way, links);
  parts.inside.latency = SourcedNumber{kTorusHop, "S5"};
  parts.between.bandwidth = figure(row.network_per_chip, links);
  parts.between.latency = SourcedNumber{kNetworkStep, kNcclModel};
  parts.host_shape = host_of(row, shape);
  parts.host_source = links;
  int64_t chips = 1;
  for (const int size : parts.host_shape) chips *= size;
  parts.host_memory = host_memory ? host_memory : host_memory_of(row.name, chips);
  if (!row.note.empty()) parts.notes.emplace_back(row.note);
  if (!row.links.one_way) parts.notes.emplace_back("the link's bandwidth is the nominal one: no usable rate is known");
  if (!row.links.wrap_note.empty()) parts.notes.push_back(fmt::format("wraparound: {}", row.links.wrap_note));
  if (row.host_shape[0] == 0) parts.notes.emplace_back("hosts of 2x2x1 chips are assumed, as of v4 and v5p");
  if (slices > 1) parts.notes.emplace_back("the step between slices is NCCL's on its network, not Google's");
  return Cluster::make(std::move(parts));
}

ClusterRef gpu_cluster(std::string_view gpu, int64_t nodes, const GpuOptions& options) {
  const Accelerator& row = gpu_of(gpu);
  const std::string links = joined(row.link_sources);
  const bool is_mesh = row.links.switches == 0;
  // A DGX-2; the catalogue's row of the V100 with 32 GB has the 16 chips as its host.
  const bool is_dgx2 = row.name == "NVIDIA V100 SXM2/SXM3 32GB";
  const std::optional<int> chips = options.chips_per_node ? options.chips_per_node
                                   : is_dgx2              ? row.chips_per_host
                                                          : row.links.domain_chips;
  if (!chips) {
    throw_error(
        "cluster.gpus: how {} are joined differs by machine ({}); expected chips_per_node, the GPUs of one domain of "
        "switches",
        row.name, row.links.domain_note);
  }
  ClusterParts parts;
  parts.name = nodes == 1 ? short_name(row) : fmt::format("{} nodes x {} {}", nodes, *chips, short_name(row));
  if (nodes == 1) parts.name = fmt::format("{} {}", *chips, parts.name);
  parts.chip = chip_of(row);
  parts.slices = nodes;
  parts.inside.kind = is_mesh ? NetworkKind::kFullMesh : NetworkKind::kSwitch;
  parts.inside.link_kind = row.links.kind;
  parts.inside.dims = {*chips};
  if (row.links.one_way)
    parts.inside.bandwidth = SourcedNumber{is_mesh ? *row.links.one_way : *row.links.one_way * row.links.links, links};
  parts.inside.latency = SourcedNumber{kNvlinkStep, kNcclModel};
  const bool is_unverified = std::ranges::find(kUnverifiedNetworks, row.name) != kUnverifiedNetworks.end();
  const std::string network = is_unverified ? std::string(kUnverified) : links;
  parts.between.bandwidth =
      options.network_bandwidth ? options.network_bandwidth : figure(row.network_per_chip, network);
  parts.between.latency = SourcedNumber{kNetworkStep, kNcclModel};
  // The 72 GPUs of an NVL72 sit in 18 trays of four.
  const bool is_rack = row.links.domain_chips == 72 && *chips % 4 == 0;
  parts.host_shape = {is_rack ? 4 : *chips};
  parts.host_source = is_rack ? "model" : options.chips_per_node ? "given" : links;
  if (!row.note.empty()) parts.notes.emplace_back(row.note);
  parts.host_memory = options.host_memory ? options.host_memory : host_memory_of(row.name, parts.host_shape[0]);
  if (is_rack) parts.notes.emplace_back("hosts of 4 GPUs (18 trays a rack) are common knowledge and not checked");
  if (is_mesh) parts.notes.emplace_back("the step between chips is NCCL's on NVLink, not AMD's");
  return Cluster::make(std::move(parts));
}

ClusterRef links_of_gpus(std::string_view device_kind, int64_t count) {
  if (count < 1 || count > std::numeric_limits<int>::max()) return nullptr;
  try {
    const ClusterRef node = gpu_cluster(device_kind, 1, {});
    const int64_t each = node->device_count();
    if (count == each) return node;
    if (count < each) return gpu_cluster(device_kind, 1, {.chips_per_node = static_cast<int>(count)});
    return count % each == 0 ? gpu_cluster(device_kind, count / each, {}) : nullptr;
  } catch (const InvalidArgument&) {
    return nullptr;  // the catalogue does not have the GPU, or the number in its nodes
  }
}

}  // namespace artifex_devices
