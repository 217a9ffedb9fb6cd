// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <mutex>

#include "array_methods.h"
#include "artifex_devices/array/array.h"
#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/throw_error.h"
#include "bindings.h"
#include "cached_object.h"
#include "class_members.h"
#include "cpython_calls.h"
#include "device_indices.h"
#include "fast_path.h"
#include "gil.h"
#include "gil_mutex.h"
#include "mesh_fast_paths.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "python_arguments.h"
#include "python_modules.h"
#include "python_owner.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

/// One device's shard as Python sees it; its data becomes an Array at the first access.
struct ShardView {
  ArrayRef array;
  Position position;
  py::object data = {};  // null before the first access
};

py::tuple shard_index(const ShardView& self) {
  const Sharding& sharding = *self.array->sharding();
  return index_of_tile(sharding.domains(self.array->shape(), "Shard.index"), sharding.grid().tile(self.position));
}

int64_t shard_replica(const ShardView& self) {
  return self.array->sharding()->domains(self.array->shape(), "Shard.replica_id").replica(self.position);
}

PyObject* fast_sharding(PyObject* self) {
  const Array* array = value_in<Array>(self);
  return array == nullptr ? nullptr : sharding_object(array->sharding()).release().ptr();
}

PyObject* fast_shape(PyObject* self) {
  const Array* array = value_in<Array>(self);
  return array == nullptr ? nullptr : tuple_from_dims(array->shape()).release().ptr();
}

PyObject* fast_dtype(PyObject* self) {
  const Array* array = value_in<Array>(self);
  return array == nullptr ? nullptr : numpy_dtype(array->dtype()).release().ptr();
}

PyObject* fast_rank(PyObject* self) {
  const Array* array = value_in<Array>(self);
  return array == nullptr ? nullptr : PyLong_FromLongLong(array->rank());
}

PyObject* fast_bytes(PyObject* self) {
  const Array* array = value_in<Array>(self);
  return array == nullptr ? nullptr : PyLong_FromLongLong(array->nbytes());
}

PyObject* fast_committed(PyObject* self) {
  const Array* array = value_in<Array>(self);
  return array == nullptr ? nullptr : PyBool_FromLong(array->committed() ? 1 : 0);
}

Device& device_of_shard(const ShardView& self) { return self.array->sharding()->device(self.position); }

/// Returns None for a shard of another process, as in JAX.
py::object shard_data(ShardView& self) {
  if (!device_of_shard(self).is_addressable()) return py::none();
  self.array->check_alive("shard_data");
  static constinit GilMutex mutex;
  {
    const std::lock_guard lock(mutex);
    if (self.data) return self.data;
  }
  const py::object created = py::cast(self.array->shard_data(self.position));
  const std::lock_guard lock(mutex);
  if (!self.data) self.data = created;
  return self.data;
}

PyObject* fast_shard_data(PyObject* self) {
  ShardView* shard = value_in<ShardView>(self);
  return shard == nullptr ? nullptr : shard_data(*shard).release().ptr();
}

