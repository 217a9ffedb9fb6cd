// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Room in each Python object of the class T for one Python object that was made of it, gone when the object goes. The
/// C++ object knows nothing of it, so what is kept may hold the C++ object, but must never hold the Python object:
/// the garbage collector does not see the slot. Goes to py::class_ as `CachedObject<T>::setup()`.
template <class T>
class CachedObject {
 public:
  static py::custom_type_setup setup() {
    return py::custom_type_setup([](PyHeapTypeObject* made) {
      PyTypeObject* const type = &made->ht_type;
      offset = type->tp_basicsize;
      type->tp_basicsize += static_cast<Py_ssize_t>(sizeof(PyObject*));
      dealloc_of_base = type->tp_base->tp_dealloc;
      type->tp_dealloc = &dealloc;
    });
  }

  /// The slot of an object of the class or of one derived from it; null where nothing is kept.
  static PyObject*& of(PyObject* self) { return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + offset); }

 private:
  static void dealloc(PyObject* self) {
    PyObject* const kept = std::exchange(of(self), nullptr);
    dealloc_of_base(self);
    Py_XDECREF(kept);
  }

  inline static Py_ssize_t offset = 0;
  inline static destructor dealloc_of_base = nullptr;
};

}  // namespace artifex_devices::bindings
