// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/cluster_file.h"

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster_presets.h"

namespace artifex_devices {
namespace {

/// A chip by HardwareType, name, device kind or PCI id.
const Accelerator* find_chip(const std::string& name) {
  std::string lower = name;
  for (char& c : lower) {
    if (static_cast<unsigned char>(c) >= 0x80) return nullptr;  // all names of the catalogue are ASCII
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const Accelerator* row = find_accelerator_of_type(lower);
  if (row == nullptr) row = find_accelerator_by_name(name);
  if (row == nullptr) row = find_accelerator_by_kind(name);
  return row != nullptr ? row : find_accelerator_by_pci(name);
}

void check_agreement(const Accelerator& row, const ClusterFile::Chip& chip) {
  if (chip.platform && *chip.platform != row.platform) {
    throw_error(
        "[chip] has the name '{}' and the platform '{}'; expected '{}', as in the catalogue; leave platform out or "
        "rename the chip",
        row.name, *chip.platform, row.platform);
  }
  const Accelerator* other = chip.device_kind ? find_chip(*chip.device_kind) : &row;
  if (other != nullptr && other != &row) {
    throw_error(
        "[chip] has the name '{}' and the device_kind '{}', which belongs to '{}'; expected one chip; leave "
        "device_kind out or rename the chip",
        row.name, *chip.device_kind, other->name);
  }
}

ClusterChip chip_from(const ClusterFile::Chip& chip, const std::string& source) {
  if (!chip.name) throw_error("[chip] has no name; expected a name of the catalogue, or another name and a platform");
  const Accelerator* row = find_chip(*chip.name);
  if (row == nullptr && !chip.platform) {
    throw_error(
        "[chip] has the name '{}', which is not in the catalogue, and no platform; expected \"tpu\", \"gpu\" or "
        "\"cpu\"",
        *chip.name);
  }
  ClusterChip result;
  if (row != nullptr) {
    check_agreement(*row, chip);
    result = chip_of(*row);
  } else {
    result.name = result.device_kind = *chip.name;
  }
  result.platform = chip.platform.value_or(result.platform);
  result.device_kind = chip.device_kind.value_or(result.device_kind);
  result.devices_per_chip = chip.devices_per_chip.value_or(result.devices_per_chip);
  if (chip.memory_bytes) result.memory_bytes = SourcedNumber{*chip.memory_bytes, source};
  if (chip.memory_bandwidth) result.memory_bandwidth = SourcedNumber{*chip.memory_bandwidth, source};
  for (const auto& [format, flops] : chip.peak_flops) {
    result.peak_flops[static_cast<size_t>(peak_format_from_name(format))] = SourcedNumber{flops, source};
  }
  return result;
}

std::vector<int> slice_dims(const ClusterFile::Slice& slice, std::string_view kind) {
  if (!slice.dims && !slice.chips) throw_error("[slice] has no size; expected dims (of a torus) or chips");
  if (slice.dims && slice.chips) throw_error("[slice] has dims and chips; expected one of them");
  const bool is_known = kind == "torus" || kind == "switch" || kind == "full mesh";
  if (is_known && (kind == "torus") != slice.dims.has_value()) {
    throw_error("[slice] has the kind '{}' and {}; expected dims with a torus, chips with the other kinds", kind,
                slice.dims ? "dims" : "chips");
  }
  return slice.dims ? *slice.dims : std::vector<int>{*slice.chips};
}

std::vector<int> host_shape(const ClusterFile::Host& host, const std::vector<int>& dims) {
  if (host.shape && host.chips) throw_error("[host] has shape and chips; expected one of them");
  if (host.shape) return *host.shape;
  if (host.chips && dims.size() > 1) {
    throw_error("[host] has chips; expected shape, chips along each axis of the torus");
  }
  return host.chips ? std::vector<int>{*host.chips} : dims;
}

/// Bytes/s of network for each chip.
std::optional<double> network_bandwidth(const ClusterFile& file, const std::vector<int>& shape) {
  const ClusterFile::Host& host = file.host;
  if (!host.nics && !host.nic_bandwidth) return file.network_bandwidth;
  if (file.network_bandwidth) {
    throw_error("[network] has a bandwidth and [host] has NICs; expected one of them");
  }
  if (!host.nic_bandwidth) throw_error("[host] has nics; expected nic_bandwidth too, bytes/s of one");
  const int nics = host.nics.value_or(1);
  if (nics < 1 || *host.nic_bandwidth <= 0) {
    throw_error("[host] has nics or a nic_bandwidth of 0 or less; expected 1 or more, above 0 bytes/s");
  }
  double chips = 1;
  for (const int size : shape) chips *= std::max(size, 1);
  return nics * *host.nic_bandwidth / chips;
}

std::optional<SourcedNumber> sourced(std::optional<double> value, const std::string& source) {
  return value ? std::optional(SourcedNumber{*value, source}) : std::nullopt;
}

}  // namespace

NetworkKind network_kind_from_name(std::string_view name) {
  for (const NetworkKind kind : {NetworkKind::kTorus, NetworkKind::kSwitch, NetworkKind::kFullMesh}) {
    if (name == to_string(kind)) return kind;
  }
  throw_error("cluster: network is {:?}; expected \"torus\", \"switch\" or \"full mesh\"", name);
}

MatmulFormat peak_format_from_name(const std::string& name) {
  if (const auto format = matmul_format_from_name(name)) return *format;
  throw_error("cluster: peak_flops names {:?}; expected formats such as \"bfloat16\" or \"int8\"", name);
}

ClusterParts cluster_parts(const ClusterFile& file, const std::string& source) {
  ClusterParts parts;
  parts.chip = chip_from(file.chip, source);
  const std::string kind = file.slice.kind.value_or(file.slice.dims ? "torus" : "switch");
  parts.inside.dims = slice_dims(file.slice, kind);
  parts.host_shape = host_shape(file.host, parts.inside.dims);
  parts.between.bandwidth = sourced(network_bandwidth(file, parts.host_shape), source);
  parts.between.latency = sourced(file.network_latency, source);
  parts.name = file.name.value_or(source.substr(source.rfind('/') + 1));
  parts.slices = file.slices.value_or(1);
  parts.inside.kind = network_kind_from_name(kind);
  parts.inside.link_kind = file.slice.link_kind.value_or("");
  const std::vector<bool> no_wraps(kind == "torus" ? parts.inside.dims.size() : 0, false);
  parts.inside.wraps = file.slice.wraps.value_or(no_wraps);
  parts.inside.bandwidth = sourced(file.slice.bandwidth, source);
  parts.inside.latency = sourced(file.slice.latency, source);
  parts.host_source = source;
  parts.host_memory = sourced(file.host.memory_bytes, source);
  if (file.host.bandwidth) parts.chip.host_bandwidth = SourcedNumber{*file.host.bandwidth, source};
  return parts;
}

}  // namespace artifex_devices
