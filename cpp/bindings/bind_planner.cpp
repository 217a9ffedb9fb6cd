// SPDX-License-Identifier: Apache-2.0
#include "bind_planner.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/partition/ingress_totals.h"
#include "artifex_devices/partition/reshard_check.h"
#include "artifex_devices/planner/direct_way.h"
#include "artifex_devices/planner/part_ingress.h"
#include "artifex_devices/planner/reshard_price.h"
#include "artifex_devices/planner/reshard_sequence.h"
#include "artifex_devices/planner/xla_resharding.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "placed_way.h"
#include "shard_index.h"

namespace artifex_devices::bindings {
namespace {

namespace py = pybind11;

constexpr double kMostCopiesUnasked = 1 << 16;  // on a cluster, where collectives do it too; 0.1 s

/// {"latency", "transfer", "algorithm", "limit"}, or {"error"} where a figure is not known.
py::dict price_dict(const std::function<ReshardPrice()>& price) {
  py::dict result;
  try {
    const ReshardPrice made = price();
    result["latency"] = made.latency;
    result["transfer"] = made.transfer;
    result["algorithm"] = std::string(made.algorithm);
    result["limit"] = std::string(made.limit);
  } catch (const Unavailable& error) {
    result["error"] = error.what();
  }
  return result;
}

void check_devices(const std::vector<int64_t>& devices, const Cluster& cluster) {
  const int64_t count = cluster.device_count();
  const auto found = std::ranges::find_if(devices, [&](int64_t id) { return id < 0 || id >= count; });
  if (found == devices.end()) return;
  throw_error(
      "{}: the mesh has device {}, which the cluster {} has not; expected ids of 0 to {}; make the mesh of "
      "cluster.devices(), or take a larger cluster",
      kPlanReshard, *found, cluster.name(), count - 1);
}

const NamedSharding& named(const Sharding& sharding) {
  const auto* result = dynamic_cast<const NamedSharding*>(&sharding);
  if (result == nullptr) {
    throw_error(
        "{}: {} has no mesh; expected NamedShardings at both ends of a sequence of collectives; use direct copies",
        kPlanReshard, sharding.to_string());
  }
  return *result;
}

ReshardSequence sequence_of(const Dims& shape, int64_t itemsize, const Sharding& source, const Sharding& destination,
                            bool same_devices, std::optional<int64_t> memory_limit) {
  const NamedSharding& from = named(source);
  const NamedSharding& to = named(destination);
  if (!same_devices) {
    throw_error(
        "{}: the meshes have other devices, or the same in another order; expected equal ones for a sequence of "
        "collectives; use direct copies",
        kPlanReshard);
  }
  if (from.uneven() != Uneven::kError || to.uneven() != Uneven::kError) {
    throw_error(
        "{}: uneven shards have no sequence of collectives; expected shardings without uneven=; use direct copies",
        kPlanReshard);
  }
  if (from.memory_kind() != to.memory_kind()) {
    throw_error(
        "{}: the ends are in memory of two kinds, {} and {}; expected one for a sequence of collectives; use direct "
        "copies",
        kPlanReshard, to_string(from.memory_kind()), to_string(to.memory_kind()));
  }
  return without_gil([&] {
    return make_reshard_sequence(shape, itemsize, {from.abstract_mesh(), from.spec()}, {to.abstract_mesh(), to.spec()},
                                 {.memory_limit = memory_limit});
  });
}

ShardDomains cut_of(const ReshardSequence& sequence, size_t step, const Dims& shape) {
  return ShardDomains(sequence.grids[step], shape, Uneven::kError, {.operation = kPlanReshard});
}

/// What each position receives over all steps.
std::vector<int64_t> received(const ReshardSequence& sequence, const Dims& shape, int64_t itemsize) {
  std::vector<int64_t> positions(static_cast<size_t>(sequence.grids.front().positions()));
  std::iota(positions.begin(), positions.end(), int64_t{0});
  std::vector<int64_t> bytes(positions.size(), 0);
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const std::vector<int64_t> in =
        ingress_bytes(cut_of(sequence, i, shape), positions, cut_of(sequence, i + 1, shape), positions, itemsize);
    std::ranges::transform(bytes, in, bytes.begin(), std::plus<>());
  }
  return bytes;
}

py::object ndarray_of(const std::vector<int64_t>& values) {
  return int64_ndarray({static_cast<int64_t>(values.size())}, values);
}

py::dict sequence_dict(ReshardSequence made, const Dims& shape, int64_t itemsize, const std::vector<int64_t>& devices,
                       const Cluster* cluster) {
  const auto sequence = std::make_shared<const ReshardSequence>(std::move(made));
  py::list labels;
  for (const SubAxis& axis : sequence->axes) labels.append(axis.label);
  py::list steps;
  for (size_t i = 0; i < sequence->steps.size(); ++i) {
    const ReshardStep& step = sequence->steps[i];
    py::dict entry;
    entry["move"] = std::string(to_string(step.move));
    entry["axes"] = step.axes;
    entry["from_dimension"] = step.from_dimension;
    entry["to_dimension"] = step.to_dimension;
    entry["group"] = step.group;
    entry["shard_bytes"] = step.shard_bytes;
    entry["shard_bytes_after"] = step.shard_bytes_after;
    entry["bytes_in"] = step.bytes_in;
    const IngressTotals totals =
        ingress_totals(cut_of(*sequence, i, shape), cut_of(*sequence, i + 1, shape), itemsize, "plan_reshard");
    entry["bytes"] = totals.bytes;
    entry["most"] = totals.most_bytes;
    int64_t network = 0;
    if (cluster && step.move == ReshardMove::kPermute) {  // its messages are made once
      const std::vector<DeviceMessage> messages = without_gil([&] { return permute_messages(*sequence, i, devices); });
      network = bytes_by_link(*cluster, messages)[static_cast<size_t>(ClusterLink::kNetwork)];
      entry["price"] =
          price_dict([&] { return without_gil([&] { return price_messages(*cluster, messages).price; }); });
    } else if (cluster) {
      network = without_gil([&] { return network_bytes(*cluster, *sequence, i, devices); });
      entry["price"] =
          price_dict([&] { return without_gil([&] { return price_step(*cluster, *sequence, i, devices); }); });
    }
    entry["network_bytes"] = network;
    steps.append(std::move(entry));
  }
  py::dict result;
  result["axes"] = std::move(labels);
  result["sizes"] = py::list();
  for (const SubAxis& axis : sequence->axes) result["sizes"].cast<py::list>().append(axis.size);
  result["steps"] = std::move(steps);
  result["bytes_in"] =
      py::cpp_function([sequence, shape, itemsize] { return ndarray_of(received(*sequence, shape, itemsize)); });
  result["peak_bytes"] = sequence->peak_bytes;
  result["is_cheapest"] = sequence->is_cheapest;
  return result;
}

py::dict copies_dict(const PlacedWay& placed, const Sharding& from, const Sharding& to, const Cluster* cluster) {
  const DirectWay& way = placed.way;
  py::dict result;
  result["count"] = way.plan.copy_count();
  result["reused"] = way.plan.reused().size();
  result["bytes_reused"] = way.plan.bytes_reused();
  result["bytes_copied"] = way.plan.bytes_copied();
  result["bytes_in"] = ndarray_of(way.bytes_in);
  result["peak_bytes"] = way.peak_bytes;
  py::dict links;
  if (cluster) {
    const std::vector<DeviceMessage> messages = messages_of(way, placed.source, placed.destination);
    const bool from_device = from.memory_kind() == MemoryKind::kDevice;
    const bool crosses_host = from_device != (to.memory_kind() == MemoryKind::kDevice);
    result["price"] = price_dict([&] {
      return without_gil([&] {
        ReshardPrice price = price_messages(*cluster, messages).price;
        if (crosses_host) add_host_link(*cluster, messages, from_device, &price);
        return price;
      });
    });
    const LinkBytes bytes = bytes_by_link(*cluster, messages);
    constexpr std::array<const char*, kClusterLinks> kNames = {"same device", "same chip", "same slice", "network"};
    for (size_t i = 0; i < kNames.size(); ++i) links[kNames[i]] = bytes[i];
  } else {
    constexpr std::array<const char*, kLinks> kNames = {"same device", "same memory", "other memory", "other process",
                                                        "other host"};
    const std::array<int64_t, kLinks> bytes = way.plan.bytes_by_link();
    for (size_t i = 0; i < kNames.size(); ++i) links[kNames[i]] = bytes[i];
  }
  result["bytes_by_link"] = std::move(links);
  return result;
}

/// Both ends of a reshard, by position.
struct Ends {
  ShardDomains source;
  ShardDomains destination;
  std::vector<int64_t> devices_before;
  std::vector<int64_t> devices_after;
  bool same_devices = false;
};

py::dict bound_dict(const Ends& ends, int64_t itemsize, const Cluster* cluster) {
  py::dict result;
  const IngressTotals totals = without_gil([&] {
    return ends.same_devices ? ingress_totals(ends.source, ends.destination, itemsize, "plan_reshard")
                             : ingress_totals(ends.source, ends.devices_before, ends.destination, ends.devices_after,
                                              itemsize, "plan_reshard");
  });
  result["total"] = totals.bytes;
  result["most"] = totals.most_bytes;
  if (cluster == nullptr) return result;
  const auto lacking = [&](ClusterPart part) {
    return without_gil([&] {
      return part_ingress_bytes(ends.source, ends.devices_before, ends.destination, ends.devices_after, *cluster, part,
                                itemsize);
    });
  };
  // By number of the chip; where all chips have as many links the most stands for all.
  const auto chip_bytes = [&] {
    if (!chips_have_equal_links(*cluster)) {
      const std::vector<int64_t> numbers =
          part_numbers(ends.devices_before, ends.devices_after, *cluster, ClusterPart::kChip);
      const std::vector<int64_t> bytes = lacking(ClusterPart::kChip);
      std::vector<int64_t> by_number(static_cast<size_t>(cluster->chip_count()), 0);
      for (size_t i = 0; i < bytes.size(); ++i) by_number[static_cast<size_t>(numbers[i])] = bytes[i];
      return by_number;
    }
    if (cluster->chip().devices_per_chip == 1) return std::vector<int64_t>{totals.most_bytes};
    return lacking(ClusterPart::kChip);
  };
  result["host_bytes"] = lacking(ClusterPart::kHost);
  result["price"] = price_dict([&] {
    ReshardPrice price;
    price.transfer = least_seconds(*cluster, chip_bytes(), lacking(ClusterPart::kSlice));
    return price;
  });
  return result;
}

Dims padded(const Dims& parts, int64_t rank) {
  Dims result = parts;
  result.resize(rank, 1);
  return result;
}

void check_whole(const Sharding& sharding) {
  if (sharding.is_concrete() || sharding.is_abstract()) return;
  throw_error("{}: {} leaves a dimension open; expected None or axes for each; say how it is cut", kPlanReshard,
              sharding.to_string());
}

/// Whether XLA would gather everything, and why that is not known.
std::pair<std::optional<bool>, std::string> xla_answer(const Ends& ends, const Sharding& source,
                                                       const Sharding& destination) {
  const auto not_known = [](std::string_view why) {
    return std::pair(std::optional<bool>(),
                     fmt::format("plan_reshard: whether XLA gathers everything is not known: {}", why));
  };
  if (!ends.same_devices) {
    return not_known(
        "the ends have other devices, or the same in another order; expected those of one program at both ends");
  }
  if (!ends.source.is_even() || !ends.destination.is_even()) {
    return not_known("shards are uneven; expected sizes that their axes divide");
  }
  if (source.memory_kind() != destination.memory_kind()) {
    return not_known("the ends are in memory of two kinds; expected one");
  }
  const int64_t rank = ends.source.shape().size();
  const auto answer = xla_gathers_everything(source.num_devices(), padded(source.grid().parts(), rank),
                                             padded(destination.grid().parts(), rank));
  if (!answer) {
    return not_known(
        "a dimension goes from one number of parts to another of which neither divides the other; expected numbers "
        "that do, as powers of 2 always do");
  }
  return {answer, ""};
}

py::dict plan_reshard(py::handle global_shape, int64_t itemsize, const std::shared_ptr<Sharding>& source,
                      const std::shared_ptr<Sharding>& destination, const ClusterOrNone& given,
                      std::optional<int64_t> memory_limit, bool all_copies) {
  const Dims shape = dims_from_python(global_shape, kPlanReshard, "shape");
  check_whole(*source);
  check_whole(*destination);
  const std::shared_ptr<Cluster> handle = cluster_for(given, *source, *destination);
  const Cluster* cluster = handle.get();
  if (cluster == nullptr && (source->is_abstract() || destination->is_abstract())) {
    throw_error(
        "{}: a mesh without devices has no place; expected a cluster to plan on; give cluster=, or a mesh of devices",
        kPlanReshard);
  }
  check_size(*source, cluster);
  check_size(*destination, cluster);
  Ends ends{source->domains(shape, kPlanReshard), destination->domains(shape, kPlanReshard), devices_of(*source),
            devices_of(*destination)};
  ends.same_devices = ends.devices_before == ends.devices_after;
  if (cluster) {
    check_devices(ends.devices_before, *cluster);
    if (!ends.same_devices) check_devices(ends.devices_after, *cluster);
  }
  py::dict result;
  result["cluster"] = py::cast(handle);  // None where there is none
  result["source_shard_shape"] = tuple_from_dims(ends.source.shard_shape());
  result["shard_shape"] = tuple_from_dims(ends.destination.shard_shape());
  result["lower_bound"] = bound_dict(ends, itemsize, cluster);
  result["sequence"] = py::none();
  result["sequence_error"] = py::none();
  try {
    ReshardSequence sequence = sequence_of(shape, itemsize, *source, *destination, ends.same_devices, memory_limit);
    result["sequence"] = sequence_dict(std::move(sequence), shape, itemsize, ends.devices_before, cluster);
  } catch (const InvalidArgument& error) {
    result["sequence_error"] = error.what();
  }
  result["copies"] = py::none();
  result["copies_error"] = py::none();
  try {
    const bool only_way = result["sequence"].is_none();
    const double most = all_copies || only_way || cluster == nullptr ? kMostCopies : kMostCopiesUnasked;
    const PlacedWay placed = placed_way(*source, *destination, shape, itemsize, cluster, most);
    result["copies"] = copies_dict(placed, *source, *destination, cluster);
  } catch (const InvalidArgument& error) {
    result["copies_error"] = error.what();
  }
  const auto [xla_gathers, why_not] = xla_answer(ends, *source, *destination);
  result["xla_gathers"] = xla_gathers;
  result["xla_error"] = why_not;
  return result;
}

/// Ids of the destination's devices by position, and the bytes that each must receive at least.
py::tuple reshard_ingress(py::handle global_shape, int64_t itemsize, const std::shared_ptr<Sharding>& source,
                          const std::shared_ptr<Sharding>& destination) {
  const Dims shape = dims_from_python(global_shape, kPlanReshard, "shape");
  const std::vector<int64_t> after = devices_of(*destination);
  const std::vector<int64_t> bytes = ingress_bytes(source->domains(shape, kPlanReshard), devices_of(*source),
                                                   destination->domains(shape, kPlanReshard), after, itemsize);
  return py::make_tuple(ndarray_of(after), ndarray_of(bytes));
}

/// (source device, destination device, (begin, end) of each dimension, bytes) of every copy.
py::list reshard_copies(py::handle global_shape, int64_t itemsize, const std::shared_ptr<Sharding>& source,
                        const std::shared_ptr<Sharding>& destination, const ClusterOrNone& given) {
  const Dims shape = dims_from_python(global_shape, kPlanReshard, "shape");
  const std::shared_ptr<Cluster> handle = cluster_for(given, *source, *destination);
  const PlacedWay placed = placed_way(*source, *destination, shape, itemsize, handle.get(), kMostCopies);
  py::list result;
  placed.way.plan.for_each_copy([&](const ReshardCopy& copy) {
    py::tuple box(copy.box.rank());
    for (int64_t d = 0; d < copy.box.rank(); ++d) {
      box[static_cast<size_t>(d)] = py::make_tuple(copy.box.origin[d], copy.box.origin[d] + copy.box.shape[d]);
    }
    result.append(py::make_tuple(placed.source.places[static_cast<size_t>(copy.source)].device,
                                 placed.destination.places[static_cast<size_t>(copy.destination)].device, box,
                                 copy.bytes));
  });
  return result;
}

}  // namespace

void bind_planner(py::module_& module) {
  module.def("_plan_reshard", &plan_reshard, py::arg("shape"), py::arg("itemsize"), py::arg("source"),
             py::arg("destination"), py::arg("cluster"), py::arg("memory_limit"), py::arg("all_copies"),
             "Both ways from one sharding to another, with bytes, prices and bounds, as a dict.");
  module.def("_reshard_ingress", &reshard_ingress, py::arg("shape"), py::arg("itemsize"), py::arg("source"),
             py::arg("destination"),
             "(ids of the destination's devices, bytes that each must receive at least): int64 ndarrays.");
  module.def("_reshard_copies", &reshard_copies, py::arg("shape"), py::arg("itemsize"), py::arg("source"),
             py::arg("destination"), py::arg("cluster"),
             "(source device, destination device, box, bytes) of every direct copy.");
  bind_plan_collective(module);
  bind_reshard_picture(module);
  bind_calibration(module);
}

}  // namespace artifex_devices::bindings
