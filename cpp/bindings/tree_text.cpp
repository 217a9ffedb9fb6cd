// SPDX-License-Identifier: Apache-2.0
// The text of a structure, as in JAX, and structures composed of two.
#include "tree_node.h"

namespace artifex_devices::bindings::trees {
namespace {

class Text {
 public:
  explicit Text(PyObject* parts) : parts_(parts) {}

  void add(PyObject* structure) {
    if (structure == Py_None) return add_text("*");
    const Node node(structure);
    if (node.is_of_none()) return add_text("None");
    const Level level(&depth_);
    if (node.type == &PyDict_Type) return add_children(node, "{", "}");
    if (node.type == &PyList_Type) return add_children(node, "[", "]");
    if (node.type == &PyTuple_Type) return add_children(node, "(", node.count == 1 ? ",)" : ")");
    const py::object name = steal(PyObject_GetAttrString(as_object(node.type), "__name__"));
    if (node.data == Py_None) {
      add_part(steal(PyUnicode_FromFormat("CustomNode(namedtuple[%U], ", name.ptr())));
    } else {
      add_part(steal(PyUnicode_FromFormat("CustomNode(%U[%S], ", name.ptr(), node.data)));
    }
    add_children(node, "[", "])");
  }

 private:
  void add_children(const Node& node, const char* begin, const char* end) {
    add_text(begin);
    for (Py_ssize_t i = 0; i < node.count; ++i) {
      if (i > 0) add_text(", ");
      if (node.type == &PyDict_Type) add_part(steal(PyUnicode_FromFormat("%R: ", PyTuple_GET_ITEM(node.data, i))));
      add(node.child(i));
    }
    add_text(end);
  }

  void add_text(const char* text) { add_part(steal(PyUnicode_FromString(text))); }
  void add_part(const py::object& part) { check(PyList_Append(parts_, part.ptr()) == 0); }

  PyObject* parts_;
  int depth_ = 0;
};

py::object composed(PyObject* structure, PyObject* inner, int* depth) {
  if (structure == Py_None) return borrow(inner);
  const Node node(structure);
  if (node.count == 0) return borrow(structure);
  const Level level(depth);
  const py::object children = steal(PyTuple_New(node.count));
  for (Py_ssize_t i = 0; i < node.count; ++i) {
    PyTuple_SET_ITEM(children.ptr(), i, composed(node.child(i), inner, depth).release().ptr());
  }
  return steal(PyTuple_Pack(3, as_object(node.type), node.data, children.ptr()));
}

}  // namespace

PyObject* tree_text(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 1, "_tree_text")) return nullptr;
  return guarded([&]() -> py::object {
    const py::object parts = steal(PyList_New(0));
    Text(parts.ptr()).add(arguments[0]);
    return steal(PyUnicode_Join(py::str("").ptr(), parts.ptr()));
  });
}

PyObject* tree_compose(PyObject*, PyObject* const* arguments, Py_ssize_t count) noexcept {
  if (!has_count(count, 2, "_tree_compose")) return nullptr;
  return guarded([&]() -> py::object {
    int depth = 0;
    if (arguments[1] != Py_None) static_cast<void>(Node(arguments[1]));
    return arguments[1] == Py_None ? borrow(arguments[0]) : composed(arguments[0], arguments[1], &depth);
  });
}

}  // namespace artifex_devices::bindings::trees
