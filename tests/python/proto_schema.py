# SPDX-License-Identifier: Apache-2.0
"""Message classes of the protobuf package from the text of a .proto file, without its compiler."""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
}
_FIELD = re.compile(r"(repeated )?([\w.]+) (\w+) = (\d+)$")


def messages(text: str) -> dict[str, Any]:
    """The classes by name; messages inside others count as if beside them."""
    lines = re.sub(r"//[^\n]*", "", text)
    package = re.search(r"^package ([\w.]+);", lines, re.MULTILINE)
    file = descriptor_pb2.FileDescriptorProto(
        name="schema.proto", syntax="proto3", package=package.group(1) if package else "schema"
    )
    open_messages: list[Any] = []
    for piece in re.split(r"(?<=[;{}])", lines):
        statement = piece.strip().rstrip(";{}").strip()
        if statement.startswith("message "):
            open_messages.append(file.message_type.add(name=statement.removeprefix("message ")))
        elif piece.strip() == "}":
            open_messages.pop()
        elif open_messages:
            matched = _FIELD.match(statement)
            assert matched, statement
            repeated, type_name, name, number = matched.groups()
            field = open_messages[-1].field.add(name=name, number=int(number))
            field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            if type_name in _SCALARS:
                field.type = _SCALARS[type_name]
            else:
                field.type = _Field.TYPE_MESSAGE
                field.type_name = f".{file.package}.{type_name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        each.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{each.name}"))
        for each in file.message_type
    }
