# SPDX-License-Identifier: Apache-2.0
"""Rules of conversions: how arrays of one checkpoint become arrays of another, by patterns of their names.

A list of rules is applied in its order: each rule acts on the arrays as the rules before it left them.

Names consist of parts, which "." and "/" separate. A pattern matches whole names. `*` matches any characters within a
part; `{layer}` and other names in braces match one part, or digits where they are only a piece of a part, as in
`layers_{layer}`. Both sides of a rule have the same placeholders.
"""

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.checkpoint.array_rules import cast, constant, drop, rename, scale
from artifex_devices.checkpoint.axis_rules import flatten, join, split, stack, transpose, unflatten, unstack
from artifex_devices.checkpoint.rule import Rule, inverse
from artifex_devices.checkpoint.rule_files import load
from artifex_devices.checkpoint.rule_presets import preset

__all__ = [
    "Rule",
    "cast",
    "constant",
    "drop",
    "flatten",
    "inverse",
    "join",
    "load",
    "preset",
    "rename",
    "scale",
    "split",
    "stack",
    "transpose",
    "unflatten",
    "unstack",
]
add_public_lookup(__name__)
