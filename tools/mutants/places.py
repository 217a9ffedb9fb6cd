# SPDX-License-Identifier: Apache-2.0
"""Finds the places of the package that can be changed, and draws mutants from them."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["PACKAGE", "Block", "Finder", "Mutant", "blocks_of", "choose"]

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "artifex_devices"
_ONLY_UNDER_MPIEXEC = tuple(
    f"distributed/{name}.py"
    for name in ("consistency", "connections", "mpi_runtime", "job", "mpi_transport", "local_peers")
)

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),  # codespell:ignore notin
    ast.NotIn: (ast.In,),  # codespell:ignore notin
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: File, relative to the package.
        function: Name of the function that is changed; "" outside of functions.
        start: First byte that is replaced.
        end: The byte after the last one that is replaced.
        text: What stands there instead.
    """

    path: str
    function: str
    start: int
    end: int
    text: str

    def source(self) -> str:
        """The changed file."""
        before = (PACKAGE / self.path).read_bytes()
        return (before[: self.start] + self.text.encode() + before[self.end :]).decode()

    def block(self) -> str:
        """Key of the innermost block around the change, as in `Block`; that of the function if it is in its head."""
        source = (PACKAGE / self.path).read_bytes()
        line = source[: self.start].count(b"\n") + 1
        around = [
            block
            for block in blocks_of(ast.parse(source))
            if block.function == self.function and block.first_line <= line <= block.last_line
        ]
        number = min(around, key=lambda block: block.last_line - block.first_line).number if around else 0
        return f"{self.path}::{self.function}#{number}"

    def diff(self) -> str:
        """The change with the lines around it."""
        before = (PACKAGE / self.path).read_text().splitlines()
        lines = difflib.unified_diff(before, self.source().splitlines(), self.path, self.path, n=2, lineterm="")
        return "\n".join(list(lines)[2:])

    def title(self) -> str:
        """File, line and change in one line."""
        before = (PACKAGE / self.path).read_bytes()
        old = " ".join(before[self.start : self.end].decode().split())
        line = before[: self.start].count(b"\n") + 1
        return f"{self.path}:{line} {old if len(old) < 60 else old[:57] + '...'}  ->  {self.text[:60]}"


class Block(NamedTuple):
    """A list of statements in a function: a body, a branch, a loop, a handler.

    Attributes:
        function: Name of the function.
        number: Position among the blocks of functions of this name in the file.
        statements: The list in the syntax tree.
        begin: Index of its first statement after a docstring.
    """

    function: str
    number: int
    statements: list[ast.stmt]
    begin: int

    @property
    def first_line(self) -> int:
        """Line on which the first statement begins."""
        return self.statements[self.begin].lineno

    @property
    def last_line(self) -> int:
        """Line on which the last statement ends."""
        return self.statements[-1].end_lineno or self.statements[-1].lineno


def blocks_of(tree: ast.AST) -> list[Block]:
    """All blocks of the functions of a file, in the order of the file."""
    blocks: list[Block] = []
    numbers: dict[str, int] = {}

    def collect(node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            children = getattr(node, name, None)
            if not isinstance(children, list):  # the body of a lambda
                continue
            if function and children and isinstance(children[0], ast.stmt) and not isinstance(node, ast.ClassDef):
                functions = (ast.FunctionDef, ast.AsyncFunctionDef)
                is_documented = isinstance(node, functions) and ast.get_docstring(node) is not None
                if is_documented < len(children):
                    blocks.append(Block(function, numbers.setdefault(function, 0), children, int(is_documented)))
                    numbers[function] += 1
            for child in children:
                collect(child, function)

    collect(tree, "")
    return blocks


class Finder(ast.NodeVisitor):
    """Collects the places of a file that can be changed; each with its possible changes."""

    def __init__(self, name: str, source: bytes) -> None:
        self.name = name
        self.line_starts = [0]
        for line in source.splitlines(keepends=True):
            self.line_starts.append(self.line_starts[-1] + len(line))
        self.functions = [""]
        self.places: list[list[Mutant]] = []
        self.visit(ast.parse(source))

    def add(self, node: ast.expr | ast.stmt, *texts: str) -> None:
        """Records a place and its replacements."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.line_starts[node.lineno - 1] + node.col_offset
        end = self.line_starts[node.end_lineno - 1] + node.end_col_offset
        self.places.append([Mutant(self.name, self.functions[-1], start, end, text) for text in texts])

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list):
            return  # for type checkers only
        self.functions.append(node.name)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if isinstance(default, ast.Constant) and isinstance(default.value, str):
                self.add(default, "'mutant'")
            elif default is not None:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.functions.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for child in (*node.decorator_list, *node.body):
            self.visit(child)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if names & {"__all__", "__slots__"} or "TypeVar" in ast.dump(node.value):
            return
        if any(isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets):
            self.add(node, "pass")
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.add(node, "pass")
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.add(node, "pass")
            self.visit(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                self.add(node, "return None")
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.add(node, "pass")

    def visit_Continue(self, node: ast.Continue | ast.Break) -> None:
        self.add(node, "pass")

    visit_Break = visit_Continue  # noqa: N815

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        if ast.unparse(node.test) == "TYPE_CHECKING":
            return
        self.add(node.test, "True", "False")
        self.generic_visit(node)

    visit_IfExp = visit_If  # noqa: N815

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self.add(condition, "True")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        changed = []
        for i, op in enumerate(node.ops):
            for other in _COMPARISONS[type(op)]:
                ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
                changed.append(f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})")
        self.add(node, *changed)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self.add(node, f"({ast.unparse(ast.BoolOp(op, node.values))})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.Not, ast.USub)):
            self.add(node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = _OPERATORS.get(type(node.op))
        if other is not None:
            self.add(node, f"({ast.unparse(ast.BinOp(node.left, other(), node.right))})")
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: a check like an assert
            self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.add(node, str(not node.value))
        elif isinstance(node.value, (int, float)):
            self.add(node, repr(node.value + 1), f"({node.value - 1!r})")

    def skip(self, node: ast.AST) -> None:
        """Skips this node and its children."""

    visit_Assert = visit_JoinedStr = visit_Import = visit_ImportFrom = skip  # noqa: N815


def files(only: Sequence[str]) -> Iterator[Path]:
    """The files of the package whose path has one of the texts."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        if name not in _ONLY_UNDER_MPIEXEC and (not only or any(text in name for text in only)):
            yield path


def choose(seed: int, count: int, only: Sequence[str]) -> list[Mutant]:
    """Random mutants, the same for the same seed and the same code."""
    places = [
        place for path in files(only) for place in Finder(str(path.relative_to(PACKAGE)), path.read_bytes()).places
    ]
    draw = random.Random(seed)
    chosen = draw.sample(places, min(count, len(places)))
    return [draw.choice(place) for place in chosen]
