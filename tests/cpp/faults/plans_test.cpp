// SPDX-License-Identifier: Apache-2.0
// Machines, meshes, shardings, plans, files and pictures where memory runs short.
#include <numeric>

#include "../planner/made_clusters.h"
#include "../planner/step_models.h"
#include "../sharding/worlds.h"
#include "artifex_devices/array/layout.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/cluster/torus_assignment.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/device/device_assignment.h"
#include "artifex_devices/device/device_topology.h"
#include "artifex_devices/device/heap_profile.h"
#include "artifex_devices/render/machine_svg.h"
#include "artifex_devices/render/mesh_text.h"
#include "artifex_devices/render/placed_mesh.h"
#include "artifex_devices/render/reshard_svg.h"
#include "artifex_devices/render/sharding_text.h"
#include "artifex_devices/render/svg.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_devices/topology/pci_functions.h"
#include "artifex_devices/topology/system_files.h"
#include "artifex_devices/topology/world_text.h"
#include "artifex_devices/transfer/reshard.h"
#include "artifex_planner/cost/collectives.h"
#include "artifex_planner/reshard/price.h"
#include "artifex_planner/reshard/sequence.h"
#include "artifex_planner/step/cost.h"
#include "artifex_planner/step/suggestion.h"
#include "failing.h"

