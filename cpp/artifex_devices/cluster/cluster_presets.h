// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "artifex_devices/cluster/cluster.h"

namespace artifex_devices {

/// The chip of a row of the catalogue.
ClusterChip chip_of(const Accelerator& row);

/// Which axes of a torus of these chips wrap, by the rule of the catalogue: "cube4" all where all are multiples of 4,
/// "axis16" those of length 16; none without a rule.
std::vector<bool> wraps_by_rule(const Accelerator& row, const std::vector<int>& dims);

/// Bytes of memory of a host with so many chips of the catalogue, where they are published: those of virtual machines
/// on TPU v5e, of hosts on v6e, of DGX A100, H100 and H200, of a DGX-2, and of a server of 8 MI300X.
std::optional<SourcedNumber> host_memory_of(std::string_view chip_name, int64_t chips_per_host);

/// `slices` TPU slices of a shape, from the catalogue. `generation` is "v4", "v5e", "v5p", "v6e" or "7x" (with or
/// without "TPU "). Throws InvalidArgument listing what there is for another generation, or for a shape that is not
/// offered:
/// - v5e, v6e: 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16 (or the axes swapped); an axis of 16 wraps;
/// - v4, v5p, 7x: 2x2x1, 2x2x2, 2x2x4, 2x4x4, or three multiples of 4, ascending, within the pod; these last wrap on
/// all
///   axes, the others on none.
/// Sources: the catalogue's; a hop's 1e-6 s [S5]; the data-centre network's step as NCCL's model has it [S22].
/// `host_memory` replaces the catalogue's.
ClusterRef tpu_cluster(std::string_view generation, const std::vector<int>& shape, int64_t slices,
                       const std::optional<SourcedNumber>& host_memory = std::nullopt);

/// Values of a GPU's nodes that replace the catalogue's.
struct GpuOptions {
  std::optional<int> chips_per_node{};               // nullopt: the catalogue's domain
  std::optional<SourcedNumber> network_bandwidth{};  // of each chip, one way; nullopt: the catalogue's
  std::optional<SourcedNumber> host_memory{};        // bytes of each host; nullopt: the catalogue's
};

/// `nodes` NVLink domains (or nodes of MI300X, each pair joined) of one GPU of the catalogue, by its HardwareType
/// ("h100"), name, device kind or short name ("h200", "b200", "gb200", "mi300x", "v100-32gb", "a100-40gb"). Throws
/// InvalidArgument listing the known ones for another, for nodes below 1, and for a chip whose domain the catalogue
/// does not know without `chips_per_node`.
ClusterRef gpu_cluster(std::string_view gpu, int64_t nodes, const GpuOptions& options);

/// What joins `count` GPUs that report the name `device_kind`: one node of them up to the catalogue's number in a node,
/// and whole nodes beyond. Null where the catalogue does not know, or where `count` is not a number of whole nodes.
ClusterRef links_of_gpus(std::string_view device_kind, int64_t count);

}  // namespace artifex_devices
