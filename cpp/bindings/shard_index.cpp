// SPDX-License-Identifier: Apache-2.0
#include "shard_index.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::bindings {

void check_has_devices(const Sharding& sharding, std::string_view what) {
  if (!sharding.is_abstract()) return;
  throw_error(
      "{}: {} lies on an AbstractMesh, which has no devices; expected a Mesh; make one of the same axes with devices",
      what, sharding.to_string());
}

py::object slice_of_cut(const ShardDomains& domains, int64_t dimension, int64_t cut) {
  PyObject* slice = nullptr;
  if (domains.grid().parts(dimension) == 1) {
    slice = PySlice_New(nullptr, nullptr, nullptr);
  } else {
    slice = PySlice_New(py::int_(domains.begin(dimension, cut)).ptr(),
                        py::int_(domains.begin(dimension, cut + 1)).ptr(), nullptr);
  }
  if (slice == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(slice);
}

py::tuple index_of_tile(const ShardDomains& domains, int64_t tile) {
  const int64_t rank = domains.shape().size();
  py::tuple index(static_cast<size_t>(rank));
  for (int64_t d = rank - 1; d >= 0; --d) {
    const int64_t parts = domains.grid().parts(d);
    PyTuple_SET_ITEM(index.ptr(), d, slice_of_cut(domains, d, tile % parts).release().ptr());
    tile /= parts;
  }
  return index;
}

}  // namespace artifex_devices::bindings
