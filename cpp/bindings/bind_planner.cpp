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

#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/partition/ingress_totals.h"
#include "artifex_devices/partition/reshard_check.h"
#include "artifex_devices/planner/copy_terms.h"
#include "artifex_devices/planner/direct_way.h"
#include "artifex_devices/planner/part_ingress.h"
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
constexpr double kMostCopies = 1 << 22;         // seconds, and hundreds of MB
constexpr double kMostCopiesUnasked = 1 << 16;  // on a cluster, where collectives do it too; 0.1 s
constexpr double kMostDrawnCopies = 1 << 17;    // some 0.1 s; a picture has few arrows anyway

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

void check_devices(const std::vector<int64_t>& devices, const Cluster& cluster) {
  const int64_t count = cluster.device_count();
  const auto found = std::ranges::find_if(devices, [&](int64_t id) { return id < 0 || id >= count; });
  if (found == devices.end()) return;
  fail(
      "{}: the mesh has device {}, which the cluster {} has not; expected ids of 0 to {}; make the mesh of "
      "cluster.devices(), or take a larger cluster",
      kOperation, *found, cluster.name(), count - 1);
}

void check_size(const Sharding& sharding, const Cluster* cluster) {
  if (cluster && sharding.num_devices() > cluster->device_count()) {
    fail("{}: the mesh has {} devices, the cluster {} has {}; expected at most these; take a larger cluster",
         kOperation, sharding.num_devices(), cluster->name(), cluster->device_count());
  }
}

PlacedEnd place(const Sharding& sharding, const ShardDomains& domains, const Cluster* cluster) {
  return cluster ? place_on_cluster(domains, devices_of(sharding), *cluster) : place_in_world(sharding, domains);
}

DirectWay direct_way(const PlacedEnd& source, const PlacedEnd& destination, int64_t itemsize, bool copies_all = false) {
  return without_gil([&] { return make_direct_way(source, destination, itemsize, copies_all); });
}

/// Direct copies, with the ends that they join.
struct PlacedWay {
  PlacedEnd source;
  PlacedEnd destination;
  DirectWay way;
};

/// About how many direct copies there would be.
double copies_between(const Sharding& from, const Sharding& to, const Dims& shape, const Cluster* cluster) {
  // In a memory that devices share, replicas are one buffer.
  const auto buffers = cluster ? to.num_devices() : static_cast<int64_t>(WorldPlaces(to).places.size());
  return most_copies(from.domains(shape, kOperation), to.domains(shape, kOperation), buffers);
}

/// `most`: copies that are planned one by one.
PlacedWay placed_way(const Sharding& from, const Sharding& to, const Dims& shape, int64_t itemsize,
                     const Cluster* cluster, double most) {
  const ShardDomains source = from.domains(shape, kOperation);
  const ShardDomains destination = to.domains(shape, kOperation);
  check_size(from, cluster);
  check_size(to, cluster);
  const double copies = copies_between(from, to, shape, cluster);
  if (copies > most) {
    fail("{}: there are about {:.3g} direct copies; expected at most {:.0f} to plan one by one; {}", kOperation, copies,
         most,
         copies > kMostCopies ? "use collectives, or plan a smaller cluster"
                              : "ask for them by way=\"copies\", which takes seconds");
  }
  PlacedWay placed{place(from, source, cluster), place(to, destination, cluster), {}};
  placed.way = direct_way(placed.source, placed.destination, itemsize, from.memory_kind() != to.memory_kind());
  return placed;
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
                            bool same_devices, std::optional<int64_t> memory_limit) {
  const NamedSharding& from = named(source);
  const NamedSharding& to = named(destination);
  if (!same_devices) {
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
    fail(
        "{}: the ends are in memory of two kinds, {} and {}; expected one for a sequence of collectives; use direct "
        "copies",
        kOperation, to_string(from.memory_kind()), to_string(to.memory_kind()));
  }
  return without_gil([&] {
    return make_reshard_sequence(shape, itemsize, {from.abstract_mesh(), from.spec()}, {to.abstract_mesh(), to.spec()},
                                 {.memory_limit = memory_limit});
  });
}

