// SPDX-License-Identifier: Apache-2.0
// Builds trees from a structure and leaves, and collects the subtrees at the leaves of a structure.
#include "tree_node.h"

namespace artifex_devices::bindings::trees {
namespace {

class Building {
 public:
  Building(PyObject* leaves, PyObject* make_node) : leaves_(leaves), make_node_(make_node) {}

  py::object build(PyObject* structure) {
    py::object done = begin(structure);
    while (!done || !open_.empty()) {
      Open& inner = open_.innermost();
      if (done) add(&inner, std::exchange(done, {}));
      if (inner.visit.has_next()) {
        done = begin(inner.visit.next_child());
      } else {
        done = end(inner);
        open_.leave();
      }
    }
    return done;
  }

 private:
  struct Open {
    NodeVisit visit;
    py::object children;  // those built so far: a dict, tuple or list
  };

  /// Returns a leaf or None. For other structures it begins a node and returns null; the children come next.
  py::object begin(PyObject* structure) {
    if (structure == Py_None) return next_leaf();
    const Node node(structure);
    if (node.is_of_none()) return py::none();
    if (node.children_are_leaves() && node.count > PyList_GET_SIZE(leaves_) - at_) fail_structure();
    py::object children = steal(node.type == &PyDict_Type    ? PyDict_New()
                                : node.type == &PyTuple_Type ? PyTuple_New(node.count)
                                                             : PyList_New(node.count));
    Open open{{node}, std::move(children)};
    if (node.children_are_leaves()) {  // as most nodes
      open_.check_depth();
      while (open.visit.has_next()) {
        ++open.visit.next;
        add(&open, next_leaf());
      }
      return end(open);
    }
    open_.enter(std::move(open));
    return {};
  }

  static void add(Open* to, py::object child) {
    const Py_ssize_t i = to->visit.next - 1;
    PyObject* const children = to->children.ptr();
    if (PyDict_CheckExact(children)) {
      PyObject* const key = PyTuple_GET_ITEM(to->visit.node.data, i);
      check(sleeping_at_exit([&] { return PyDict_SetItem(children, key, child.ptr()); }) == 0);
    } else if (PyTuple_CheckExact(children)) {
      PyTuple_SET_ITEM(children, i, child.release().ptr());
    } else {
      PyList_SET_ITEM(children, i, child.release().ptr());
    }
  }

  py::object end(Open& node) {
    PyTypeObject* const type = node.visit.node.type;
    if (type == &PyDict_Type || type == &PyTuple_Type || type == &PyList_Type) return std::move(node.children);
    return call(make_node_, as_object(type), node.visit.node.data, node.children.ptr());
  }

  py::object next_leaf() {
    auto leaf = py::reinterpret_steal<py::object>(sequence_item(leaves_, at_++));
    if (!leaf) fail_structure();
    return leaf;
  }

  PyObject* leaves_;
  PyObject* make_node_;
  Py_ssize_t at_ = 0;
  Levels<Open> open_;
};

class Collecting {
 public:
  Collecting(PyObject* found, PyObject* children_of) : found_(found), children_of_(children_of) {}

  /// Returns false if the tree has another structure.
  bool collect(PyObject* structure, PyObject* tree) {
    if (!begin(structure, tree)) return false;
    while (!open_.empty()) {
      Open& inner = open_.innermost();
      if (!inner.visit.has_next()) {
        open_.leave();
        continue;
      }
      const py::object value = next_value(inner);
      if (!value || !begin(inner.visit.next_child(), value.ptr())) return false;
    }
    return true;
  }

 private:
  struct Open {
    NodeVisit visit;
    py::object values;  // a dict, tuple or list
  };

  /// Begins a node; its children come next. Returns false if the tree has a different node.
  bool begin(PyObject* structure, PyObject* tree) {
    if (structure == Py_None) {
      check(PyList_Append(found_, tree) == 0);
      return true;
    }
    const Node node(structure);
    if (Py_TYPE(tree) != node.type) return false;
    if (node.is_of_none()) return true;
    py::object values = borrow(tree);
    if (node.type != &PyDict_Type && node.type != &PyList_Type && node.type != &PyTuple_Type) {
      values = call(children_of_, tree, node.data);
      if (!PyTuple_CheckExact(values.ptr())) return false;
    }
    const Py_ssize_t count =
        PyDict_CheckExact(values.ptr()) ? PyDict_GET_SIZE(values.ptr()) : PySequence_Fast_GET_SIZE(values.ptr());
    if (count != node.count) return false;
    open_.enter({{node}, std::move(values)});
    return true;
  }

  /// The tree at the next child of a node. Null if the child is gone, because a function of a registered type changed
  /// the list or dict.
  static py::object next_value(const Open& node) {
    const Py_ssize_t i = node.visit.next;
    PyObject* const values = node.values.ptr();
    if (PyDict_CheckExact(values)) {
      PyObject* const key = PyTuple_GET_ITEM(node.visit.node.data, i);
      PyObject* value = sleeping_at_exit([&] { return dict_item(values, key); });
      check(value != nullptr || PyErr_Occurred() == nullptr);
      return py::reinterpret_steal<py::object>(value);
    }
    return py::reinterpret_steal<py::object>(sequence_item(values, i));
  }

  PyObject* found_;
  PyObject* children_of_;
  Levels<Open> open_;
};

}  // namespace

PyObject* tree_build(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  constexpr const char* kName = "tree_build";
  if (!has_count(count, 3, kName) || !is_exact(arguments[1], &PyList_Type, kName)) return nullptr;
  return guarded([&] { return Building(arguments[1], arguments[2]).build(arguments[0]); });
}

PyObject* tree_collect(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 3, "tree_collect")) return nullptr;
  return guarded([&]() -> py::object {
    const py::object found = steal(PyList_New(0));
    const bool fits = Collecting(found.ptr(), arguments[2]).collect(arguments[0], arguments[1]);
    return fits ? found : py::none();
  });
}

}  // namespace artifex_devices::bindings::trees
