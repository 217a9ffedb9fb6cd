// SPDX-License-Identifier: Apache-2.0
// Shared by bind_tree.cpp, tree_build.cpp, tree_paths.cpp, tree_rows.cpp and tree_text.cpp: nodes of structures,
// levels, and errors of Python's C interface.
#pragma once

#include <utility>
#include <vector>

#include "cpython_calls.h"
#include "pybind.h"

namespace artifex_devices::bindings::trees {

namespace py = pybind11;

constexpr int kMaxLevels = 1000;  // as in python/artifex_devices/_tree/flatten.py

inline py::object steal(PyObject* object) {
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}

inline py::object borrow(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }

inline void check(bool succeeded) {
  if (!succeeded) throw py::error_already_set();
}

inline PyObject* as_object(PyTypeObject* type) { return reinterpret_cast<PyObject*>(type); }

/// A tree has more than kMaxLevels levels. Functions report it as a RecursionError of Python.
class TooDeep : public std::exception {
 public:
  const char* what() const noexcept override { return "a tree is nested too deep"; }
};

/// The nodes whose children a traversal visits, outermost first. They are on the heap, as the stack of a thread may be
/// small; so the limit is equal in every thread and at any depth of calls.
template <class Frame>
class Levels {
 public:
  bool empty() const { return frames_.empty(); }
  Frame& innermost() { return frames_.back(); }
  /// Throws TooDeep if there cannot be another level inside.
  void check_depth() const {
    if (frames_.size() >= static_cast<size_t>(kMaxLevels)) throw TooDeep();
  }
  /// References to frames are invalid from then on.
  void enter(Frame frame) {
    check_depth();
    frames_.push_back(std::move(frame));
  }
  void leave() { frames_.pop_back(); }

 private:
  std::vector<Frame> frames_;
};

[[noreturn]] inline void fail_structure() {
  PyErr_SetString(PyExc_TypeError,
                  "PyTreeDef: a node is not (type, data, children), or its number of keys or leaves is wrong; expected "
                  "a structure returned by tree.structure");
  throw py::error_already_set();
}

/// A validated node: a malformed structure, such as an unpickled one, cannot be misread.
struct Node {
  PyTypeObject* type;
  PyObject* data;
  PyObject* children;
  Py_ssize_t count;

  explicit Node(PyObject* node) {
    if (!PyTuple_CheckExact(node) || PyTuple_GET_SIZE(node) != 3) fail_structure();
    if (!PyType_Check(PyTuple_GET_ITEM(node, 0))) fail_structure();
    type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(node, 0));
    data = PyTuple_GET_ITEM(node, 1);
    children = PyTuple_GET_ITEM(node, 2);
    if (PyTuple_CheckExact(children)) {
      count = PyTuple_GET_SIZE(children);
    } else {
      count = PyLong_CheckExact(children) ? PyLong_AsSsize_t(children) : -1;
      PyErr_Clear();
    }
    if (count < 0) fail_structure();
    if (type == &PyDict_Type && (!PyTuple_CheckExact(data) || PyTuple_GET_SIZE(data) != count)) fail_structure();
  }

  /// The node of child i, or None if the child is a leaf.
  PyObject* child(Py_ssize_t i) const { return children_are_leaves() ? Py_None : PyTuple_GET_ITEM(children, i); }
  bool children_are_leaves() const { return PyLong_CheckExact(children); }
  /// Whether it is the node of None, which adds no level.
  bool is_of_none() const { return type == Py_TYPE(Py_None); }
};

/// A node of a structure and its next child.
struct NodeVisit {
  Node node;
  Py_ssize_t next = 0;

  bool has_next() const { return next < node.count; }
  PyObject* next_child() { return node.child(next++); }
};

/// Runs `work` and turns its exceptions into Python errors.
template <class Work>
PyObject* guarded(Work&& work) noexcept {
  return translated([&] {
    try {
      return work().release().ptr();
    } catch (const TooDeep&) {
      PyErr_Format(
          PyExc_RecursionError,
          "a tree is nested too deep; expected at most %d levels, got more; wrap the inner levels in a leaf of "
          "your own type",
          kMaxLevels);
      throw py::error_already_set();
    }
  });
}

/// Calls a Python function, which may be the user's.
template <class... Arguments>
py::object call(PyObject* function, Arguments... arguments) {
  return call_python(function, py::handle(arguments)...);
}

inline bool has_count(Py_ssize_t count, Py_ssize_t expected, const char* name) {
  if (count == expected) return true;
  PyErr_Format(PyExc_TypeError, "%s: %zd arguments; expected %zd", name, count, expected);
  return false;
}

inline bool is_exact(PyObject* object, PyTypeObject* type, const char* name) {
  if (Py_TYPE(object) == type) return true;
  PyErr_Format(PyExc_TypeError, "%s: got a %s; expected a %s", name, Py_TYPE(object)->tp_name, type->tp_name);
  return false;
}

/// Returns a tuple of at least `count` keys, which the Python function `keys_of` creates.
py::object keys_of_children(PyObject* keys_of, PyTypeObject* type, PyObject* data, Py_ssize_t count);

/// Returns the path and one more key.
py::object longer_path(const py::object& path, PyObject* key);

// Functions of the module; arguments are checked.
PyObject* tree_build(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept;
PyObject* tree_collect(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept;
PyObject* tree_paths(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept;
PyObject* tree_rows(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept;
PyObject* tree_of_rows(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept;
PyObject* tree_num_leaves(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept;
PyObject* tree_text(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept;
PyObject* tree_compose(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept;

}  // namespace artifex_devices::bindings::trees
