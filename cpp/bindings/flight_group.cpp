// SPDX-License-Identifier: Apache-2.0
#include "flight_group.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "caller_place.h"
#include "recent_cache.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

uint64_t RecordedGroup::begin(PyObject* text, PyObject* digest) {
  const CallerPlace place = caller_place();
  std::optional<Known>& known = known_[(hash_pointer(text) + static_cast<size_t>(place.line)) % known_.size()];
  const bool is_known = known && known->text.ptr() == text && known->digest.ptr() == digest &&
                        known->file.ptr() == place.file_object && known->line == place.line;
  if (is_known) return last_ = recorder_->begin_meeting(group_, known->description);
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) throw py::error_already_set();
  FlightOperation operation{.text = {data, static_cast<size_t>(size)}, .file = place.file, .line = place.line};
  std::memcpy(&operation.digest, PyBytes_AS_STRING(digest),
              std::min(static_cast<size_t>(PyBytes_GET_SIZE(digest)), sizeof(operation.digest)));
  const FlightDescription description(&group_, operation);
  if (place.file_object != nullptr) {  // texts of threads without a program may move
    const auto kept = [](PyObject* object) { return py::reinterpret_borrow<py::object>(object); };
    const std::optional<Known> replaced =
        std::exchange(known, Known{kept(text), kept(digest), kept(place.file_object), place.line, description});
  }
  return last_ = recorder_->begin_meeting(group_, description);
}

}  // namespace artifex_devices::bindings
