#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks or rewrites the type stubs of the extensions, and the table of the package's lazy names.

    tools/make_stubs.py              prints how the committed files differ from what they should be; exits with 1 then
    tools/make_stubs.py --generate   rewrites _core/, _planner.pyi and _base/public_names.py

What pybind11-stubgen reads from the built extension is cleaned so that strict mypy and people can use it: integers are
int and not SupportsInt | SupportsIndex, bare containers have parameters, and ndarrays are NDArray. Types that pybind11
does not know are in tools/stub_types.py; other objects are Any. Needs the package and the tools of .venv.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from stub_types import LEFT_OUT, METHODS, PARAMETERS, REQUIRED, TYPES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "artifex_devices"
CORE = f"{PACKAGE}._core"
STUBS = {
    "_core": "_core/__init__.pyi",
    "_core.data": "_core/data.pyi",
    "_core.hlo": "_core/hlo.pyi",
    "_core.internal": "_core/internal.pyi",
    "_planner": "_planner.pyi",
}
FOLDER = ROOT / "python" / PACKAGE

# Types that pybind11 accepts for a number, by the widest Python type in the union.
NUMBERS = {
    "typing.SupportsComplex": "complex",
    "typing.SupportsFloat": "float",
    "typing.SupportsInt": "int",
    "typing.SupportsIndex": "int",
}
# Types that need parameters, which the generator omits.
BARE = {
    "tuple": "tuple[typing.Any, ...]",
    "list": "list[typing.Any]",
    "dict": "dict[str, typing.Any]",
    "set": "set[typing.Any]",
    "frozenset": "frozenset[typing.Any]",
    "type": "type[typing.Any]",
    "numpy.ndarray": "numpy.typing.NDArray[typing.Any]",
    "numpy.dtype": "numpy.dtype[typing.Any]",
    "collections.OrderedDict": "collections.OrderedDict[typing.Any, typing.Any]",
    "collections.abc.Callable": "collections.abc.Callable[..., typing.Any]",
    "collections.abc.Iterable": "collections.abc.Iterable[typing.Any]",
    "collections.abc.Iterator": "collections.abc.Iterator[typing.Any]",
    "collections.abc.Sequence": "collections.abc.Sequence[typing.Any]",
    "types.CapsuleType": "typing.Any",  # new in Python 3.13
}


