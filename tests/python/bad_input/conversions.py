# SPDX-License-Identifier: Apache-2.0
"""Bad calls: rules of conversions of checkpoints."""

from bad_input.rows import Calls, bad

_RULES = "r = ad.checkpoint.rules"


def _calls(name, good, *rows):
    return Calls(f"checkpoint.rules.{name}", good, [bad(call, error, f"rules.{name}:", *words) for call, error, *words in rows], where=_RULES)


CALLS = [
    _calls(
        "rename",
        "r.rename('a', 'b')",
        ("r.rename(3, 'b')", TypeError, "source is 3"),
        ("r.rename('a', None)", TypeError, "target is None"),
        ("r.rename('', 'b')", ValueError, "is empty"),
        ("r.rename('\\udc80', 'b')", ValueError, "not valid Unicode"),
        ("r.rename('a.{x', 'b')", ValueError, "write a placeholder as {layer}"),
        ("r.rename('a.{x}', 'b.{y}')", ValueError, "placeholders", "differ"),
        ("r.rename('a.*', 'b')", ValueError, "equally many stars"),
    ),
    _calls(
        "stack",
        "r.stack('a.{x}', 'a', axis='x')",
        ("r.stack('a.{x}', 'a', axis=0)", TypeError, "axis is 0"),
        ("r.stack('a.{x}', 'a', axis='y')", ValueError, "axis is 'y'"),
        ("r.stack('a.{x}', 'a.{x}', axis='x')", ValueError, "without {x}"),
        ("r.stack('a.{x}', 'a', axis='x', position=1.5)", TypeError, "position is 1.5"),
    ),
    _calls(
        "unstack",
        "r.unstack('a', 'a.{x}', axis='x')",
        ("r.unstack('a', 'a', axis='x')", ValueError, "not a placeholder"),
        ("r.unstack('a', 'a.{x}', axis=None)", TypeError, "axis is None"),
        ("r.unstack(b'a', 'a.{x}', axis='x')", TypeError, "source is b'a'"),
    ),
    _calls(
        "transpose",
        "r.transpose('a', (1, 0))",
        ("r.transpose('a', 1)", TypeError, "axes is 1"),
        ("r.transpose('a', (0, 0))", ValueError, "each axis from 0 to 1 once"),
        ("r.transpose('a', (0, -1))", ValueError, "each axis"),
    ),
    _calls(
        "split",
        "r.split('a', ['b', 'c'], axis=0, sizes=[2, 4], groups=2)",
        ("r.split('a', 'bc', axis=0, sizes=[2, 4])", TypeError, "into is 'bc'"),
        ("r.split('a', ['b', 'c'], axis=0, sizes=[2])", ValueError, "1 sizes for 2 patterns"),
        ("r.split('a', ['b', 'c'], axis=0, sizes=[2, 3], groups=2)", ValueError, "size 3 is not divisible by 2"),
        ("r.split('a', ['b', 'c'], axis=0, sizes=[2, 0])", ValueError, "sizes are (2, 0)"),
        ("r.split('a', ['b', 'c'], axis=0, sizes=[2, 4], groups=0)", ValueError, "groups is 0"),
        ("r.split('a', ['b', 'c'], axis=2**70, sizes=[2, 4])", ValueError, "axis is 1180591620717411303424"),
    ),
    _calls(
        "join",
        "r.join(['b', 'c'], 'a', axis=0, sizes=[2, 4])",
        ("r.join([], 'a', axis=0, sizes=[])", TypeError, "sources is []"),
        ("r.join(['b', 3], 'a', axis=0, sizes=[2, 4])", TypeError, "sources[1] is 3"),
        ("r.join(['b', 'c'], 'a', axis='x', sizes=[2, 4])", TypeError, "axis is 'x'"),
        ("r.join(['b.{x}', 'c'], 'a.{x}', axis=0, sizes=[2, 4])", ValueError, "differ"),
    ),
    _calls(
        "unflatten",
        "r.unflatten('a', 0, [2, 3])",
        ("r.unflatten('a', 0, 6)", TypeError, "sizes is 6"),
        ("r.unflatten('a', 0, [2, -3])", ValueError, "sizes are (2, -3)"),
        ("r.unflatten('a', 0, [2**40, 2**40])", ValueError, "(1099511627776, 1099511627776)"),
    ),
    _calls(
        "flatten",
        "r.flatten('a', 0, [2, 3])",
        ("r.flatten('a', True, [2, 3])", TypeError, "axis is True"),
        ("r.flatten('a', 0, [])", ValueError, "sizes are ()"),
        ("r.flatten(None, 0, [2, 3])", TypeError, "pattern is None"),
    ),
    _calls(
        "cast",
        "r.cast('a', 'bfloat16')",
        ("r.cast('a', 'float99')", TypeError, "float99"),
        ("r.cast('a', object)", TypeError, "dtype"),
        ("r.cast(1, 'float32')", TypeError, "pattern is 1"),
    ),
    _calls(
        "scale",
        "r.scale('a', 0.5)",
        ("r.scale('a', '2')", TypeError, "factor is '2'"),
        ("r.scale('a', 0)", ValueError, "factor is 0"),
        ("r.scale('a', float('nan'))", ValueError, "finite"),
    ),
    _calls(
        "drop",
        "r.drop('a')",
        ("r.drop(['a'])", TypeError, "pattern is ['a']"),
        ("r.drop('**')", ValueError, "side by side"),
        ("r.drop('{a}.{a}')", ValueError, "one placeholder twice"),
    ),
    _calls(
        "constant",
        "r.constant('a', (2,), 'int8', 3)",
        ("r.constant('a.*', (2,), 'int8', 3)", ValueError, "has placeholders"),
        ("r.constant('a', (-2,), 'int8', 3)", ValueError, "-2"),
        ("r.constant('a', (2,), 'int8', 300)", ValueError, "value is 300"),
        ("r.constant('a', (2,), 'int8', 1.5)", TypeError, "value is 1.5"),
    ),
    _calls(
        "inverse",
        "r.inverse([r.rename('a', 'b')])",
        ("r.inverse(3)", TypeError, "rules is 3"),
        ("r.inverse(['a'])", TypeError, "rules[0] is 'a'"),
        ("r.inverse([r.drop('a')])", ValueError, "rules.drop('a') has no inverse"),
        ("r.inverse([r.cast('a', 'int8')])", ValueError, "has no inverse"),
    ),
    _calls(
        "load",
        "(folder / 'r.toml').write_text('[[rule]]\\nkind = \"drop\"\\npattern = \"a\"') and r.load(folder / 'r.toml')",
        ("r.load(3)", TypeError, "path is 3"),
        ("r.load(folder / 'none.toml')", FileNotFoundError, "cannot be read"),
        ("r.load('a\\0b')", ValueError, "null character"),
    ),
    _calls(
        "preset",
        "r.preset('hf-to-maxtext-llama', heads=4, kv_heads=2, head_dim=8)",
        ("r.preset('hf-to-nothing', heads=4, kv_heads=2, head_dim=8)", ValueError, "hf-to-maxtext-llama"),
        ("r.preset('hf-to-maxtext-llama', heads=4, kv_heads=2, head_dim=7)", ValueError, "head_dim is 7"),
        ("r.preset('hf-to-maxtext-llama', heads=0, kv_heads=2, head_dim=8)", ValueError, "heads is 0"),
        ("r.preset('hf-to-maxtext-llama', heads=4, kv_heads=2, head_dim=8, tied=1)", TypeError, "tied is 1"),
    ),
]
