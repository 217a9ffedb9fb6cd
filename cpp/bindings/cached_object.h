// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// A slot in each Python object of the class T that caches one Python object derived from it and frees it with the
/// object. The cached object may hold the C++ object, but never the Python object: the garbage collector does not see
/// the slot. Passed to py::class_ as `CachedObject<T>::setup()`.
template <class T>
class CachedObject {
 public:
  static py::custom_type_setup setup() {
    return py::custom_type_setup([](PyHeapTypeObject* heap_type) {
      PyTypeObject* const type = &heap_type->ht_type;
      offset = type->tp_basicsize;
      type->tp_basicsize += static_cast<Py_ssize_t>(sizeof(PyObject*));
      dealloc_of_base = type->tp_base->tp_dealloc;
      type->tp_dealloc = &dealloc;
    });
  }

  /// The cached object of an object of the class or of a derived class, borrowed; null if nothing is cached.
  static PyObject* of(PyObject* self) { return slot(self).load(std::memory_order_acquire); }

  /// Caches an object, unless creating it has run code, or another thread, that cached one too. Returns the cached one,
  /// borrowed.
  static PyObject* store(PyObject* self, py::object created) {
    PyObject* cached = nullptr;
    if (slot(self).compare_exchange_strong(cached, created.ptr())) cached = created.release().ptr();
    return cached;
  }

 private:
  static std::atomic_ref<PyObject*> slot(PyObject* self) {
    return std::atomic_ref(*reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + offset));
  }

  static void dealloc(PyObject* self) {
    PyObject* const cached = of(self);
    dealloc_of_base(self);
    Py_XDECREF(cached);
  }

  inline static Py_ssize_t offset = 0;
  inline static destructor dealloc_of_base = nullptr;
};

}  // namespace artifex_devices::bindings
