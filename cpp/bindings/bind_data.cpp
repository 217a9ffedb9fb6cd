// SPDX-License-Identifier: Apache-2.0
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/data/file_rows.h"
#include "artifex_devices/data/order.h"
#include "artifex_devices/data/packed_rows.h"
#include "artifex_devices/transfer/brief_copy.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

using Indices = py::array_t<int64_t, py::array::c_style | py::array::forcecast>;

/// What Python holds of an order. Orders are immutable, and Python has no const objects.
struct HeldOrder {
  Order::Ptr order;
};

std::span<const int64_t> span_of(const Indices& array) { return {array.data(), static_cast<size_t>(array.size())}; }

std::vector<int64_t> list_of(const Indices& array) { return {array.data(), array.data() + array.size()}; }

std::vector<Order::Ptr> orders_of(const std::vector<HeldOrder>& held) {
  std::vector<Order::Ptr> orders;
  for (const HeldOrder& each : held) orders.push_back(each.order);
  return orders;
}

std::optional<int64_t> size_of(const Order& order) {
  return order.endless() ? std::nullopt : std::optional(order.size());
}

/// A packed order with the arrays of lengths that it reads.
struct HeldRows {
  HeldRows(const HeldOrder& order, std::vector<Indices> lengths, int64_t row_length, bool whole)
      : arrays(std::move(lengths)), rows(order.order, spans(), row_length, whole) {}

  std::vector<std::span<const int64_t>> spans() const {
    std::vector<std::span<const int64_t>> found;
    for (const Indices& array : arrays) found.push_back(span_of(array));
    return found;
  }

  std::vector<Indices> arrays;
  PackedRows rows;
};

void bind_order(py::module_& module) {
  py::class_<HeldOrder>(module, "Order", "An order of samples: a function from positions to samples of sources.")
      .def_static(
          "range", [](std::optional<int64_t> size) { return HeldOrder{range_order(size)}; }, py::arg("size"),
          "Returns the samples of one source in their order; None is endless.")
      .def_static(
          "concatenate",
          [](const std::vector<HeldOrder>& orders) { return HeldOrder{concatenated(orders_of(orders))}; },
          py::arg("orders"), "Returns one order after the other.")
      .def_static(
          "mix",
          [](const std::vector<HeldOrder>& orders, const std::vector<int64_t>& parts, bool repeat) {
            return HeldOrder{mixed(orders_of(orders), parts, repeat)};
          },
          py::arg("orders"), py::arg("parts"), py::arg("repeat"), "Returns a mix of orders in proportion to parts.")
      .def(
          "shuffle",
          [](const HeldOrder& self, uint64_t seed, std::optional<int64_t> window) {
            if (window && *window < 1)
              throw_error("shuffle: window is {}; expected 1 or more; write window=10_000", *window);
            return HeldOrder{shuffled(self.order, seed, window.value_or(0))};
          },
          py::arg("seed"), py::arg("window"), "Returns the order shuffled, whole or inside windows.")
      .def(
          "shuffle_shards",
          [](const HeldOrder& self, uint64_t seed, const Indices& starts) {
            return HeldOrder{shuffled_shards(self.order, seed, list_of(starts))};
          },
          py::arg("seed"), py::arg("starts"), "Returns the order with shards in random order, each shuffled.")
      .def(
          "repeat",
          [](const HeldOrder& self, std::optional<int64_t> times) { return HeldOrder{repeated(self.order, times)}; },
          py::arg("times"), "Returns the order several times; None is endless.")
      .def(
          "slice",
          [](const HeldOrder& self, int64_t start, std::optional<int64_t> count, int64_t step) {
            return HeldOrder{sliced(self.order, start, count, step)};
          },
          py::arg("start"), py::arg("count"), py::arg("step"), "Returns positions at equal distance; None is endless.")
      .def(
          "select",
          [](const HeldOrder& self, const Indices& chosen) { return HeldOrder{selected(self.order, list_of(chosen))}; },
          py::arg("chosen"), "Returns the positions in an array.")
      .def(
          "mark", [](const HeldOrder& self) { return HeldOrder{marked(self.order)}; },
          "Returns the same order, which notes epoch and position here.")
      .def_property_readonly(
          "size", [](const HeldOrder& self) { return size_of(*self.order); },
          "Number of positions; None for an endless order.")
      .def_property_readonly(
          "leaves", [](const HeldOrder& self) { return self.order->leaves(); }, "Number of sources.")
      .def_property_readonly(
          "marks", [](const HeldOrder& self) { return self.order->marks(); }, "Number of marks.")
      .def(
          "resolve",
          [](const HeldOrder& self, const Indices& positions) {
            const py::ssize_t count = positions.size();
            py::array_t<int32_t> leaf(count);
            py::array_t<int64_t> index(count);
            const auto marks = static_cast<py::ssize_t>(self.order->marks());
            py::array_t<uint64_t> keys(std::vector<py::ssize_t>{marks, count, 2});
            const auto size = static_cast<size_t>(count);
            const auto key_size = static_cast<size_t>(keys.size());
            const ResolvedPositions found = {.leaf = {leaf.mutable_data(), size},
                                             .index = {index.mutable_data(), size},
                                             .keys = {keys.mutable_data(), key_size}};
            std::fill(found.keys.begin(), found.keys.end(), uint64_t{0});
            without_gil([&] { self.order->resolve(span_of(positions), found); });
            return std::make_tuple(leaf, index, keys);
          },
          py::arg("positions"), "Returns source, index and keys (mark, position, (epoch, position)) of each position.")
      .def(
          "indices",
          [](const HeldOrder& self, int64_t start, int64_t stop) {
            py::array_t<int64_t> found(std::max<int64_t>(0, stop - start));
            const std::span<int64_t> values = {found.mutable_data(), static_cast<size_t>(found.size())};
            without_gil([&] { self.order->indices(start, values); });
            return found;
          },
          py::arg("start"), py::arg("stop"), "Returns the index in its source of each position.");
}