/// A new list; the Shards in it are created once for each Array.
py::list addressable_shards(const py::object& self) {
  const auto array = self.cast<ArrayRef>();
  array->check_alive("addressable_shards");
  PyObject* cached = CachedObject<Array>::of(self.ptr());
  if (cached == nullptr) {
    const DeviceList& devices = *array->sharding()->devices();
    py::list shards;
    for (int64_t i = 0; i < devices.addressable_count(); ++i) {
      shards.append(ShardView{array, devices.addressable_position(i)});
    }
    cached = CachedObject<Array>::store(self.ptr(), std::move(shards));
  }
  PyObject* const copy = PyList_GetSlice(cached, 0, PyList_GET_SIZE(cached));
  if (copy == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::list>(copy);
}

PyObject* fast_shards(PyObject* self) {
  const Array* array = value_in<Array>(self);
  PyObject* const cached = array == nullptr || array->is_deleted() ? nullptr : CachedObject<Array>::of(self);
  return cached == nullptr ? nullptr : PyList_GetSlice(cached, 0, PyList_GET_SIZE(cached));
}

py::list global_shards(const ArrayRef& self) {
  self->check_alive("global_shards");
  py::list result;
  for (const Position position : self->sharding()->positions()) {
    result.append(ShardView{self, position});
  }
  return result;
}

py::object device_of(const Array& self) {
  const Sharding& sharding = *self.sharding();
  if (sharding.num_devices() == 1) return py::cast(handle_of(sharding.devices()->front()));
  return py::cast(std::const_pointer_cast<Sharding>(self.sharding()));
}

py::set devices_of_array(const Array& self) {
  self.check_alive("devices");
  return device_set(self.sharding()->devices());
}

py::object as_numpy(const ArrayRef& self, const py::object& dtype, const py::object& copy) {
  if (!copy.is_none() && !PyBool_Check(copy.ptr())) {
    throw_error<TypeMismatch>("__array__: copy is of type {}; expected True, False or None; leave it out",
                              Py_TYPE(copy.ptr())->tp_name);
  }
  const bool never_copy = copy.ptr() == Py_False;
  const bool always_copy = copy.ptr() == Py_True;
  if (never_copy && self->sharding()->grid().tiles() != 1) {
    self->check_alive("__array__");
    self->check_addressable("__array__");
    throw_error("__array__: copy=False cannot gather an Array in {} parts; expected one part, got {}; leave copy out",
                self->sharding()->grid().tiles(), self->sharding()->to_string());
  }
  py::object value = value_of(self, "__array__");
  const py::object requested = dtype.is_none() ? dtype : py::module_::import("numpy").attr("dtype")(dtype);
  if (!requested.is_none() && !requested.equal(value.attr("dtype"))) {
    if (never_copy) {
      throw_error("__array__: copy=False cannot change the dtype; expected {}, got {}; leave copy out",
                  py::str(value.attr("dtype")).cast<std::string>(), py::str(requested).cast<std::string>());
    }
    return value.attr("astype")(dtype);
  }
  return always_copy ? value.attr("copy")() : value;
}

py::object scalar_of(const ArrayRef& self, const char* operation) {
  if (self->rank() != 0) {
    std::string element = "x";
    for (int64_t d = 0; self->size() != 1 && d < self->rank(); ++d) element += d == 0 ? "[0" : ", 0";
    if (element != "x") element += "]";
    throw_error<TypeMismatch>(
        "{}: only an Array without dimensions is a number; expected shape (), got {}; use {}.item() or np.asarray(x)",
        operation, to_string(self->shape()), element);
  }
  return value_of(self, operation).attr("item")();
}

void bind_shard(py::module_& module) {
  py::class_<ShardView> shard(module, "Shard", "One device's shard of an Array.");
  shard
      .def_property_readonly(
          "device", [](const ShardView& self) { return handle_of(&device_of_shard(self)); },
          "Device that holds the shard.")
      .def_property_readonly("index", &shard_index, "Position of the shard in the global array: a tuple of slices.")
      .def_property_readonly("replica_id", &shard_replica, "Number of earlier devices that hold the same part.")
      .def_property_readonly("data", &shard_data,
                             "The shard as an Array on its device, sharing the memory; deleting either deletes both. "
                             "It is None for a shard of another process.")
      .def("_repr_html_", [](const py::object& self) { return call_python(python_modules::kHtml, "shard_html", self); })
      .def("__repr__", [](ShardView& self) {
        const py::object data = shard_data(self);
        return py::str("Shard(device={!r}, index={}, replica_id={}, data={})")
            .format(handle_of(&device_of_shard(self)), shard_index(self), shard_replica(self), py::str(data));
      });
  add_fast_property<&fast_shard_data>(shard, "data");
}

void bind_array_memory(py::class_<Array, std::shared_ptr<Array>>& array) {
  array
      .def(
          "delete",
          [](Array& self) {
            release_dropped_owners();
            self.delete_();
          },
          "Deletes the Array and its shards in this process. Memory is freed when its last view is gone. A second call "
          "does nothing.")
      .def("is_deleted", by_reference(&Array::is_deleted), "Returns whether the Array was deleted or donated.")
      .def("is_ready", by_reference(&Array::is_ready), "Returns whether the data is written. Never waits.")
      .def(
          "block_until_ready",
          [](const py::object& self) {
            auto& waited =
                value_from_python<Array>(self, "Array.block_until_ready", "self", "an Array", "device_put(x)");
            release_dropped_owners();
            waited.check_alive("block_until_ready");
            if (!waited.is_ready()) {
              const ReleaseGil release;
              waited.block_until_ready();
            } else {
              waited.block_until_ready();  // rethrows what went wrong
            }
            return self;
          },
          R"(Waits until the data is written, and returns the Array. Ctrl-C ends the wait.

Raises:
    RuntimeError: The Array was deleted, or the transfer into it failed.
)")
      .def(
          "on_device_size_in_bytes",
          [](const Array& self) {
            self.check_alive("on_device_size_in_bytes");
            return self.on_device_size_in_bytes();
          },
          "Returns the number of bytes on all devices, replicas counted.")
      .def(
          "unsafe_buffer_pointer",
          [](const Array& self) {
            self.check_alive("unsafe_buffer_pointer");
            if (self.sharding()->num_devices() != 1) {
              throw_error(
                  "unsafe_buffer_pointer: an Array on {} devices has no single address; expected one device; use a "
                  "shard: x.addressable_shards[0].data.unsafe_buffer_pointer()",
                  self.sharding()->num_devices());
            }
            self.check_addressable("unsafe_buffer_pointer");
            const BufferRef buffer = self.storage()->buffer(self.buffer_at(Position(0)));
            return buffer.block->address() + static_cast<uint64_t>(buffer.offset);
          },
          R"(Returns the address of the data of an Array on one device, which is valid while the Array is alive.

Reading GPU memory through the address ends the process with a segmentation fault.
)");
}

void bind_array_numpy(py::class_<Array, std::shared_ptr<Array>>& array) {
  array.def("__array__", &as_numpy, py::arg("dtype") = py::none(), py::arg("copy") = py::none())
      .def(
          "item", [](Array& self) { return value_of(self.shared_from_this(), "item").attr("item")(); },
          "Returns the only element as a Python number. Raises ValueError for an Array of several elements.")
      .def(
          "tolist", [](Array& self) { return value_of(self.shared_from_this(), "tolist").attr("tolist")(); },
          "Returns the elements as nested lists of Python numbers.")
      .def("__float__", [](Array& self) { return py::float_(scalar_of(self.shared_from_this(), "float")); })
      .def("__int__",
           [](Array& self) {
             return py::module_::import("builtins").attr("int")(scalar_of(self.shared_from_this(), "int"));
           })
      .def("__complex__",
           [](Array& self) {
             return py::module_::import("builtins").attr("complex")(scalar_of(self.shared_from_this(), "complex"));
           })
      .def("__index__",
           [](Array& self) {
             const py::object value = scalar_of(self.shared_from_this(), "index");
             if (!PyLong_Check(value.ptr()) || PyBool_Check(value.ptr())) {
               throw_error<TypeMismatch>(
                   "index: an Array of dtype {} is not an index; expected an integer dtype; convert it by int(x)",
                   name(self.dtype()));
             }
             return value;
           })
      .def("__bool__", [](Array& self) { return py::bool_(value_of(self.shared_from_this(), "bool")); })
      .def("__len__", [](const Array& self) {
        if (self.rank() == 0) throw_error<TypeMismatch>("len: an Array without dimensions has no length; use .size");
        return self.shape()[0];
      });
  // == compares element by element (python/artifex_devices/arrays.py).
  array.attr("__hash__") = py::none();
}

void bind_array_class(py::module_& module) {
  py::class_<Array, std::shared_ptr<Array>> array(module, "Array", R"(An immutable array on devices.

Created by `device_put` and its family, never directly. `np.asarray(x)` returns its value as a read-only ndarray, without a
copy where one buffer holds all of it.

Example:
    >>> import numpy as np, artifex_devices as ad
    >>> x = ad.device_put(np.arange(4.0))
    >>> x.shape, x.dtype, x.device == ad.devices()[0]
    ((4,), dtype('float64'), True)
)",
                                                  CachedObject<Array>::setup());
  array
      .def_property_readonly(
          "shape", [](const Array& self) { return tuple_from_dims(self.shape()); }, "Global shape (tuple of int).")
      .def_property_readonly(
          "dtype", [](const Array& self) { return numpy_dtype(self.dtype()); }, "Element type (np.dtype).")
      .def_property_readonly("ndim", by_reference(&Array::rank), "Number of dimensions.")
      .def_property_readonly("size", by_reference(&Array::size), "Number of elements.")
      .def_property_readonly("nbytes", by_reference(&Array::nbytes),
                             "Number of bytes of the value, replicas not counted.")
      .def_property_readonly(
          "itemsize", [](const Array& self) { return itemsize(self.dtype()); }, "Number of bytes of one element.")
      .def_property_readonly(
          "sharding", [](const Array& self) { return std::const_pointer_cast<Sharding>(self.sharding()); },
          "Its sharding: how it is placed on its devices.")
      .def_property_readonly("device", &device_of, "Device that holds it, or its sharding if it is on several devices.")
      .def("devices", &devices_of_array, "Returns the set of the devices that hold the Array.")
      .def_property_readonly("committed", by_reference(&Array::committed),
                             "Whether the caller chose its device or sharding.")
      .def_property_readonly(
          "weak_type", [](const Array&) { return false; }, "Always False: dtypes follow NumPy.")
      .def_property_readonly(
          "is_fully_replicated", [](const Array& self) { return self.sharding()->is_fully_replicated(); },
          "Whether each device holds all of it.")
      .def_property_readonly(
          "is_fully_addressable", [](const Array& self) { return self.sharding()->is_fully_addressable(); },
          "Whether all its devices belong to this process.")
      .def_property_readonly("addressable_shards", &addressable_shards,
                             "List of one Shard for each device of this process, in mesh order.")
      .def_property_readonly("global_shards", &global_shards,
                             "List of one Shard for each device of all processes, in mesh order; the `data` of other "
                             "processes' shards is None.")
      .def(
          "addressable_data",
          [](const ArrayRef& self, const IntArgument& argument) {
            const int64_t index = index_from_python(argument, "Array.addressable_data", "index");
            const DeviceList& devices = *self->sharding()->devices();
            if (index < 0 || index >= devices.addressable_count()) {
              throw_error<IndexOutOfRange>("addressable_data: shard {} does not exist; expected 0 to {}", index,
                                           devices.addressable_count() - 1);
            }
            return self->shard_data(devices.addressable_position(index));
          },
          py::arg("index"), "Returns the shard of the `index`-th device of this process, in mesh order, as an Array.");
  add_fast_property<&fast_sharding>(array, "sharding");
  add_fast_property<&fast_shape>(array, "shape");
  add_fast_property<&fast_dtype>(array, "dtype");
  add_fast_property<&fast_rank>(array, "ndim");
  add_fast_property<&fast_bytes>(array, "nbytes");
  add_fast_property<&fast_committed>(array, "committed");
  add_fast_property<&fast_shards>(array, "addressable_shards");
  bind_array_repr(array);
  bind_array_memory(array);
  bind_array_numpy(array);
  bind_array_interop(array);
}

}  // namespace

void bind_array(py::module_& module) {
  bind_array_class(module);
  bind_shard(module);
  module.def(
      "live_arrays",
      [] {
        release_dropped_owners();
        return make_list(live_arrays(nullptr), [](const ArrayRef& array) { return array; });
      },
      R"(Returns all Arrays that are alive and not deleted, oldest first; shards of an Array are not counted.

Example:
    >>> import numpy as np, artifex_devices as ad
    >>> x = ad.device_put(np.ones(3))
    >>> any(x is y for y in ad.live_arrays())
    True
)");
}

}  // namespace artifex_devices::bindings