ShardDomains cut_of(const ReshardSequence& sequence, size_t step, const Dims& shape) {
  return ShardDomains(sequence.grids[step], shape, Uneven::kError, {.operation = kOperation});
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
    const IngressTotals totals = ingress_totals(cut_of(*sequence, i, shape), cut_of(*sequence, i + 1, shape), itemsize);
    entry["bytes"] = totals.bytes;
    entry["most"] = totals.most_bytes;
    int64_t network = 0;
    if (cluster && step.move == ReshardMove::kPermute) {  // its messages are made once
      const std::vector<Message> messages = without_gil([&] { return permute_messages(*sequence, i, devices); });
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
  result["count"] = way.plan.copies.size();
  result["reused"] = way.plan.reused.size();
  result["bytes_reused"] = way.plan.bytes_reused;
  result["bytes_copied"] = way.plan.bytes_copied;
  result["bytes_in"] = ndarray_of(way.bytes_in);
  result["peak_bytes"] = way.peak_bytes;
  py::dict links;
  if (cluster) {
    const std::vector<Message> messages = messages_of(way, placed.source, placed.destination);
    const bool from_device = from.memory_kind() == MemoryKind::kDevice;
    const bool crosses_host = from_device != (to.memory_kind() == MemoryKind::kDevice);
    result["price"] = price_dict([&] {
      return without_gil([&] {
        Price price = price_messages(*cluster, messages).price;
        if (crosses_host) add_host_link(*cluster, messages, from_device, &price);
        return price;
      });
    });
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
    return ends.same_devices
               ? ingress_totals(ends.source, ends.destination, itemsize)
               : ingress_totals(ends.source, ends.devices_before, ends.destination, ends.devices_after, itemsize);
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
  result["host_bytes"] = lacking(ClusterPart::kHost);
  result["price"] = price_dict([&] {
    const auto chips =
        cluster->chip().devices_per_chip == 1 ? std::vector<int64_t>{totals.most_bytes} : lacking(ClusterPart::kChip);
    Price price;
    price.transfer = least_seconds(*cluster, chips, lacking(ClusterPart::kSlice));
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
  fail("{}: {} leaves a dimension open; expected None or axes for each; say how it is cut", kOperation,
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
  const Dims shape = dims_from_python(global_shape, kOperation, "shape");
  check_whole(*source);
  check_whole(*destination);
  const std::shared_ptr<Cluster> handle = cluster_for(given, *source, *destination);
  const Cluster* cluster = handle.get();
  if (cluster == nullptr && (source->is_abstract() || destination->is_abstract())) {
    fail("{}: a mesh without devices has no place; expected a cluster to plan on; give cluster=, or a mesh of devices",
         kOperation);
  }
  check_size(*source, cluster);
  check_size(*destination, cluster);
  Ends ends{source->domains(shape, kOperation), destination->domains(shape, kOperation), devices_of(*source),
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
  const Dims shape = dims_from_python(global_shape, kOperation, "shape");
  const std::vector<int64_t> after = devices_of(*destination);
  const std::vector<int64_t> bytes = ingress_bytes(source->domains(shape, kOperation), devices_of(*source),
                                                   destination->domains(shape, kOperation), after, itemsize);
  return py::make_tuple(ndarray_of(after), ndarray_of(bytes));
}

/// (source device, destination device, (begin, end) of each dimension, bytes) of every copy.
py::list reshard_copies(py::handle global_shape, int64_t itemsize, const std::shared_ptr<Sharding>& source,
                        const std::shared_ptr<Sharding>& destination, const ClusterOrNone& given) {
  const Dims shape = dims_from_python(global_shape, kOperation, "shape");
  const std::shared_ptr<Cluster> handle = cluster_for(given, *source, *destination);
  const PlacedWay placed = placed_way(*source, *destination, shape, itemsize, handle.get(), kMostCopies);
  py::list result;
  for (const ReshardCopy& copy : placed.way.plan.copies) {
    py::tuple box(copy.box.rank());
    for (int64_t d = 0; d < copy.box.rank(); ++d) {
      box[static_cast<size_t>(d)] = py::make_tuple(copy.box.origin[d], copy.box.origin[d] + copy.box.shape[d]);
    }
    result.append(py::make_tuple(placed.source.places[static_cast<size_t>(copy.source)].device,
                                 placed.destination.places[static_cast<size_t>(copy.destination)].device, box,
                                 copy.bytes));
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
  const auto drawn = [&] { return reshard_svg(*source, *destination, shape, picture); };
  const double copies = copies_between(*source, *destination, shape, handle.get());
  if (copies > kMostDrawnCopies) {
    picture.why_no_traffic = fmt::format("about {:.3g} direct copies: too many to draw arrows for", copies);
    for (const auto& [link, bytes] : bytes_by_link) {
      if (bytes > 0) picture.why_no_traffic += fmt::format("; {} {}", bytes_text(bytes), link);
    }
    return without_gil(drawn);
  }
  const PlacedWay placed = placed_way(*source, *destination, shape, itemsize, handle.get(), kMostDrawnCopies);
  for (const ReshardCopy& copy : placed.way.plan.copies) {
    picture.traffic.push_back({placed.source.places[static_cast<size_t>(copy.source)].device,
                               placed.destination.places[static_cast<size_t>(copy.destination)].device, copy.bytes});
  }
  return without_gil(drawn);
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
  if (source->memory_kind() != destination->memory_kind()) {
    fail(
        "{}: the ends are in memory of two kinds, {} and {}, and calibration is given; expected the one kind that was "
        "measured; leave calibration= out",
        kOperation, to_string(source->memory_kind()), to_string(destination->memory_kind()));
  }
  const PlacedWay placed = placed_way(*source, *destination, shape, itemsize, nullptr, kMostCopies);
  const CopyTerms terms = copy_terms(placed.way, placed.source, placed.destination, itemsize, limits_with(cache_bytes));
  py::list memories;
  for (const MemoryBytes& each : bytes_by_memory(placed.way, placed.source, placed.destination)) {
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
  module.def("_reshard_svg", &reshard_picture, py::arg("title"), py::arg("steps"), py::arg("shape"),
             py::arg("itemsize"), py::arg("source"), py::arg("destination"), py::arg("cluster"), py::arg("is_copies"),
             py::arg("bytes_by_link"), "A reshard as a stand-alone SVG picture.");
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
  bind_plan_collective(module);
}

}  // namespace artifex_devices::bindings
