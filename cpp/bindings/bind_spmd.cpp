// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>

#include "artifex_devices/spmd/rendezvous.h"
#include "bindings.h"
#include "gil.h"
#include "ndarray_kind.h"

namespace artifex_devices::bindings {
namespace {

constexpr const char* failure_name(Rendezvous::Failure failure) {
  switch (failure) {
    case Rendezvous::Failure::kMismatch:
      return "mismatch";
    case Rendezvous::Failure::kEarlyExit:
      return "early exit";
    case Rendezvous::Failure::kDeadlock:
      return "deadlock";
    case Rendezvous::Failure::kDeadline:
      return "deadline";
    case Rendezvous::Failure::kBody:
      return "body";
    case Rendezvous::Failure::kCancelled:
      return "cancelled";
    case Rendezvous::Failure::kNone:
      break;
  }
  return "";
}

constexpr const char* state_name(Rendezvous::State state) {
  switch (state) {
    case Rendezvous::State::kWaiting:
      return "waiting";
    case Rendezvous::State::kWorking:
      return "working";
    case Rendezvous::State::kFinished:
      return "finished";
    case Rendezvous::State::kRaised:
      return "raised";
    case Rendezvous::State::kRunning:
      break;
  }
  return "running";
}

// The everyday way into a collective: kinds of one ndarray that the program has met before. As plain functions of
// CPython, as each participant makes these calls in each collective.
struct Doors {
  struct Kind {
    py::object operation;
    py::object axis_name;
    py::object dtype;
    std::vector<py::ssize_t> shape;
    py::object meeting;
    std::vector<int64_t> groups;  // by participant, or one for all
    int64_t signature;
  };

