# SPDX-License-Identifier: Apache-2.0
"""Files of rules, in TOML."""

from __future__ import annotations

import os
from typing import Any

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.toml import all_mistakes, key_text, read_toml
from artifex_devices.checkpoint.array_rules import cast, constant, drop, rename, scale
from artifex_devices.checkpoint.axis_rules import flatten, join, split, stack, transpose, unflatten, unstack
from artifex_devices.checkpoint.rule import Rule

_FUNCTIONS = {
    function.__name__: function
    for function in (rename, stack, unstack, transpose, split, join, unflatten, flatten, cast, scale, drop, constant)
}


@public("artifex_devices.checkpoint.rules")
def load(path: str | os.PathLike[str]) -> list[Rule]:
    """Returns the rules in a TOML file: tables `[[rule]]` with a `kind` and the arguments of its function.

    Args:
        path: Path of the file.

    Raises:
        TypeError: The path is not a path.
        OSError: The file cannot be read.
        ValueError: The file is not TOML, or a rule in it is not valid; all mistakes are listed.

    Example:
        >>> import pathlib, tempfile
        >>> from artifex_devices.checkpoint import rules
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "rules.toml")
        >>> _ = path.write_text('''
        ... [[rule]]
        ... kind = "rename"
        ... source = "model.layers.{layer}.up"
        ... target = "layers/{layer}/up"
        ... ''')
        >>> rules.load(path)
        [rules.rename('model.layers.{layer}.up', 'layers/{layer}/up')]
        >>> folder.cleanup()
    """
    operation = "rules.load"
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise wrong_type(operation, "path", path, "a path", 'write rules.load("rules.toml")') from None
    content, _ = read_toml(operation, name)
    mistakes = [f"{key_text(key)} is not a key of a file of rules" for key in content if key != "rule"]
    tables = content.get("rule", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        mistakes.append("rule is not a list of tables; write [[rule]]")
        tables = []
    found = []
    for number, table in enumerate(tables, 1):
        try:
            found.append(_rule_of(table))
        except (TypeError, ValueError) as error:
            mistakes.append(f"rule {number}: {error}")
    if mistakes or not found:
        problem = f"{name!r}: {all_mistakes(mistakes or ['has no rules'])}"
        raise failure(
            ValueError, operation, problem, expected="tables [[rule]] with kind and arguments", fix="correct the file"
        )
    return found


def _rule_of(table: dict[str, Any]) -> Rule:
    arguments = dict(table)
    kind = arguments.pop("kind", None)
    function = _FUNCTIONS.get(kind) if isinstance(kind, str) else None
    if function is None:
        raise ValueError(f"kind is {safe_repr(kind)}; expected one of {', '.join(_FUNCTIONS)}")
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    required = names[: len(names) - len(function.__defaults__ or ())]
    wrong = [f"{key_text(key)} is not an argument of {kind}" for key in arguments if key not in names]
    wrong += [f"{name} is missing" for name in required if name not in arguments]
    if wrong:
        raise ValueError(f"{'; '.join(wrong)}; expected {', '.join(names)}")
    rule: Rule = function(**arguments)
    return rule
