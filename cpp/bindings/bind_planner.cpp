// SPDX-License-Identifier: Apache-2.0
#include "bind_planner.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/partition/reshard_check.h"
#include "artifex_devices/planner/copy_terms.h"
#include "artifex_devices/planner/direct_way.h"
#include "artifex_devices/planner/group_ingress.h"
#include "artifex_devices/planner/placed_group.h"
#include "artifex_devices/planner/relative_fit.h"
#include "artifex_devices/planner/reshard_price.h"
#include "artifex_devices/planner/reshard_sequence.h"
#include "artifex_devices/planner/xla_resharding.h"
#include "artifex_devices/render/reshard_svg.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_devices/sharding/world_places.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "shard_index.h"

namespace artifex_devices::bindings {
namespace {

namespace py = pybind11;

constexpr const char* kOperation = "plan_reshard";
constexpr double kMostCopies = 1 << 22;       // seconds, and hundreds of MB
constexpr double kMostDrawnCopies = 1 << 17;  // some 0.1 s; a picture has few arrows anyway

using ClusterOrNone = std::optional<std::shared_ptr<Cluster>>;

/// {"latency", "transfer", "algorithm", "limit"}, or {"error"} where a figure is not known.
py::dict price_dict(const std::function<Price()>& price) {
  py::dict result;
  try {
    const Price made = price();
    result["latency"] = made.latency;
    result["transfer"] = made.transfer;
    result["algorithm"] = std::string(made.algorithm);
    result["limit"] = std::string(made.limit);
  } catch (const Unavailable& error) {
    result["error"] = error.what();
  }
  return result;
}

/// That the devices of a client are of; nullptr for those of a machine.
std::shared_ptr<Cluster> handle_of_cluster(const Client& client) {
  const auto* machine = dynamic_cast<const ClusterMachine*>(&client.machine());
  return machine ? std::const_pointer_cast<Cluster>(machine->cluster()) : nullptr;
}

/// The one that is given, or that the devices are of.
std::shared_ptr<Cluster> cluster_for(const ClusterOrNone& given, const Sharding& source, const Sharding& destination) {
  if (given && *given) return *given;
  const auto own = [](const Sharding& sharding) {
    return sharding.is_abstract() ? nullptr : handle_of_cluster(*sharding.devices()->client());
  };
  const std::shared_ptr<Cluster> from = own(source);
  const std::shared_ptr<Cluster> to = own(destination);
  const bool is_one = from && to ? *from == *to : source.is_abstract() || destination.is_abstract() || from == to;
  if (!is_one) {
    fail("{}: the ends are on {} and {}; expected devices of one cluster, or of this process; give cluster= to plan on",
         kOperation, from ? from->name() : "devices of this process", to ? to->name() : "devices of this process");
  }
  return from ? from : to;
}

/// Runs what may take long: other threads of Python go on, and Ctrl-C ends it.
template <class F>
auto without_gil(F work) {
  const ReleaseGil release;
  return work();
}

/// Ids by position; of an abstract sharding the positions themselves.
std::vector<int64_t> devices_of(const Sharding& sharding) {
  std::vector<int64_t> devices(static_cast<size_t>(sharding.num_devices()));
  std::iota(devices.begin(), devices.end(), int64_t{0});
  if (sharding.is_abstract()) return devices;
  std::ranges::transform(devices, devices.begin(), [&](int64_t i) { return (*sharding.devices())[i]->id(); });
  return devices;
}

/// The buffers that transfers of this sharding have.
PlacedEnd place_in_world(const Sharding& sharding, const ShardDomains& domains) {
  PlacedEnd end{domains, devices_of(sharding), WorldPlaces(sharding).places, {}};
  std::map<std::pair<int64_t, int64_t>, int64_t> buffer_of;  // by tile and memory
  for (size_t i = 0; i < end.places.size(); ++i) {
    buffer_of[{end.places[i].tile, (int64_t{end.places[i].process} << 32) + end.places[i].arena}] =
        static_cast<int64_t>(i);
  }
  const bool own = sharding.is_fully_addressable();
  for (int64_t position = 0; position < sharding.num_devices(); ++position) {
    const Device& device = *(*sharding.devices())[position];
    const int64_t process = own ? end.places.front().process : device.process_index();
    const auto found = buffer_of.find({sharding.grid().tile(position), (process << 32) + device.arena_index()});
    if (found == buffer_of.end()) {
      fail<Unavailable>("{}: {} has no buffer in the plan of transfers; this is a mistake of the package", kOperation,
                        device.to_string());
    }
    end.buffers.push_back(found->second);
  }
  return end;
}

PlacedEnd place(const Sharding& sharding, const ShardDomains& domains, const Cluster* cluster) {
  if (cluster && sharding.num_devices() > cluster->device_count()) {
    fail("{}: the mesh has {} devices, the cluster {} has {}; expected at most these; take a larger cluster",
         kOperation, sharding.num_devices(), cluster->name(), cluster->device_count());
  }
  return cluster ? place_on_cluster(domains, devices_of(sharding), *cluster) : place_in_world(sharding, domains);
}

DirectWay direct_way(const PlacedEnd& source, const PlacedEnd& destination, int64_t itemsize) {
  const double copies = most_copies(source, destination);
  if (copies > kMostCopies) {
    fail(
        "{}: there are about {:.3g} direct copies; expected at most {:.0f} to plan one by one; use collectives, or "
        "plan a smaller cluster",
        kOperation, copies, kMostCopies);
  }
  return without_gil([&] { return make_direct_way(source, destination, itemsize); });
}

/// Where kinds of memory differ, transfers copy what is in place already.
void check_one_kind(const Sharding& source, const Sharding& destination) {
  if (source.memory_kind() == destination.memory_kind()) return;
  fail("{}: the ends are in memory of two kinds, {} and {}; expected one; plan it with one kind at both ends",
       kOperation, to_string(source.memory_kind()), to_string(destination.memory_kind()));
}

const NamedSharding& named(const Sharding& sharding) {
  const auto* result = dynamic_cast<const NamedSharding*>(&sharding);
  if (result == nullptr) {
    fail("{}: {} has no mesh; expected NamedShardings at both ends of a sequence of collectives; use direct copies",
         kOperation, sharding.to_string());
  }
  return *result;
}

ReshardSequence sequence_of(const Dims& shape, int64_t itemsize, const Sharding& source, const Sharding& destination,
                            std::optional<int64_t> memory_limit) {
  const NamedSharding& from = named(source);
  const NamedSharding& to = named(destination);
  if (devices_of(source) != devices_of(destination)) {
    fail(
        "{}: the meshes have other devices, or the same in another order; expected equal ones for a sequence of "
        "collectives; use direct copies",
        kOperation);
  }
  if (from.uneven() != Uneven::kError || to.uneven() != Uneven::kError) {
    fail("{}: uneven shards have no sequence of collectives; expected shardings without uneven=; use direct copies",
         kOperation);
  }
  if (from.memory_kind() != to.memory_kind()) {
    fail("{}: the ends are in memory of two kinds; expected one for a sequence of collectives; use direct copies",
         kOperation);
  }
  return without_gil([&] {
    return make_reshard_sequence(shape, itemsize, {from.abstract_mesh(), from.spec()}, {to.abstract_mesh(), to.spec()},
                                 {.memory_limit = memory_limit});
  });
}

/// What each position receives from one cut to the next.
std::vector<int64_t> received(const ReshardSequence& sequence, size_t step, const Dims& shape, int64_t itemsize) {
  std::vector<int64_t> positions(static_cast<size_t>(sequence.grids[step].positions()));
  std::iota(positions.begin(), positions.end(), int64_t{0});
  const ShardDomains::Names names{.operation = kOperation};
  return ingress_bytes(ShardDomains(sequence.grids[step], shape, Uneven::kError, names), positions,
                       ShardDomains(sequence.grids[step + 1], shape, Uneven::kError, names), positions, itemsize);
}

py::dict sequence_dict(const ReshardSequence& sequence, const Dims& shape, int64_t itemsize,
                       const std::vector<int64_t>& devices, const Cluster* cluster) {
  py::list labels;
  for (const SubAxis& axis : sequence.axes) labels.append(axis.label);
  std::vector<int64_t> bytes(devices.size(), 0);
  py::list steps;
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const ReshardStep& step = sequence.steps[i];
    const std::vector<int64_t> in = received(sequence, i, shape, itemsize);
    std::ranges::transform(bytes, in, bytes.begin(), std::plus<>());
    py::dict entry;
    entry["move"] = std::string(to_string(step.move));
    entry["axes"] = step.axes;
    entry["from_dimension"] = step.from_dimension;
    entry["to_dimension"] = step.to_dimension;
    entry["group"] = step.group;
    entry["shard_bytes"] = step.shard_bytes;
    entry["shard_bytes_after"] = step.shard_bytes_after;
    entry["bytes_in"] = step.bytes_in;
    int64_t total = 0;
    for (const int64_t each : in) add_bytes(&total, each, 1, kOperation);
    entry["bytes"] = total;
    entry["network_bytes"] = cluster ? network_bytes(*cluster, sequence, i, devices) : 0;
    if (cluster) entry["price"] = price_dict([&] { return price_step(*cluster, sequence, i, devices); });
    steps.append(std::move(entry));
  }
  py::dict result;
  result["axes"] = std::move(labels);
  result["sizes"] = py::list();
  for (const SubAxis& axis : sequence.axes) result["sizes"].cast<py::list>().append(axis.size);
  result["steps"] = std::move(steps);
  result["bytes_in"] = bytes;
  result["busiest_bytes_in"] = sequence.bytes_in;
  result["peak_bytes"] = sequence.peak_bytes;
  result["is_cheapest"] = sequence.is_cheapest;
  return result;
}

py::dict copies_dict(const DirectWay& way, const PlacedEnd& source, const PlacedEnd& destination,
                     const Cluster* cluster) {
  py::dict result;
  result["count"] = way.plan.copies.size();
  result["reused"] = way.plan.reused.size();
  result["bytes_reused"] = way.plan.bytes_reused;
  result["bytes_copied"] = way.plan.bytes_copied;
  result["bytes_in"] = way.bytes_in;
  result["peak_bytes"] = way.peak_bytes;
  py::dict links;
  if (cluster) {
    const std::vector<Message> messages = messages_of(way, source, destination);
    result["price"] = price_dict([&] { return without_gil([&] { return price_messages(*cluster, messages).price; }); });
    const LinkBytes bytes = bytes_by_link(*cluster, messages);
    constexpr std::array<const char*, kClusterLinks> kNames = {"same device", "same chip", "same slice", "network"};
    for (size_t i = 0; i < kNames.size(); ++i) links[kNames[i]] = bytes[i];
  } else {
    constexpr std::array<const char*, 5> kNames = {"same device", "same memory", "other memory", "other process",
                                                   "other host"};
    std::array<int64_t, kNames.size()> bytes{};
    for (const ReshardCopy& copy : way.plan.copies) bytes[static_cast<size_t>(copy.link)] += copy.bytes;
    for (size_t i = 0; i < kNames.size(); ++i) links[kNames[i]] = bytes[i];
  }
  result["bytes_by_link"] = std::move(links);
  return result;
}

/// Numbers of groups from 0, of what `group_of` says of each device.
template <class F>
std::vector<int64_t> numbered(const std::vector<int64_t>& devices, std::map<int64_t, int64_t>* numbers, F group_of) {
  std::vector<int64_t> result;
  for (const int64_t device : devices) {
    const auto key = static_cast<int64_t>(group_of(device));
    result.push_back(numbers->try_emplace(key, static_cast<int64_t>(numbers->size())).first->second);
  }
  return result;
}

py::dict bound_dict(const PlacedEnd& source, const PlacedEnd& destination, int64_t itemsize, const Cluster* cluster) {
  py::dict result;
  const std::vector<int64_t> bytes = without_gil([&] {
    return ingress_bytes(source.domains, source.devices, destination.domains, destination.devices, itemsize);
  });
  result["bytes_in"] = bytes;
  if (cluster == nullptr) return result;
  const auto by = [&](auto group_of) {
    std::map<int64_t, int64_t> numbers;
    const std::vector<int64_t> from = numbered(source.devices, &numbers, group_of);
    const std::vector<int64_t> to = numbered(destination.devices, &numbers, group_of);
    return without_gil([&] {
      return group_ingress_bytes(source.domains, from, destination.domains, to, static_cast<int64_t>(numbers.size()),
                                 itemsize);
    });
  };
  const int per_chip = cluster->chip().devices_per_chip;
  const std::vector<int64_t> chips = per_chip == 1 ? bytes : by([&](int64_t id) { return id / per_chip; });
  const std::vector<int64_t> hosts = by([&](int64_t id) { return cluster->place_of(id).process; });
  const std::vector<int64_t> slices = by([&](int64_t id) { return id / cluster->devices_per_slice(); });
  result["host_bytes"] = hosts;
  result["slice_bytes"] = slices;
  result["price"] = price_dict([&] {
    Price price;
    price.transfer = least_seconds(*cluster, chips, slices);
    return price;
  });
  return result;
}

Dims padded(const Dims& parts, int64_t rank) {
  Dims result = parts;
  result.resize(rank, 1);
  return result;
}

py::dict plan_reshard(py::handle global_shape, int64_t itemsize, const std::shared_ptr<Sharding>& source,
                      const std::shared_ptr<Sharding>& destination, const ClusterOrNone& given,
                      std::optional<int64_t> memory_limit) {
  const Dims shape = dims_from_python(global_shape, kOperation, "shape");
  for (const Sharding* sharding : {source.get(), destination.get()}) {
    if (!sharding->is_concrete() && !sharding->is_abstract()) {
      fail("{}: {} leaves a dimension open; expected None or axes for each; say how it is cut", kOperation,
           sharding->to_string());
    }
  }
  check_one_kind(*source, *destination);
  const std::shared_ptr<Cluster> handle = cluster_for(given, *source, *destination);
  const Cluster* cluster = handle.get();
  if (cluster == nullptr && (source->is_abstract() || destination->is_abstract())) {
    fail("{}: a mesh without devices has no place; expected a cluster to plan on; give cluster=, or a mesh of devices",
         kOperation);
  }
  const ShardDomains from = source->domains(shape, kOperation);
  const ShardDomains to = destination->domains(shape, kOperation);
  const PlacedEnd source_end = place(*source, from, cluster);
  const PlacedEnd destination_end = place(*destination, to, cluster);
  py::dict result;
  result["cluster"] = py::cast(handle);  // None where there is none
  result["devices"] = destination_end.devices;
  result["source_shard_shape"] = tuple_from_dims(from.shard_shape());
  result["shard_shape"] = tuple_from_dims(to.shard_shape());
  result["lower_bound"] = bound_dict(source_end, destination_end, itemsize, cluster);
  result["copies"] = py::none();
  result["copies_error"] = py::none();
  try {
    result["copies"] =
        copies_dict(direct_way(source_end, destination_end, itemsize), source_end, destination_end, cluster);
  } catch (const InvalidArgument& error) {
    result["copies_error"] = error.what();
  }
  result["sequence"] = py::none();
  result["sequence_error"] = py::none();
  result["xla_gathers"] = py::none();
  try {
    const ReshardSequence sequence = sequence_of(shape, itemsize, *source, *destination, memory_limit);
    result["sequence"] = sequence_dict(sequence, shape, itemsize, source_end.devices, cluster);
  } catch (const InvalidArgument& error) {
    result["sequence_error"] = error.what();
  }
  const bool same_devices = source_end.devices == destination_end.devices;
  if (same_devices && from.is_even() && to.is_even() &&
      std::has_single_bit(static_cast<uint64_t>(source->num_devices()))) {
    result["xla_gathers"] = xla_gathers_everything(source->num_devices(), padded(source->grid().parts(), shape.size()),
                                                   padded(destination->grid().parts(), shape.size()));
  }
  return result;
}

/// (source device, destination device, (begin, end) of each dimension, bytes) of every copy.
py::list reshard_copies(py::handle global_shape, int64_t itemsize, const std::shared_ptr<Sharding>& source,
                        const std::shared_ptr<Sharding>& destination, const ClusterOrNone& given) {
  const Dims shape = dims_from_python(global_shape, kOperation, "shape");
  const std::shared_ptr<Cluster> handle = cluster_for(given, *source, *destination);
  const Cluster* cluster = handle.get();
  const PlacedEnd from = place(*source, source->domains(shape, kOperation), cluster);
  const PlacedEnd to = place(*destination, destination->domains(shape, kOperation), cluster);
  const DirectWay way = direct_way(from, to, itemsize);
  py::list result;
  for (const ReshardCopy& copy : way.plan.copies) {
    py::tuple box(copy.box.rank());
    for (int64_t d = 0; d < copy.box.rank(); ++d) {
      box[static_cast<size_t>(d)] = py::make_tuple(copy.box.origin[d], copy.box.origin[d] + copy.box.shape[d]);
    }
    result.append(py::make_tuple(from.places[static_cast<size_t>(copy.source)].device,
                                 to.places[static_cast<size_t>(copy.destination)].device, box, copy.bytes));
  }
  return result;
}

/// Before, after, and with `is_copies` the bytes between devices.
std::string reshard_picture(const std::string& title, const std::vector<std::string>& steps, py::handle global_shape,
                            int64_t itemsize, const std::shared_ptr<Sharding>& source,
                            const std::shared_ptr<Sharding>& destination, const ClusterOrNone& given, bool is_copies,
                            const std::vector<std::pair<std::string, int64_t>>& bytes_by_link) {
  check_has_devices(*source, "reshard_svg");
  check_has_devices(*destination, "reshard_svg");
  const Dims shape = dims_from_python(global_shape, kOperation, "shape");
  const std::shared_ptr<Cluster> handle = cluster_for(given, *source, *destination);
  ReshardPicture picture{title, steps, {}, "", bytes_by_link, handle.get()};
  if (!is_copies) {
    picture.why_no_traffic = "collectives: which device sends what to which is up to their algorithms, and not drawn";
    return without_gil([&] { return reshard_svg(*source, *destination, shape, picture); });
  }
  const PlacedEnd from = place(*source, source->domains(shape, kOperation), handle.get());
  const PlacedEnd to = place(*destination, destination->domains(shape, kOperation), handle.get());
  const double copies = most_copies(from, to);
  if (copies > kMostDrawnCopies) {
    picture.why_no_traffic = fmt::format("about {:.3g} direct copies: too many to draw arrows for", copies);
    for (const auto& [link, bytes] : bytes_by_link) {
      if (bytes > 0) picture.why_no_traffic += fmt::format("; {} {}", bytes_text(bytes), link);
    }
    return without_gil([&] { return reshard_svg(*source, *destination, shape, picture); });
  }
  return without_gil([&] {
    for (const ReshardCopy& copy : make_direct_way(from, to, itemsize).plan.copies) {
      picture.traffic.push_back({from.places[static_cast<size_t>(copy.source)].device,
                                 to.places[static_cast<size_t>(copy.destination)].device, copy.bytes});
    }
    return reshard_svg(*source, *destination, shape, picture);
  });
}

CopyLimits limits_with(int64_t cache_bytes) {
  return {.parallel_bytes = config().parallel_copy_bytes.load(std::memory_order_relaxed), .cache_bytes = cache_bytes};
}

/// (terms, [(memory from, memory to, bytes)]) of the copies between devices of this machine.
py::tuple reshard_copy_terms(py::handle global_shape, int64_t itemsize, const std::shared_ptr<Sharding>& source,
                             const std::shared_ptr<Sharding>& destination, int64_t cache_bytes) {
  const Dims shape = dims_from_python(global_shape, kOperation, "shape");
  for (const Sharding* sharding : {source.get(), destination.get()}) {
    if (sharding->is_abstract() || handle_of_cluster(*sharding->devices()->client()) ||
        !sharding->is_fully_addressable()) {
      fail(
          "{}: {} has devices of a cluster, of other processes, or none; expected devices of this process for seconds "
          "that a calibration gives; leave calibration= out",
          kOperation, sharding->to_string());
    }
  }
  check_one_kind(*source, *destination);
  const PlacedEnd from = place_in_world(*source, source->domains(shape, kOperation));
  const PlacedEnd to = place_in_world(*destination, destination->domains(shape, kOperation));
  const DirectWay way = direct_way(from, to, itemsize);
  const CopyTerms terms = copy_terms(way, from, to, itemsize, limits_with(cache_bytes));
  py::list memories;
  for (const MemoryBytes& each : bytes_by_memory(way, from, to)) {
    memories.append(py::make_tuple(each.from, each.to, each.bytes));
  }
  return py::make_tuple(std::vector<double>(terms.begin(), terms.end()), memories);
}

py::tuple fit(const std::vector<std::vector<double>>& terms, const std::vector<double>& seconds) {
  if (terms.size() != seconds.size()) {
    fail("fit_relative: {} samples have {} times; expected one each; give as many", terms.size(), seconds.size());
  }
  std::vector<TimedTerms> samples;
  for (size_t i = 0; i < terms.size(); ++i) samples.push_back({terms[i], seconds[i]});
  const RelativeFit found = fit_relative(samples);
  return py::make_tuple(found.coefficients, found.relative_errors);
}

/// Devices of a cluster that differ along some of its axes only, from the first one on.
std::vector<int64_t> devices_along(const Cluster& cluster, const std::vector<std::string>& axes) {
  const bool is_torus = cluster.inside().kind == NetworkKind::kTorus;
  std::vector<std::string> known{"slice"};
  if (!is_torus) known.emplace_back("chip");
  for (size_t axis = 0; is_torus && axis < cluster.inside().dims.size(); ++axis) known.emplace_back(1, "xyz"[axis]);
  const auto has = [&](const std::string& name) { return std::ranges::find(axes, name) != axes.end(); };
  for (const std::string& axis : axes) {
    if (std::ranges::find(known, axis) == known.end()) {
      fail(
          "plan_collective: {:?} is no axis of the cluster {}; expected some of {}; \"slice\" is the network between "
          "slices or nodes",
          axis, cluster.name(), fmt::join(known, ", "));
    }
  }
  std::vector<int64_t> devices;
  for (int64_t id = 0; id < cluster.device_count(); ++id) {
    const ClusterPlace at = cluster.place_of(id);
    bool is_in = has("slice") || at.slice == 0;
    if (is_torus) {
      for (size_t axis = 0; axis < 3; ++axis) is_in = is_in && (at.coords[axis] == 0 || has({"xyz"[axis]}));
    } else {
      is_in = is_in && (at.chip == 0 || has("chip"));
    }
    if (is_in) devices.push_back(id);
  }
  return devices;
}

py::dict plan_collective(const std::string& name, double bytes, const std::shared_ptr<Cluster>& cluster,
                         const std::vector<std::string>& axes, const std::vector<std::vector<int64_t>>& given) {
  const auto op = collective_from_name(name);
  if (!op) {
    fail(
        "plan_collective: {:?} is no collective; expected all_gather, reduce_scatter, all_reduce, all_to_all or "
        "broadcast",
        name);
  }
  const std::vector<std::vector<int64_t>> groups =
      given.empty() ? std::vector<std::vector<int64_t>>{devices_along(*cluster, axes)} : given;
  std::vector<CollectiveCost> slowest;
  for (const auto& group : groups) {
    const std::optional<NodeGroup> placed = placed_group(*cluster, group);
    if (!placed) {
      fail(
          "plan_collective: the {} devices of a group, {} first, are no box of the cluster {}; expected evenly spaced "
          "chips along its axes; lay the mesh out with mesh_utils.create_device_mesh",
          group.size(), group.front(), cluster->name());
    }
    std::vector<CollectiveCost> costs = collective_costs(*op, bytes, *placed);
    if (slowest.empty() || costs.front().seconds() > slowest.front().seconds()) slowest = std::move(costs);
  }
  py::list entries;
  for (const CollectiveCost& cost : slowest) {
    entries.append(py::make_tuple(std::string(cost.algorithm), std::string(cost.limit), cost.latency, cost.transfer,
                                  cost.is_bound));
  }
  py::dict result;
  result["devices"] = groups.front().size();
  result["groups"] = groups.size();
  result["costs"] = std::move(entries);
  result["bytes_in"] = received_bytes(*op, bytes, static_cast<int64_t>(groups.front().size()));
  return result;
}

}  // namespace