  py::object owner;  // keeps the rendezvous
  Rendezvous* rendezvous;
  py::list payloads;
  py::list results;
  py::object pending;  // stands for a result that is not there
  std::vector<Kind> kinds;
};

constexpr const char* kDoorsCapsule = "artifex_devices.doors";
constexpr size_t kKinds = 8;  // more are looked up in Python

Doors& doors_of(PyObject* self) { return *static_cast<Doors*>(PyCapsule_GetPointer(self, kDoorsCapsule)); }

bool same_name(PyObject* a, PyObject* b) {
  return a == b || (PyUnicode_CheckExact(a) && PyUnicode_CheckExact(b) && PyUnicode_Compare(a, b) == 0);
}

template <typename Call>
PyObject* translated(Call call) noexcept {
  try {
    return call();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// arrive(position, thread, operation, axis_name, x): None for a kind that is not known or another thread than the
// participant's; else the payload is left, and the answer is True: wait, False: failed, the Meeting: complete it.
PyObject* arrive_at_door(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 5) {
    PyErr_SetString(PyExc_TypeError, "arrive: expected position, thread, operation, axis_name and x");
    return nullptr;
  }
  return translated([&]() -> PyObject* {
    PyObject* x = args[4];
    const NdarrayKind brought = kind_of_ndarray(x);
    if (brought.dtype == nullptr) Py_RETURN_NONE;
    Doors& doors = doors_of(self);
    const auto known = std::ranges::find_if(doors.kinds, [&](const Doors::Kind& kind) {
      return kind.operation.ptr() == args[2] && kind.dtype.ptr() == brought.dtype &&
             std::ranges::equal(kind.shape, brought.shape) && same_name(kind.axis_name.ptr(), args[3]);
    });
    if (known == doors.kinds.end() || PyLong_AsUnsignedLong(args[1]) != PyThread_get_thread_ident()) Py_RETURN_NONE;
    const Py_ssize_t position = PyLong_AsSsize_t(args[0]);
    Py_INCREF(x);
    if (PyList_SetItem(doors.payloads.ptr(), position, x) != 0) return nullptr;
    const size_t part = known->groups.size() == 1 ? 0 : static_cast<size_t>(position);
    switch (doors.rendezvous->arrive(position, known->groups.at(part), known->signature)) {
      case Rendezvous::Arrival::kWait:
        Py_RETURN_TRUE;
      case Rendezvous::Arrival::kFailed:
        Py_RETURN_FALSE;
      case Rendezvous::Arrival::kComplete:
        break;
    }
    return py::object(known->meeting).release().ptr();
  });
}

// take(position): the first leaf of the participant's result, which is there no more then; None where it is none.
PyObject* take_at_door(PyObject* self, PyObject* position) {
  return translated([&]() -> PyObject* {
    Doors& doors = doors_of(self);
    const Py_ssize_t i = PyLong_AsSsize_t(position);
    PyObject* result = PyList_GetItem(doors.results.ptr(), i);
    if (result == nullptr) return nullptr;
    if (!PyList_CheckExact(result) || PyList_GET_SIZE(result) != 1) Py_RETURN_NONE;
    py::object leaf = py::reinterpret_borrow<py::object>(PyList_GET_ITEM(result, 0));
    if (PyList_SetItem(doors.results.ptr(), i, doors.pending.inc_ref().ptr()) != 0) return nullptr;
    if (PyList_SetItem(doors.payloads.ptr(), i, py::none().release().ptr()) != 0) return nullptr;
    return leaf.release().ptr();
  });
}

PyObject* finish_at_door(PyObject* self, PyObject* position) {
  return translated([&]() -> PyObject* {
    doors_of(self).rendezvous->finished(PyLong_AsSsize_t(position));
    Py_RETURN_NONE;
  });
}

py::tuple make_doors(const py::object& rendezvous, const py::list& payloads, const py::list& results,
                     const py::object& pending) {
  static PyMethodDef arrive{"arrive", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&arrive_at_door)),
                            METH_FASTCALL, "Arrives at a kind of collective that is known."};
  static PyMethodDef take{"take", &take_at_door, METH_O, "The first leaf of a participant's result."};
  static PyMethodDef finish{"finished", &finish_at_door, METH_O, "The participant's body returned."};
  auto doors =
      std::make_unique<Doors>(Doors{rendezvous, rendezvous.cast<Rendezvous*>(), payloads, results, pending, {}});
  const py::capsule self(doors.release(), kDoorsCapsule, [](void* pointer) { delete static_cast<Doors*>(pointer); });
  const auto made = [&](PyMethodDef* method) {
    PyObject* function = PyCFunction_NewEx(method, self.ptr(), nullptr);
    if (function == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(function);
  };
  return py::make_tuple(made(&arrive), made(&take), made(&finish));
}

void know_kind(const py::object& arrive, py::object operation, py::object axis_name, const py::object& x,
               py::object meeting, std::vector<int64_t> groups, int64_t signature) {
  Doors& doors = doors_of(PyCFunction_GetSelf(arrive.ptr()));
  const NdarrayKind kind = kind_of_ndarray(x.ptr());
  if (doors.kinds.size() >= kKinds || kind.dtype == nullptr) return;
  doors.kinds.push_back({std::move(operation),
                         std::move(axis_name),
                         py::reinterpret_borrow<py::object>(kind.dtype),
                         {kind.shape.begin(), kind.shape.end()},
                         std::move(meeting),
                         std::move(groups),
                         signature});
}

// Whether all of a list are ndarrays of the very same dtype and shape.
bool are_alike(const py::list& parts) {
  if (parts.empty()) return true;
  const NdarrayKind first = kind_of_ndarray(parts[0].ptr());
  return first.dtype != nullptr && std::ranges::all_of(parts, [&](py::handle part) {
           const NdarrayKind kind = kind_of_ndarray(part.ptr());
           return kind.dtype == first.dtype && std::ranges::equal(kind.shape, first.shape);
         });
}

}  // namespace

void bind_spmd(py::module_& module) {
  py::class_<Rendezvous> rendezvous(module, "Rendezvous",
                                    "Where the participants of one program meet for collectives.");
  rendezvous.def(py::init<int64_t>(), py::arg("participants"))
      .def("group", &Rendezvous::group, py::arg("members"), "The number of a group of participants.")
      .def(
          "arrive",
          [](Rendezvous& self, int64_t participant, int64_t group, int64_t signature) {
            return static_cast<int64_t>(self.arrive(participant, group, signature));
          },
          py::arg("participant"), py::arg("group"), py::arg("signature"),
          "0: the last one, which does the work and says delivered; 1: wait; 2: the program has failed.")
      .def("delivered", &Rendezvous::delivered, py::arg("participant"), "The work of the collective is done.")
      .def("may_go", &Rendezvous::may_go, py::arg("participant"), "Whether a participant need not wait longer.")
      .def(
          "wait",
          [](Rendezvous& self, int64_t participant, std::optional<double> seconds) {
            const ReleaseGil release;
            return self.wait(participant, seconds);
          },
          py::arg("participant"), py::arg("seconds"),
          "Waits until may_go; False when the program failed or the time is over. Ctrl-C ends it.")
      .def("finished", &Rendezvous::finished, py::arg("participant"), "The participant's body returned.")
      .def("raised", &Rendezvous::raised, py::arg("participant"), "The participant's body raised.")
      .def(
          "cancel", [](Rendezvous& self) { self.fail(Rendezvous::Failure::kCancelled); }, "Ends all waits.")
      .def(
          "expire", [](Rendezvous& self) { self.fail(Rendezvous::Failure::kDeadline); },
          "Ends all waits: they took too long.")
      .def_property_readonly(
          "failure", [](const Rendezvous& self) { return std::string(failure_name(self.failure())); },
          "\"\", \"mismatch\", \"early exit\", \"deadlock\", \"deadline\", \"body\" or \"cancelled\".")
      .def(
          "standings",
          [](const Rendezvous& self) {
            py::list result;
            for (const auto& standing : self.standings()) {
              result.append(
                  py::make_tuple(state_name(standing.state), standing.group, standing.signature, standing.collectives));
            }
            return result;
          },
          "(state, group, signature, number of collectives) of each participant, as they were when it failed.");
  module.def("_doors", &make_doors, py::arg("rendezvous"), py::arg("payloads"), py::arg("results"), py::arg("pending"),
             "(arrive, take, finished) of a rendezvous, for what happens in each collective.");
  module.def(
      "_know_kind", &know_kind, py::arg("arrive"), py::arg("operation"), py::arg("axis_name"), py::arg("x"),
      py::arg("meeting"), py::arg("groups"), py::arg("signature"),
      "From now on `arrive` answers for this operation over these axes with arrays like x; one group a participant, "
      "or one for all.");
  module.def("_are_alike", &are_alike, py::arg("parts"),
             "Whether all of a list are ndarrays of the very same dtype and shape.");
}

}  // namespace artifex_devices::bindings