void bind_packed_rows(py::module_& module) {
  py::class_<HeldRows>(module, "PackedRows", "Samples one after the other, cut into rows of equal length.")
      .def(py::init([](const HeldOrder& order, std::vector<Indices> lengths, int64_t row_length,
                       const std::string& too_long) {
             return std::make_unique<HeldRows>(order, std::move(lengths), row_length, too_long == "error");
           }),
           py::arg("order"), py::arg("lengths"), py::arg("row_length"), py::arg("too_long"))
      .def(
          "size", [](const HeldRows& self) { return without_gil([&] { return self.rows.size(); }); },
          "Returns the number of rows; None for an endless order.")
      .def(
          "sums",
          [](const HeldRows& self) {
            const std::vector<int64_t> sums = self.rows.sums();
            return py::array_t<int64_t>(std::ssize(sums), sums.data());
          },
          "Returns the tokens before every 512th sample of the order, as far as they were added up.")
      .def(
          "sum_count", [](const HeldRows& self) { return self.rows.sum_count(); }, "Returns the number of sums.")
      .def(
          "take_sums",
          [](HeldRows& self, const Indices& sums) {
            return without_gil([&] { return self.rows.take_sums(span_of(sums)); });
          },
          py::arg("sums"), "Takes sums of the same order and lengths; returns False where they cannot be.")
      .def(
          "pieces",
          [](const HeldRows& self, const Indices& rows) {
            std::vector<PackedRows::Piece> pieces;
            py::array_t<int64_t> starts(rows.size() + 1);
            int64_t* start = starts.mutable_data();
            const std::span<const int64_t> numbers = span_of(rows);
            without_gil([&] {
              *start++ = 0;
              for (const int64_t row : numbers) {
                self.rows.append_pieces(row, pieces);
                *start++ = static_cast<int64_t>(pieces.size());
              }
            });
            const auto size = static_cast<py::ssize_t>(pieces.size());
            py::array_t<int64_t> position(size), first(size), count(size);
            for (py::ssize_t i = 0; i < size; ++i) {
              const PackedRows::Piece& piece = pieces[static_cast<size_t>(i)];
              position.mutable_data()[i] = piece.position;
              first.mutable_data()[i] = piece.first;
              count.mutable_data()[i] = piece.count;
            }
            return std::make_tuple(starts, position, first, count);
          },
          py::arg("rows"),
          "Returns where the pieces of each row begin, and position, first token and count of each piece.");
}

bool read_rows_into(int descriptor, int64_t offset, const Indices& rows, py::array& out) {
  const FileRows file = {
      .descriptor = descriptor, .offset = offset, .bytes = rows.size() == 0 ? 0 : out.nbytes() / rows.size()};
  auto* data = static_cast<std::byte*>(out.mutable_data());
  return without_gil([&] { return read_rows(file, span_of(rows), data); });
}

/// Copies arrays to rows of `out` up to the first that is not a dense ndarray of its dtype and of the shape of a row.
size_t copy_to_rows(const std::vector<py::object>& arrays, py::array& out, py::ssize_t row) {
  const NdarrayKind rows = kind_of_ndarray(out.ptr());
  std::vector<const void*> sources;
  for (const py::object& array : arrays) {
    const NdarrayKind kind = kind_of_ndarray(array.ptr());
    if (kind.dense == nullptr || kind.dtype != rows.dtype) break;
    if (!std::ranges::equal(kind.shape, rows.shape.subspan(1))) break;
    sources.push_back(kind.dense);
  }
  if (sources.empty()) return 0;
  if (row < 0 || row + std::ssize(sources) > out.shape(0))
    throw_error<IndexOutOfRange>("copy_to_rows: {} rows from {} on; expected rows of {}", sources.size(), row,
                                 out.shape(0));
  const auto bytes = static_cast<size_t>(out.nbytes() / out.shape(0));
  auto* to = static_cast<std::byte*>(out.mutable_data()) + static_cast<size_t>(row) * bytes;
  run_copy(is_brief_copy(static_cast<int64_t>(sources.size() * bytes)), [&] {
    for (const void* source : sources) {
      std::memcpy(to, source, bytes);
      to += bytes;
    }
  });
  return sources.size();
}

void bind_rows(py::module_& module) {
  module.def("read_rows", &read_rows_into, py::arg("descriptor"), py::arg("offset"), py::arg("rows"), py::arg("out"),
             "Reads rows of an open file, whose numbers ascend, into an array; returns False at the end of the file.");
  module.def("copy_to_rows", &copy_to_rows, py::arg("arrays"), py::arg("out"), py::arg("row"),
             "Copies arrays to rows of another from one on; stops where dtype or shape differ. Returns their number.");
}

}  // namespace

void bind_data(py::module_& module) {
  py::module_ data = module.def_submodule("data", "Orders of samples as arithmetic on positions, and rows of arrays.");
  bind_order(data);
  bind_packed_rows(data);
  bind_rows(data);
}

}  // namespace artifex_devices::bindings
