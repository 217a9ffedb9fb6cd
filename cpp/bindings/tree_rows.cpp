// SPDX-License-Identifier: Apache-2.0
// A structure as a list of rows: each node before its children, whose number replaces them. Pickles hold this list, as
// pickling nested tuples would reach Python's limit of calls.
#include "tree_node.h"

namespace artifex_devices::bindings::trees {
namespace {

void add_rows(PyObject* structure, PyObject* rows, int* depth) {
  if (structure == Py_None) return check(PyList_Append(rows, Py_None) == 0);
  const Node node(structure);
  if (node.children_are_leaves()) return check(PyList_Append(rows, structure) == 0);
  const Level level(depth);
  const py::object count = steal(Py_BuildValue("(n)", node.count));
  const py::object row = steal(PyTuple_Pack(3, as_object(node.type), node.data, count.ptr()));
  check(PyList_Append(rows, row.ptr()) == 0);
  for (Py_ssize_t i = 0; i < node.count; ++i) add_rows(node.child(i), rows, depth);
}

void add_leaves(PyObject* structure, Py_ssize_t* total, int* depth) {
  Py_ssize_t count = 1;
  if (structure != Py_None) {
    const Node node(structure);
    if (node.is_of_none()) return;
    const Level level(depth);
    if (!node.children_are_leaves()) {
      for (Py_ssize_t i = 0; i < node.count; ++i) add_leaves(node.child(i), total, depth);
      return;
    }
    count = node.count;
  }
  if (__builtin_add_overflow(*total, count, total)) fail_structure();
}

class Reading {
 public:
  explicit Reading(PyObject* rows) : rows_(rows) {}

  py::object next() {
    if (at_ >= PyList_GET_SIZE(rows_)) fail_structure();
    const py::object row = borrow(PyList_GET_ITEM(rows_, at_++));
    if (row.is_none()) return row;
    if (!PyTuple_CheckExact(row.ptr()) || PyTuple_GET_SIZE(row.ptr()) != 3) fail_structure();
    PyObject* const children = PyTuple_GET_ITEM(row.ptr(), 2);
    if (PyLong_CheckExact(children)) return row;
    if (!PyTuple_CheckExact(children) || PyTuple_GET_SIZE(children) != 1) fail_structure();
    const Level level(&depth_);
    const Py_ssize_t count = PyLong_AsSsize_t(PyTuple_GET_ITEM(children, 0));
    check(count != -1 || PyErr_Occurred() == nullptr);
    if (count < 0 || count > PyList_GET_SIZE(rows_) - at_) fail_structure();
    bool are_leaves = true;
    py::object nodes = steal(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      py::object child = next();
      are_leaves = are_leaves && child.is_none();
      PyTuple_SET_ITEM(nodes.ptr(), i, child.release().ptr());
    }
    if (are_leaves) nodes = steal(PyLong_FromSsize_t(count));
    return steal(PyTuple_Pack(3, PyTuple_GET_ITEM(row.ptr(), 0), PyTuple_GET_ITEM(row.ptr(), 1), nodes.ptr()));
  }

  bool is_at_end() const { return at_ == PyList_GET_SIZE(rows_); }

 private:
  PyObject* rows_;
  Py_ssize_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

PyObject* tree_rows(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 1, "_tree_rows")) return nullptr;
  return guarded([&]() -> py::object {
    int depth = 0;
    const py::object rows = steal(PyList_New(0));
    add_rows(arguments[0], rows.ptr(), &depth);
    return rows;
  });
}

PyObject* tree_of_rows(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  constexpr const char* kName = "_tree_of_rows";
  if (!has_count(count, 1, kName) || !is_exact(arguments[0], &PyList_Type, kName)) return nullptr;
  return guarded([&]() -> py::object {
    Reading reading(arguments[0]);
    py::object node = reading.next();
    if (!reading.is_at_end()) fail_structure();
    return node;
  });
}

PyObject* tree_num_leaves(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 1, "_tree_num_leaves")) return nullptr;
  return guarded([&]() -> py::object {
    Py_ssize_t total = 0;
    int depth = 0;
    add_leaves(arguments[0], &total, &depth);
    return steal(PyLong_FromSsize_t(total));
  });
}

}  // namespace artifex_devices::bindings::trees
