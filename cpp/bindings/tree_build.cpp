// SPDX-License-Identifier: Apache-2.0
// Builds trees from a structure and leaves, and collects the subtrees at the leaves of a structure.
#include "tree_node.h"

namespace artifex_devices::bindings::trees {
namespace {

class Building {
 public:
  Building(PyObject* leaves, PyObject* make_node) : leaves_(leaves), make_node_(make_node) {}

  py::object build(PyObject* structure) {
    if (structure == Py_None) return next();
    const Node node(structure);
    if (node.is_of_none()) return py::none();
    const Level level(&depth_);
    if (node.children_are_leaves() && node.count > PyList_GET_SIZE(leaves_) - at_) fail_structure();
    if (node.type == &PyDict_Type) {
      py::object result = steal(PyDict_New());
      for (Py_ssize_t i = 0; i < node.count; ++i) {
        PyObject* value = build_child(node.child(i)).release().ptr();
        const bool is_set =
            sleeping_at_exit([&] { return PyDict_SetItem(result.ptr(), PyTuple_GET_ITEM(node.data, i), value); }) == 0;
        Py_DECREF(value);
        check(is_set);
      }
      return result;
    }
    if (node.type == &PyTuple_Type) {
      py::object result = steal(PyTuple_New(node.count));
      for (Py_ssize_t i = 0; i < node.count; ++i) {
        PyTuple_SET_ITEM(result.ptr(), i, build_child(node.child(i)).release().ptr());
      }
      return result;
    }
    py::object result = steal(PyList_New(node.count));
    for (Py_ssize_t i = 0; i < node.count; ++i) {
      PyList_SET_ITEM(result.ptr(), i, build_child(node.child(i)).release().ptr());
    }
    if (node.type == &PyList_Type) return result;
    return call(make_node_, as_object(node.type), node.data, result.ptr());
  }

 private:
  py::object build_child(PyObject* child) { return child == Py_None ? next() : build(child); }

  py::object next() {
    if (at_ >= PyList_GET_SIZE(leaves_)) fail_structure();
    return borrow(PyList_GET_ITEM(leaves_, at_++));
  }

  PyObject* leaves_;
  PyObject* make_node_;
  Py_ssize_t at_ = 0;
  int depth_ = 0;
};

class Collecting {
 public:
  Collecting(PyObject* found, PyObject* children_of) : found_(found), children_of_(children_of) {}

  /// Returns false if the tree has another structure.
  bool collect(PyObject* structure, PyObject* tree) {
    if (structure == Py_None) {
      check(PyList_Append(found_, tree) == 0);
      return true;
    }
    const Node node(structure);
    if (Py_TYPE(tree) != node.type) return false;
    if (node.is_of_none()) return true;
    const Level level(&depth_);
    if (node.type == &PyDict_Type) {
      if (PyDict_GET_SIZE(tree) != node.count) return false;
      for (Py_ssize_t i = 0; i < node.count; ++i) {
        PyObject* value =
            sleeping_at_exit([&] { return PyDict_GetItemWithError(tree, PyTuple_GET_ITEM(node.data, i)); });
        if (value == nullptr) {
          check(PyErr_Occurred() == nullptr);
          return false;
        }
        if (!collect(node.child(i), borrow(value).ptr())) return false;
      }
      return true;
    }
    if (node.type == &PyList_Type || node.type == &PyTuple_Type) return collect_each(node, tree);
    const py::object children = call(children_of_, tree, node.data);
    return !children.is_none() && PyTuple_CheckExact(children.ptr()) && collect_each(node, children.ptr());
  }

 private:
  bool collect_each(const Node& node, PyObject* values) {
    for (Py_ssize_t i = 0; i < node.count && i < PySequence_Fast_GET_SIZE(values); ++i) {
      const py::object value = borrow(PySequence_Fast_GET_ITEM(values, i));
      if (!collect(node.child(i), value.ptr())) return false;
    }
    return PySequence_Fast_GET_SIZE(values) == node.count;
  }

  PyObject* found_;
  PyObject* children_of_;
  int depth_ = 0;
};

}  // namespace

PyObject* tree_build(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  constexpr const char* kName = "_tree_build";
  if (!has_count(count, 3, kName) || !is_exact(arguments[1], &PyList_Type, kName)) return nullptr;
  return guarded([&] { return Building(arguments[1], arguments[2]).build(arguments[0]); });
}

PyObject* tree_collect(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 3, "_tree_collect")) return nullptr;
  return guarded([&]() -> py::object {
    const py::object found = steal(PyList_New(0));
    const bool fits = Collecting(found.ptr(), arguments[2]).collect(arguments[0], arguments[1]);
    return fits ? found : py::none();
  });
}

}  // namespace artifex_devices::bindings::trees
