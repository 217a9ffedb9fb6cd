# SPDX-License-Identifier: Apache-2.0
"""Checks of values from files and pickles: the ends of each range, and what is refused."""

import dataclasses
import errno
import os

import pytest
from artifex_devices._base import state_validation, toml


@dataclasses.dataclass
class Record:
    name: "str"
    count: "int"
    least: "int"
    rate: "float"
    flag: "bool"
    note: "str | None"
    other: "list"


_STATE = {"name": "a", "count": 1, "least": 0, "rate": 1, "flag": True, "note": None, "other": 5}


def check(**changes):
    return state_validation.checked_record(Record, {**_STATE, **changes}, "the record", least=0, rate=(1.0, 2.0))


def test_fields_at_the_ends_of_their_ranges_are_accepted():
    assert check() == _STATE
    assert type(check()["rate"]) is float
    for changes in (
        {"name": "a" * 1000},
        {"count": 2**53},
        {"rate": 2.0},
        {"flag": False},
        {"note": "text"},
        {"note": ""},
    ):
        assert check(**changes) == {**_STATE, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a" * 1001}, "name is not a text of one line"),
        ({"name": "a\nb"}, "name is not a text of one line"),
        ({"name": b"a"}, "name is not a text of one line"),
        ({"name": None}, "name is not a text of one line"),
        ({"note": 1}, "note is not a text of one line"),
        ({"count": 0}, "count is not an integer from 1 to 9007199254740992"),
        ({"count": 2**53 + 1}, "count is not an integer from 1 to 9007199254740992"),
        ({"count": True}, "count is not an integer from 1 to 9007199254740992"),
        ({"count": 1.0}, "count is not an integer from 1 to 9007199254740992"),
        ({"least": -1}, "least is not an integer from 0 to 9007199254740992"),
        ({"rate": 0.9}, "rate is not a number from 1 to 2"),
        ({"rate": 2.1}, "rate is not a number from 1 to 2"),
        ({"rate": float("nan")}, "rate is not a number from 1 to 2"),
        ({"rate": True}, "rate is not a number from 1 to 2"),
        ({"rate": "1"}, "rate is not a number from 1 to 2"),
        ({"flag": 1}, "flag is not a bool"),
        ({"more": 1}, "the record does not have the entries count, flag, least, name, note, other, rate"),
    ],
)
def test_fields_outside_of_their_ranges_are_refused(changes, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        check(**changes)
    assert str(caught.value) == message


def test_the_state_of_a_pickle_has_all_fields_and_no_others():
    assert state_validation.checked_state(Record, _STATE, name=str, flag=bool) is _STATE
    ending = "expected a dict with count, flag, least, name, note, other, rate; pickle it again with this version"
    for state, found in [
        ([1], "a list"),
        ({"name": 1}, "'name'"),
        ({"name": 1, 2: 3}, "'name', 2"),
        ({"n" * 5000: 1}, "'" + "n" * 999),
    ]:
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
            state_validation.checked_state(Record, state)
        text = str(caught.value)
        assert text.endswith(ending)
        assert text.startswith(f"Record: the pickle's state is {found[:50]}")
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        state_validation.checked_state(Record, _STATE, name=bytes, flag=bool, other=dict)
    assert str(caught.value) == (
        "Record: the pickle's state has name, other of another type; expected bytes; pickle it again with this version"
    )


def test_a_file_of_256_kib_is_read_and_a_larger_one_is_refused(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("a = 1\n" + "#" * ((256 << 10) - 6))
    assert toml.read_toml("f", str(path)) == ({"a": 1}, path.read_text())
    path.write_text("a = 1\n" + "#" * ((256 << 10) - 5))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        toml.read_toml("f", str(path))
    assert str(caught.value) == f"f: {path} has more than 256 KiB; expected a TOML file; correct the path"


def test_a_byte_order_mark_and_line_ends_of_windows_are_removed(tmp_path):
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    assert toml.read_toml("f", str(path)) == ({"a": 1, "b": 2}, "a = 1\nb = 2\n")


def test_keys_have_sixteen_parts_at_most(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("\n" + ".".join("a" * 16) + " = 1")
    assert toml.read_toml("f", str(path))[0]["a"]["a"]["a"]
    path.write_text("\n\n" + ".".join("a" * 17) + " = 1")
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        toml.read_toml("f", str(path))
    assert str(caught.value) == (
        f"f: {path} is not TOML: line 3 has a dotted key of more than 16 parts; expected TOML; correct the file"
    )


def test_what_is_not_a_regular_file_is_refused_with_the_number_of_its_error(tmp_path):
    missing = tmp_path / "missing.toml"
    with pytest.raises(FileNotFoundError, match="cannot be read: No such file or directory; expected a TOML") as caught:
        toml.read_toml("f", str(missing))
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(IsADirectoryError, match="cannot be read: Is a directory") as caught:
        toml.read_toml("f", str(tmp_path))
    assert caught.value.errno == errno.EISDIR
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="is not a regular file; expected a TOML file; correct the path"):
        toml.read_toml("f", str(pipe))
    with pytest.raises(ValueError, match="is not a path: it has a null character; expected a TOML"):
        toml.read_toml("f", "a\0b")


def test_fifty_mistakes_are_listed_and_the_others_counted():
    assert toml.all_mistakes(["no"] * 50) == "; ".join(["no"] * 50)
    assert toml.all_mistakes(["no"] * 51) == "; ".join(["no"] * 50) + "; and 1 others"


_LINES = """\
a = 1

[slice]
dims = [
  4,
]
[slice.wrap]
x.y = 5
[[node]]
name = "b"
[[node]]
name = "c"
deep = {z = 3}
"""


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("a",), 1),
        (("slice",), 3),
        (("slice", "dims"), 4),
        (("slice", "wrap"), 7),
        (("slice", "wrap", "x"), 8),
        (("slice", "wrap", "x", "y"), None),  # more than three names
        (("node",), 9),
        (("node", "name"), None),  # an entry of a list
        (("b",), None),
    ],
)
def test_the_line_of_a_key_is_that_of_its_first_statement(keys, line):
    assert toml.line_of(_LINES, *keys) == line
    assert toml.line_text(_LINES, *keys) == ("" if line is None else f"line {line}: ")


def test_lines_are_found_in_two_thousand_lines_and_not_in_more():
    assert toml.line_of("\n" * 1999 + "a = 1", "a") == 2000
    assert toml.line_of("\n" * 2000 + "a = 1", "a") is None


def test_lines_are_not_searched_behind_half_a_mebibyte_of_statements():
    long = "b = [\n" + "1,\n" * 1000 + "]\n"  # parsed once for each of its lines
    assert toml.line_of(long[: long.index("1,") + 3 * 500] + "]\na = 1", "a") == 503
    assert toml.line_of(long + "a = 1", "a") is None


def test_characters_that_a_terminal_takes_for_commands_are_escaped():
    text = 'x = 1\n[a]\nb = "\\u001b[1m"\n'
    assert toml.unprintable("\x1b[1m", text, "a", "b") == [
        "line 3: b of [a] is '\\x1b[1m'; expected characters that can be printed"
    ]
    assert toml.unprintable("\x1b", text, "x") == ["line 1: x is '\\x1b'; expected characters that can be printed"]
    assert toml.unprintable("plain", text, "a", "b") == []
    assert toml.unprintable(1, text, "a", "b") == []