namespace artifex_devices::faults {
namespace {

using namespace planner;

/// Nothing here asks the system for pages or threads.
void expect_made_or_refused(const char* name, const std::function<std::string()>& work, int64_t step = 1) {
  EXPECT_GT(fail_each(name, Call::kNew, work, step), 0) << name;
}

PartitionSpec spec(const std::vector<std::vector<std::string>>& dimensions) {
  std::vector<SpecEntry> entries;
  for (const auto& axes : dimensions) entries.emplace_back(names(axes));
  return PartitionSpec(std::move(entries));
}

ShardingRef sharding_of(const MeshRef& mesh, const std::vector<std::vector<std::string>>& dimensions) {
  return NamedSharding::make(mesh, spec(dimensions), MemoryKind::kDevice, Uneven::kLastShort);
}

std::string text_of(const IndexDomain& domain) { return to_string(domain.origin) + to_string(domain.shape); }

TEST(MachinesUnderFaults, LoadCompletelyOrFail) {
  expect_made_or_refused("from_synthetic", [] {
    const auto machine = Machine::from_synthetic("pack:2 [numa] core:2 pu:2");
    return fmt::format("{} {}", machine->source(), machine->cpu_domains().size());
  });
  const std::string xml = Machine::from_synthetic("pack:2 [numa] core:2 pu:1")->to_xml();
  expect_made_or_refused("from_xml_text",
                         [&] { return Machine::from_xml_text(xml)->cpu_domains()[1].cpus.to_string(); });
  expect_made_or_refused("to_xml", [] { return Machine::from_synthetic("numa:1 core:2 pu:1")->to_xml(); });
  expect_made_or_refused("parse_world", [] { return parse_world("12 nodes x 4").synthetic; });
  const auto machine = Machine::from_synthetic("pack:2 [numa] core:2 pu:2");
  expect_made_or_refused("machine_svg", [&] { return machine_svg(*machine); }, 3);
}

TEST(MachinesUnderFaults, ReadSystemFilesCompletelyOrFail) {
  expect_made_or_refused("read_cgroup_limits", [] {
    const CgroupLimits limits = read_cgroup_limits();
    return fmt::format("{} {}", limits.cpus.value_or(-1), limits.memory_bytes.value_or(-1));
  });
  expect_made_or_refused("usable_memory_bytes_now", [] { return fmt::format("{}", usable_memory_bytes_now()); });
  expect_made_or_refused("missing_facts", [] {
    std::string text;
    for (const MissingFact& each : missing_facts()) text += each.fact + each.reason + each.assumed;
    return text + memory_policy().name;
  });
  expect_made_or_refused("read_sysfs_pci", [] {
    std::vector<std::string> problems;
    const size_t found = read_sysfs_pci("", problems).size();
    return fmt::format("{} {} {}", found, problems.size(), read_kfd_gpus("").size());
  });
}

TEST(ShardingsUnderFaults, BuildTheirMapsOrFail) {
  const ClientRef world = world_of(8, 2);
  expect_made_or_refused("make_mesh", [&] {
    const MeshRef mesh = mesh_of(world, {2, 4}, {"x", "y"});
    const MeshRef same = mesh_of(world, {2, 4}, {"x", "y"});
    EXPECT_EQ(mesh, same);
    return mesh->repr();
  });
  EXPECT_EQ(Mesh::live_count(), 0);
  expect_made_or_refused("NamedSharding", [&] {
    const ShardingRef made = sharding_of(mesh_of(world, {2, 4}, {"x", "y"}), {{"y", "x"}, {}});
    const ShardDomains domains = made->domains({13, 8}, "test");
    std::string text = made->to_string();
    for (int64_t tile = 0; tile < 8; ++tile) text += text_of(domains.domain(TileId(tile)));
    return text;
  });
  EXPECT_EQ(Mesh::live_count(), 0);
  expect_made_or_refused("the error of a spec", [&] {
    const MeshRef mesh = mesh_of(world, {2, 4}, {"data", "model"});
    return message_of<InvalidArgument>([&] { sharding_of(mesh, {{"datum"}}); });
  });
  const MeshRef mesh = mesh_of(world, {2, 4}, {"x", "y"});
  const ShardingRef rows = sharding_of(mesh, {{"y", "x"}, {}});
  expect_made_or_refused("sharding_text", [&] { return sharding_text(*rows, {16, 8}); });
  expect_made_or_refused("mesh_text", [&] { return mesh_text(*mesh); });
  expect_made_or_refused("mesh_svg", [&] { return mesh_svg(*mesh); }, 3);
  expect_made_or_refused("sharding_svg", [&] { return sharding_svg(*rows, {16, 8}); }, 3);
}

TEST(FilesUnderFaults, AreReadCompletelyOrFail) {
  const ClientRef world = world_of(8, 2);
  const std::string bytes = DeviceTopology::of(*world, "test").serialize();
  expect_made_or_refused("DeviceTopology.of", [&] { return DeviceTopology::of(*world, "test").serialize(); });
  expect_made_or_refused("DeviceTopology.deserialize", [&] { return DeviceTopology::deserialize(bytes).serialize(); });
  expect_made_or_refused("make_compile_only_client", [&] {
    return DeviceTopology::deserialize(bytes).make_compile_only_client()->device(DeviceId(7))->repr();
  });
  expect_made_or_refused("DeviceAssignment", [] {
    const auto made = DeviceAssignment::make(2, 2, {3, 1, 0, 2}, "test");
    const auto read = DeviceAssignment::deserialize(made.serialize());
    return read.to_string() + fmt::format("{}", read.logical_ids_for_device(2).second);
  });
  expect_made_or_refused("heap_profile", [] {
    return heap_profile({{"cpu:0", 1, 64, "a.py", 3, "f"}, {"cpu:1", 2, 32, "b.py", 4, "g"}}, 17);
  });
  expect_made_or_refused("Layout.parse", [] {
    return artifex_devices::Layout::parse("{1,0}").to_string() +
           message_of<InvalidArgument>([] { artifex_devices::Layout::parse("{1,0:T(8,}"); });
  });
}

TEST(ClustersUnderFaults, ArePlannedForOrFail) {
  expect_made_or_refused("tpu_cluster", [] { return tpu_cluster("v5p", {4, 4, 4}, 2)->name(); });
  expect_made_or_refused("gpu_cluster", [] { return gpu_cluster("h100", 4, {})->name(); });
  expect_made_or_refused("the error of a cluster",
                         [] { return message_of<InvalidArgument>([] { tpu_cluster("v5x", {4, 4}, 1); }); });
  const ClusterRef cluster = tpu_cluster("v5e", {4, 4}, 1);
  expect_made_or_refused("make_cluster_client",
                         [&] { return make_cluster_client(cluster)->device(DeviceId(5))->repr(); });
  const ClientRef client = make_cluster_client(cluster);
  const MeshRef mesh = mesh_of(client, {4, 4}, {"x", "y"});
  const ShardingRef from = sharding_of(mesh, {{"x"}, {"y"}});
  const ShardingRef to = sharding_of(mesh, {{}, {"x", "y"}});
  expect_made_or_refused("placed_mesh_svg", [&] { return placed_mesh_svg(placed_mesh(*mesh)); }, 7);

  const AbstractMesh& axes = mesh->abstract_mesh();
  const PartitionSpec before = spec({{"x"}, {"y"}});
  const PartitionSpec after = spec({{"y"}, {"x"}});
  std::vector<int64_t> ids(16);
  std::iota(ids.begin(), ids.end(), int64_t{0});
  expect_made_or_refused(
      "make_reshard_sequence",
      [&] {
        const ReshardSequence made = make_reshard_sequence({64, 64}, 4, {axes, before}, {axes, after});
        std::string text;
        for (size_t i = 0; i < made.steps.size(); ++i) {
          text += fmt::format("{} {} {} ", to_string(made.steps[i].move), made.steps[i].bytes_in,
                              price_step(*cluster, made, i, ids).expected.seconds());
        }
        return text;
      },
      5);
  expect_made_or_refused(
      "reshard_svg",
      [&] {
        ReshardPicture picture;
        picture.title = "move";
        picture.steps = {"all_to_all"};
        picture.traffic = {{0, 1, 64}};
        return reshard_svg(*from, *to, {64, 64}, picture);
      },
      7);
  expect_made_or_refused("collective_costs", [] {
    std::string text;
    const NodeGroup group{TorusGroup{{{4, true, 1}, {4, true, 1}}, 100, {0, 1}}, 2, 10, {0, 2}};
    for (const TransferCost& each : collective_costs(CollectiveOp::kAllReduce, 1e6, group)) {
      text += fmt::format("{} {} ", each.algorithm, each.seconds());
    }
    return text;
  });
}

TEST(StepsUnderFaults, ArePlannedOrFail) {
  const LetterModel made = two_matrices();
  ClusterParts parts = made_cluster(NetworkKind::kTorus, {4}, {true})->parts();
  parts.chip.peak_flops[static_cast<size_t>(MatmulFormat::kBFloat16)] = SourcedNumber{1000, "given"};
  parts.chip.memory_bandwidth = SourcedNumber{1e6, "given"};
  parts.chip.memory_bytes = SourcedNumber{1e6, "given"};
  const ClusterRef ring = Cluster::make(std::move(parts));
  expect_made_or_refused("plan_step", [&] {
    const StepWork work = step_work(made.model, {4}, made.rules({{'b', 1}, {'e', 1}}));
    std::vector<MeshAxes> wanted{1};
    const StepSeconds seconds =
        step_seconds(work, device_rates(*ring, kPlanStep), step_network(*ring, {4}, {0, 1, 2, 3}, wanted));
    return fmt::format("{} {} {}", seconds.network, seconds.compute, work.memory.at(1));
  });
  expect_made_or_refused(
      "suggest_steps",
      [&] {
        SuggestionSpace space;
        space.shardable = {0, 1, 2, 3};
        space.top = 2;
        for (const auto& sizes : mesh_shapes(4, 2)) space.meshes.push_back({sizes, {0, 1, 2, 3}});
        const Suggestions found = suggest_steps(made.model, *ring, space, ideal_efficiency());
        return fmt::format("{} {} {}", found.best.size(), found.possible, found.best[0].expected.overlapped());
      },
      23);
}

}  // namespace
}  // namespace artifex_devices::faults