UNUSED = set(TYPES)  # entries that no member has taken
SLOTS = {
    "__eq__": ast.parse("def __eq__(self, other: object) -> bool: ...").body[0],
    "__hash__": ast.parse("def __hash__(self) -> int: ...").body[0],
}
# Modules in qualified names such as numpy.typing.NDArray.
QUALIFIED = re.compile(
    r"\b(typing|typing_extensions|types|contextvars|collections|numpy|numpy\.typing|artifex_devices(?:\.\w+)+)\.[A-Z]\w*\b"
)
UNORDERED = {"__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
WITHOUT_SIGNATURE = {*SLOTS, *UNORDERED}


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _members(union: ast.expr) -> list[ast.expr]:
    """The members of `a | b | c`, in order."""
    if isinstance(union, ast.BinOp) and isinstance(union.op, ast.BitOr):
        return [*_members(union.left), *_members(union.right)]
    return [union]


def clean_type(node: ast.expr) -> ast.expr:
    """Returns a simplified annotation."""
    members = _members(node)
    if len(members) > 1 or ast.unparse(node) in NUMBERS:
        names = [ast.unparse(member) for member in members]
        number = next((python for name, python in NUMBERS.items() if name in names), None)
        cleaned = list(
            dict.fromkeys(
                number if number and name in NUMBERS else ast.unparse(clean_type(member))
                for name, member in zip(names, members, strict=True)
            )
        )
        return _expression(" | ".join(cleaned))
    text = ast.unparse(node)
    if text in BARE:
        return _expression(BARE[text])
    if isinstance(node, ast.Subscript):
        if ast.unparse(node.value) in ("typing.Annotated", "numpy.ndarray"):
            inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            return clean_type(inner) if "Annotated" in text[:16] else _expression(BARE["numpy.ndarray"])
        if ast.unparse(node.value) == "typing.Literal":
            return node
        node.slice = clean_type(node.slice)
    elif isinstance(node, (ast.Tuple, ast.List)):
        node.elts = [clean_type(element) for element in node.elts]
    return node


def _slot(node: ast.stmt) -> str:
    """The name of a function that is a slot, else empty."""
    return (
        node.name if isinstance(node, ast.FunctionDef) and node.name in WITHOUT_SIGNATURE and not node.returns else ""
    )


def _is_general_new(part: ast.stmt) -> bool:
    """Whether the function is a `__new__` of Python with arbitrary arguments."""
    return isinstance(part, ast.FunctionDef) and part.name == "__new__" and part.args.vararg is not None


class Cleaner(ast.NodeTransformer):
    """Cleans the annotations of a stub."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.owner = ""  # name of the class and a dot, or nothing

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.owner = f"{node.name}."
        self.generic_visit(node)
        self.owner = ""
        if "enum.Enum" in [ast.unparse(base) for base in node.bases]:
            # The generator writes members as annotations, which type checkers no longer take for members.
            members = getattr(importlib.import_module(self.module), node.name).__members__
            methods = [part for part in node.body if not isinstance(part, ast.AnnAssign)]
            methods = [part for part in methods if getattr(part, "name", "") != "__new__"]
            assigned = [ast.parse(f"{name} = {member.value!r}").body[0] for name, member in members.items()]
            node.body = [methods[0], *assigned, *methods[1:]]
        # Each class has one, which adds nothing to that of object.
        node.body = [part for part in node.body if not _is_general_new(part)] or [ast.Pass()]
        # Slots of the type have no signatures, and every type with == also has < and >.
        node.body = [SLOTS.get(_slot(part), part) for part in node.body if _slot(part) not in UNORDERED]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        """Removes imports of the package itself: classes with another `__module__` are defined here too."""
        return None if (node.module or "").startswith("artifex_devices") else node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        if node.annotation is not None:
            node.annotation = clean_type(node.annotation)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = clean_type(node.annotation)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef | None:
        if self.owner + node.name in LEFT_OUT:
            return None
        self.generic_visit(node)
        for variadic in (node.args.vararg, node.args.kwarg):
            if variadic is not None and variadic.annotation is None:
                variadic.annotation = _expression("typing.Any")
        if node.returns is not None:
            node.returns = clean_type(node.returns)
            if ast.unparse(node.returns) == "object":
                node.returns = _expression("typing.Any")
        self._declare(node)
        if node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
            node.body = node.body[:1]  # a docstring or an ellipsis is a complete body
        return node

    def _declare(self, node: ast.FunctionDef) -> None:
        """Writes the types of tools/stub_types.py into a function."""
        name = self.owner + node.name
        if name in TYPES:
            node.returns = _expression(TYPES[name])
            UNUSED.discard(name)
        elif node.name in METHODS and node.returns is not None and ast.unparse(node.returns) == "typing.Any":
            node.returns = _expression(METHODS[node.name])
        of_class = PARAMETERS.get(self.owner.rstrip("."), {})
        positional = [*node.args.posonlyargs, *node.args.args]
        defaults = [*[None] * (len(positional) - len(node.args.defaults)), *node.args.defaults]
        for i, arg in enumerate(positional):
            defaults[i] = None if f"{name}({arg.arg})" in REQUIRED else defaults[i]
        node.args.defaults = [default for default in defaults if default is not None]
        keywords = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        named = [*zip(positional, defaults, strict=True), *keywords]
        variadic = [(arg, None) for arg in (node.args.vararg, node.args.kwarg) if arg is not None]
        for arg, default in (*named, *variadic):
            parameter = f"{name}({arg.arg})"
            kind = TYPES.get(parameter)
            UNUSED.discard(parameter)
            if kind is None and arg.annotation is not None and ast.unparse(arg.annotation) == "typing.Any":
                kind = of_class.get(arg.arg) or PARAMETERS[""].get(arg.arg)
            if kind is not None:
                may_be_none = default is not None and ast.unparse(default) == "None" and not kind.endswith("None")
                arg.annotation = _expression(f"{kind} | None" if may_be_none else kind)


def missing_exceptions(text: str, module: str) -> str:
    """Exception classes with a public `__module__`, which the generator omits."""
    shown = ""
    for name, value in sorted(vars(importlib.import_module(module)).items()):
        if isinstance(value, type) and issubclass(value, BaseException) and f"class {name}" not in text:
            bases = ", ".join(base.__name__ for base in value.__bases__)
            shown += f'class {name}({bases}):\n    """{value.__doc__}"""\n'
    return shown


def _with_imports(body: str) -> str:
    """Adds imports of the modules that qualified names need, after the docstring."""
    modules = {match[1] for match in QUALIFIED.finditer(body)}
    missing = sorted(module for module in modules if f"import {module}" not in body)
    return body.replace("\nimport ", "\n" + "".join(f"import {module}\n" for module in missing) + "import ", 1)


def clean(raw: str, module: str) -> str:
    """Turns the output of pybind11-stubgen into the text of the stub, not yet formatted."""
    tree = Cleaner(module).visit(ast.parse(raw))
    if module != CORE:  # the other modules are private: their docstrings are in the extension only
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Expr(ast.Constant(...))]
    text = ast.unparse(ast.fix_missing_locations(tree))
    body = text.replace("from __future__ import annotations\n", "", 1)
    if module.startswith(f"{CORE}."):  # a part of the core; the formatter removes unused imports
        classes = [name for name, value in vars(importlib.import_module(CORE)).items() if isinstance(value, type)]
        body = body.replace("\nimport ", f"\nfrom {CORE} import {', '.join(classes)}\nimport ", 1)
        body = body.replace(f"import {CORE}\n", "", 1).replace(f"{CORE}.", "")
    body = _with_imports(body)
    # A class with == and no hash, which mypy reports.
    body = body.replace(
        "__hash__: typing.ClassVar[None] = None",
        "__hash__: typing.ClassVar[None] = None  # type: ignore[assignment]",
    )
    # Arrays are compared element by element, and object's == returns a bool.
    for operator in ("__eq__", "__ne__"):
        compare = f"def {operator}(self, other: object) -> Array:"
        body = body.replace(compare, f"{compare}  # type: ignore[override]")
    header = (
        "# SPDX-License-Identifier: Apache-2.0\n# Made by tools/make_stubs.py --generate from the built extension.\n"
    )
    return header + body + "\n" + missing_exceptions(body, module)


def lazy_names() -> str:
    """Returns the source of the table of public names: the imports of `__init__.pyi` as a dict."""
    stub = ast.parse((FOLDER / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom) and node.module is not None]
    rows = {alias.asname or alias.name: node.module for node in imports for alias in node.names}
    lines = [f'    "{name}": "{module}",' for name, module in rows.items()]
    return "\n".join(
        [
            "# SPDX-License-Identifier: Apache-2.0",
            "# Made by tools/make_stubs.py --generate from __init__.pyi.",
            '"""The module of each public name of the package, from which it is imported at first use."""',
            "",
            "MODULES = {",
            *lines,
            "}",
            "",
        ]
    )


def _run(*command: str, text: str | None = None) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(f"make_stubs: {' '.join(command)} failed with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


# pybind11-stubgen leaves out classes of other modules, and bound classes have their public path as __module__. Their
# signatures for `inspect` lack the types, which docstrings have.
STUBGEN = f"""
import inspect, {CORE} as core, pybind11_stubgen
from artifex_devices._array.absent_members import HINTS, AbsentMember
def argspec_unless_documented(function, argspec=inspect.getfullargspec):
    if (function.__doc__ or "").startswith(function.__name__ + "("):
        raise TypeError(function)
    return argspec(function)
inspect.getfullargspec = argspec_unless_documented
for module, value in [(module, value) for module in (core, core.internal) for value in vars(module).values()]:
    if isinstance(value, type) and value.__module__.startswith("artifex_devices") and "errors" not in value.__module__:
        value.__module__ = module.__name__
for cls in HINTS:  # reading these members raises AttributeError
    for name in [name for name, member in vars(cls).items() if isinstance(member, AbsentMember)]:
        delattr(cls, name)
    del cls.__dir__
pybind11_stubgen.main()
"""


def generate(module: str, stub: Path) -> str:
    """Returns the stub of an extension that is installed."""
    with tempfile.TemporaryDirectory() as folder:
        _run(sys.executable, "-c", STUBGEN, module, "--exit-code", "-o", folder)
        raw = (Path(folder) / stub.relative_to(ROOT / "python")).read_text(encoding="utf-8")
    text = clean(raw, module)
    ruff = (sys.executable, "-m", "ruff")
    select = "--select=I,F401,RUF022"
    text = _run(*ruff, "check", "--fix", "--quiet", select, "--stdin-filename", str(stub), "-", text=text)
    return _run(*ruff, "format", "--stdin-filename", str(stub), "-", text=text)


def main() -> int:
    """Checks or rewrites the files."""
    parser = argparse.ArgumentParser(description="type stubs of the extensions, and the table of public names")
    parser.add_argument("--generate", action="store_true", help="rewrite them")
    arguments = parser.parse_args()
    stubs = {name: FOLDER / path for name, path in STUBS.items()}
    wanted = {stub: generate(f"{PACKAGE}.{name}", stub) for name, stub in stubs.items()}
    if UNUSED:
        sys.exit(f"make_stubs: tools/stub_types.py names unknown members: {', '.join(sorted(UNUSED))}")
    wanted[FOLDER / "_base" / "public_names.py"] = lazy_names()
    differ = False
    for path, text in wanted.items():
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        if found == text:
            continue
        if arguments.generate:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            continue
        differ = True
        shown = path.relative_to(ROOT).as_posix()
        lines = (found.splitlines(True), text.splitlines(True))
        sys.stdout.writelines(difflib.unified_diff(*lines, shown, "what it should be"))
        print(f"make_stubs: {shown} is out of date; run `make stubs`", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