void bind_planner(py::module_& module) {
  module.def("_plan_reshard", &plan_reshard, py::arg("shape"), py::arg("itemsize"), py::arg("source"),
             py::arg("destination"), py::arg("cluster"), py::arg("memory_limit"),
             "Both ways from one sharding to another, with bytes, prices and bounds, as a dict.");
  module.def("_reshard_copies", &reshard_copies, py::arg("shape"), py::arg("itemsize"), py::arg("source"),
             py::arg("destination"), py::arg("cluster"),
             "(source device, destination device, box, bytes) of every direct copy.");
  module.def("_reshard_svg", &reshard_picture, py::arg("title"), py::arg("steps"), py::arg("shape"),
             py::arg("itemsize"), py::arg("source"), py::arg("destination"), py::arg("cluster"), py::arg("is_copies"),
             py::arg("bytes_by_link"), "A reshard as a stand-alone SVG picture.");
  module.def(
      "_cluster_of_device", [](const Device& device) { return handle_of_cluster(device.client()); }, py::arg("device"),
      "The Cluster that a device is of, or None.");
  module.def(
      "_copy_term_names", [] { return std::vector<std::string>(kCopyTerms.begin(), kCopyTerms.end()); },
      "What the seconds of copies inside one machine are a sum of, in the order of _copy_terms.");
  module.def("_copy_terms", &reshard_copy_terms, py::arg("shape"), py::arg("itemsize"), py::arg("source"),
             py::arg("destination"), py::arg("cache_bytes"),
             "(terms, [(memory from, memory to, bytes)]) of the direct copies between devices of this process.");
  module.def(
      "_dense_copy_terms",
      [](int64_t bytes, int64_t copies, int64_t cache_bytes) {
        const CopyTerms terms = dense_copy_terms(bytes, copies, limits_with(cache_bytes));
        return std::vector<double>(terms.begin(), terms.end());
      },
      py::arg("bytes"), py::arg("copies"), py::arg("cache_bytes"), "Terms of dense copies of so many bytes together.");
  module.def(
      "_fit_relative", &fit, py::arg("terms"), py::arg("seconds"),
      "(coefficients, relative errors): non-negative least squares of relative errors; a list of terms a sample.");
  module.def("_plan_collective", &plan_collective, py::arg("op"), py::arg("bytes"), py::arg("cluster"), py::arg("axes"),
             py::arg("groups"),
             "Algorithms of one collective, cheapest first, as a dict. `groups` empty: the devices along `axes`.");
}

}  // namespace artifex_devices::bindings
