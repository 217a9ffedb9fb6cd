// SPDX-License-Identifier: Apache-2.0
// A structure as a list of rows: each node before its children, whose number replaces them. Pickles hold this list, as
// pickling nested tuples would reach Python's limit of calls.
#include "tree_node.h"

namespace artifex_devices::bindings::trees {
namespace {

/// Calls `at_node` on each node, before its children, and `at_leaf` for each leaf. Enters a node only if
/// `at_node` returns true.
template <class AtNode, class AtLeaf>
void for_each_node(PyObject* structure, AtNode at_node, AtLeaf at_leaf) {
  Levels<NodeVisit> open;
  PyObject* each = structure;
  for (;;) {
    if (each == Py_None) {
      at_leaf();
    } else {
      const Node node(each);
      if (!node.is_of_none()) open.check_depth();
      if (at_node(each, node)) open.enter({node});
    }
    while (!open.empty() && !open.innermost().has_next()) open.leave();
    if (open.empty()) return;
    each = open.innermost().next_child();
  }
}

void add_rows(PyObject* structure, PyObject* rows) {
  for_each_node(
      structure,
      [rows](PyObject* each, const Node& node) {
        py::object row = borrow(each);
        if (!node.children_are_leaves()) {
          const py::object count = steal(Py_BuildValue("(n)", node.count));
          row = steal(PyTuple_Pack(3, as_object(node.type), node.data, count.ptr()));
        }
        check(PyList_Append(rows, row.ptr()) == 0);
        return !node.children_are_leaves();
      },
      [rows] { check(PyList_Append(rows, Py_None) == 0); });
}

Py_ssize_t count_leaves(PyObject* structure) {
  Py_ssize_t total = 0;
  const auto add = [&total](Py_ssize_t count) {
    if (__builtin_add_overflow(total, count, &total)) fail_structure();
  };
  for_each_node(
      structure,
      [&](PyObject*, const Node& node) {
        if (node.is_of_none()) return false;
        if (!node.children_are_leaves()) return true;
        add(node.count);
        return false;
      },
      [&] { add(1); });
  return total;
}

class Reading {
 public:
  explicit Reading(PyObject* rows) : rows_(rows) {}

  py::object read() {
    py::object done = begin();
    while (!done || !open_.empty()) {
      Open& inner = open_.innermost();
      if (done) {
        inner.are_leaves = inner.are_leaves && done.is_none();
        PyTuple_SET_ITEM(inner.nodes.ptr(), inner.count++, done.release().ptr());
      }
      if (inner.count < PyTuple_GET_SIZE(inner.nodes.ptr())) {
        done = begin();
      } else {
        done = end(inner);
        open_.leave();
      }
    }
    return done;
  }

  bool is_at_end() const { return at_ == PyList_GET_SIZE(rows_); }

 private:
  struct Open {
    py::object row;
    py::object nodes;  // of the children: a tuple that is filled up to `count`
    Py_ssize_t count = 0;
    bool are_leaves = true;
  };

  /// Returns the node of the next row; null if its children come next.
  py::object begin() {
    if (at_ >= PyList_GET_SIZE(rows_)) fail_structure();
    py::object row = borrow(PyList_GET_ITEM(rows_, at_++));
    if (row.is_none()) return row;
    if (!PyTuple_CheckExact(row.ptr()) || PyTuple_GET_SIZE(row.ptr()) != 3) fail_structure();
    PyObject* const children = PyTuple_GET_ITEM(row.ptr(), 2);
    if (PyLong_CheckExact(children)) return row;
    if (!PyTuple_CheckExact(children) || PyTuple_GET_SIZE(children) != 1) fail_structure();
    const Py_ssize_t count = PyLong_AsSsize_t(PyTuple_GET_ITEM(children, 0));
    check(count != -1 || PyErr_Occurred() == nullptr);
    if (count < 0 || count > PyList_GET_SIZE(rows_) - at_) fail_structure();
    open_.enter({std::move(row), steal(PyTuple_New(count))});
    return {};
  }

  static py::object end(const Open& open) {
    const py::object children = open.are_leaves ? steal(PyLong_FromSsize_t(open.count)) : open.nodes;
    PyObject* const row = open.row.ptr();
    return steal(PyTuple_Pack(3, PyTuple_GET_ITEM(row, 0), PyTuple_GET_ITEM(row, 1), children.ptr()));
  }

  PyObject* rows_;
  Py_ssize_t at_ = 0;
  Levels<Open> open_;
};

}  // namespace

PyObject* tree_rows(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 1, "tree_rows")) return nullptr;
  return guarded([&]() -> py::object {
    const py::object rows = steal(PyList_New(0));
    add_rows(arguments[0], rows.ptr());
    return rows;
  });
}

PyObject* tree_of_rows(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  constexpr const char* kName = "tree_of_rows";
  if (!has_count(count, 1, kName) || !is_exact(arguments[0], &PyList_Type, kName)) return nullptr;
  return guarded([&]() -> py::object {
    Reading reading(arguments[0]);
    py::object node = reading.read();
    if (!reading.is_at_end()) fail_structure();
    return node;
  });
}

PyObject* tree_num_leaves(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 1, "tree_num_leaves")) return nullptr;
  return guarded([&] { return steal(PyLong_FromSsize_t(count_leaves(arguments[0]))); });
}

}  // namespace artifex_devices::bindings::trees
