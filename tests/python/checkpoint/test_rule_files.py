# SPDX-License-Identifier: Apache-2.0
"""TOML files of rules."""

import re

import pytest
from artifex_devices.checkpoint import rules

TEXT = """
[[rule]]
kind = "transpose"
pattern = "layers.{layer}.up"
axes = [1, 0]

[[rule]]
kind = "stack"
source = "layers.{layer}.up"
target = "up"
axis = "layer"
position = 1

[[rule]]
kind = "split"
pattern = "qkv"
into = ["q", "k"]
axis = 0
sizes = [4, 2]
groups = 2

[[rule]]
kind = "constant"
name = "step"
shape = []
dtype = "int32"
value = 3
"""


def test_a_file_has_the_rules_of_the_functions(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(TEXT)
    assert rules.load(path) == [
        rules.transpose("layers.{layer}.up", (1, 0)),
        rules.stack("layers.{layer}.up", "up", axis="layer", position=1),
        rules.split("qkv", ["q", "k"], axis=0, sizes=[4, 2], groups=2),
        rules.constant("step", (), "int32", 3),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no rules"),
        ("rule = 3", "rule is not a list of tables"),
        ("rules = 3\n[[rule]]\nkind = 'drop'\npattern = 'a'", "rules is not a key"),
        ("[[rule]]\nkind = 'move'", "rule 1: kind is 'move'; expected one of rename, stack"),
        ("[[rule]]\nkind = 'drop'\nname = 'a'", "rule 1: name is not an argument of drop; pattern is missing"),
        ("[[rule]]\nkind = 'drop'\npattern = 'a}'", "rule 1: rules.drop: the pattern 'a}' has '}' without '{'"),
        ("[[rule]]\nkind = " + "[" * 800 + "]" * 800, "maximum recursion depth exceeded"),
        ("[[rule]]\n" * 30000, "has more than 256 KiB"),
        ("[[rule]]\nkind = 'drop'\npattern = '" + "*." * 5000 + "'", "has 10000 bytes; expected at most 4096"),
        ("[[rule]]\nkind = 'unflatten'\npattern = 'a'\naxis = 99999999999\nsizes = [1]", "axis is 99999999999"),
        ("[[rule]]\nkind = 'drop'\npattern = 3", "rule 1: rules.drop: pattern is 3 (int); expected a pattern"),
    ],
)
def test_mistakes_are_named(tmp_path, text, problem):
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(problem)) as caught:
        rules.load(path)
    assert len(str(caught.value)) < 500
