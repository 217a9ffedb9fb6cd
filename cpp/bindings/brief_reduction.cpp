// SPDX-License-Identifier: Apache-2.0
#include "brief_reduction.h"

#include <exception>

#include "artifex_devices/base/recorder.h"
#include "artifex_devices/collective/reduce.h"
#include "artifex_devices/transfer/brief_copy.h"
#include "artifex_devices/transfer/exchange_messages.h"
#include "cpython_calls.h"
#include "numpy_bridge.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

/// A list of the total, which all members get; null where Python must compute it. The blocks have one dtype and shape.
py::object total_of(Reduction reduction, const py::list& payloads, const std::vector<ParticipantId>& members) {
  constexpr const char* kOperation = "all_reduce";
  std::vector<const void*> blocks;
  blocks.reserve(members.size());
#ifdef Py_GIL_DISABLED
  std::vector<py::object> held;  // a member whose session was cancelled may drop its block meanwhile
#endif
  NdarrayKind kind;
  for (const ParticipantId member : members) {
#ifdef Py_GIL_DISABLED
    held.push_back(checked(PyList_GetItemRef(payloads.ptr(), member.number())));
    kind = kind_of_ndarray(held.back().ptr());
#else
    kind = kind_of_ndarray(PyList_GET_ITEM(payloads.ptr(), member.number()));
#endif
    if (kind.dense == nullptr) return {};  // other strides, or a list of leaves: of a member that Python has checked
    blocks.push_back(kind.dense);
  }
  const Dims shape(kind.shape);
  const DType dtype = dtype_from_python(kind.dtype, kOperation);
  const int64_t elements = checked_product(shape, kOperation), bytes = elements * itemsize(dtype);
  if (!is_brief_copy(bytes * static_cast<int64_t>(blocks.size() + 1))) return {};
  BufferRef memory{packing_space(*current_client(), bytes).allocate(bytes), 0};
  all_reduce(reduction, dtype, blocks, memory.device_data(), elements);
  py::object list = checked(PyList_New(1));
  PyList_SET_ITEM(list.ptr(), 0,
                  ndarray_of_buffer(std::move(memory), shape, row_major_strides(shape, itemsize(dtype)), dtype, false)
                      .release()
                      .ptr());
  return list;
}

}  // namespace

bool complete_brief_reduction(Participants& all, const KnownCollective& known, GroupId group, ParticipantId last) {
  if (!known.reduction || is_recorded(Recorded::kSpans)) return false;
  const std::vector<ParticipantId> members = all.rendezvous->members(group);
  py::object total;
  try {
    total = total_of(*known.reduction, all.payloads, members);
  } catch (const std::exception&) {
    return false;
  }
  if (!total) return false;
  for (const ParticipantId member : members) {
    check(PyList_SetItem(all.results.ptr(), member.number(), new_reference(total.ptr())));
  }
  all.rendezvous->delivered(last);
  return true;
}

}  // namespace artifex_devices::bindings
