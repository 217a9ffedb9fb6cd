// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "fast_path.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Hash and equality of a class of values as slots of its type: dicts and sets call them at each look-up, and a bound
/// __hash__ or __eq__ takes ten times as long. Passed to py::class_ as `ValueSlots<T, &hash, &equal>::setup()`.
template <class T, size_t (*hash)(const T&), bool (*equal)(const T&, const T&)>
class ValueSlots {
 public:
  static py::custom_type_setup setup() {
    return py::custom_type_setup([](PyHeapTypeObject* heap_type) {
      type = &heap_type->ht_type;
      type->tp_hash = &hash_of;
      type->tp_richcompare = &compare;
    });
  }

 private:
  static Py_hash_t hash_of(PyObject* self) noexcept {
    const T* value = value_or_null(self);
    if (value != nullptr) return static_cast<Py_hash_t>(hash(*value) >> 2);  // never -1, which means an error
    PyErr_Format(PyExc_TypeError, "%s: __init__ has not run; expected it to be called before the hash is used",
                 Py_TYPE(self)->tp_name);
    return -1;
  }

  static PyObject* compare(PyObject* self, PyObject* other, int operation) noexcept {
    if (operation == Py_NE) return opposite(Py_TYPE(self)->tp_richcompare(self, other, Py_EQ));
    if (operation != Py_EQ || !PyObject_TypeCheck(other, type)) Py_RETURN_NOTIMPLEMENTED;
    const T* first = value_or_null(self);
    const T* second = value_or_null(other);
    const bool same = self == other || (first != nullptr && second != nullptr && equal(*first, *second));
    return PyBool_FromLong(same ? 1 : 0);
  }

  /// The negation of the result of `==`, which a Python class may override. Steals the reference.
  static PyObject* opposite(PyObject* same) noexcept {
    if (same == nullptr || same == Py_NotImplemented) return same;
    const int is_same = PyObject_IsTrue(same);
    Py_DECREF(same);
    return is_same < 0 ? nullptr : PyBool_FromLong(is_same == 0 ? 1 : 0);
  }

  static const T* value_or_null(PyObject* object) noexcept {
    try {
      return value_in<T>(object);
    } catch (...) {
      PyErr_Clear();
      return nullptr;
    }
  }

  inline static PyTypeObject* type = nullptr;
};

}  // namespace artifex_devices::bindings
