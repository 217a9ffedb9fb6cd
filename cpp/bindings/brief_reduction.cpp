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

/// A list of the total, which all members get; null where Python must compute it.
py::object total_of(Reduction reduction, const py::list& payloads, const std::vector<ParticipantId>& members) {
  constexpr const char* kOperation = "all_reduce";
  std::vector<HostView> inputs;
  inputs.reserve(members.size());
  for (const ParticipantId member : members) {
    PyObject* block = PyList_GET_ITEM(payloads.ptr(), member.number());
    if (kind_of_ndarray(block).dtype == nullptr) return {};  // a list of leaves, of a member that Python has checked
    inputs.push_back(leaf_from_python(block, kOperation).view);
    const HostView& view = inputs.back();
    if (!is_dense(view.shape, view.byte_strides, itemsize(view.dtype))) return {};
  }
  const HostView& first = inputs.front();
  const int64_t bytes = first.nbytes();
  if (!is_brief_copy(bytes * static_cast<int64_t>(inputs.size() + 1))) return {};
  BufferRef memory{packing_space(*current_client(), bytes).allocate(bytes), 0};
  all_reduce(reduction, inputs, HostView{memory.device_data(), first.dtype, first.shape, first.byte_strides, true});
  py::object list = checked(PyList_New(1));
  PyList_SET_ITEM(
      list.ptr(), 0,
      ndarray_of_buffer(std::move(memory), first.shape, first.byte_strides, first.dtype, false).release().ptr());
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
