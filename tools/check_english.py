#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses phrases that a newcomer would stumble over, and docstrings of functions that do not begin with a verb.

    tools/check_english.py [--count] [PATH...]

Prints `file:line: phrase; write X` for each phrase found and exits with 1. PATH limits the check to files and folders.
--count prints the number of phrases per folder instead. A phrase is also found across line breaks, in snake_case and in
CamelCase: `is_no_key` and `IsNoKey` count as "is no key".

The docstring of a function of the package begins with a verb, as "Returns" or "Places". Docstrings of properties and
classes begin with a noun, as in NumPy and JAX, and the docstring of `__init__` may name arguments. The first paragraph
of each docstring is complete sentences, the first of which says more than the name. Stubs (.pyi) hold the docstrings of
functions that are bound in C++: change those in cpp/bindings, and run `make stubs`.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".py", ".pyi", ".h", ".cpp", ".cu", ".md", ".toml", ".cmake", ".txt", ".sh", ".yml", ".ipynb", ""}
SKIPPED = re.compile(
    r"^(LICENSE$|tests/data/|tests/python/recorded/|tests/fuzz/.*corpus/|tools/check_english\.py$|.*/test_check_english\.py$)"
)
# Phrases quoted from JAX, NumPy or another library, or with another meaning: path -> phrases as found.
EXCEPTIONS: dict[str, set[str]] = {}

# Between two words: an underscore, or white space with the comment signs or quotes of a line that was broken there.
GAP = r"""(?:_|\s+(?:(?://+!?|\#+|\*|>)\s+)?|\s*["']\s*\n\s*[rfb]*["'])"""
UNITS = (
    "axis|block|byte|call|chip|column|copy|core|device|element|file|group|host|job|key|kind|lane|leaf|line|link|node"
)
UNITS += "|operation|page|participant|process|result|row|run|shard|step|task|thread|tile|tree|turn|word|world"
COUNTED = r"one|once|two|twice|three|four|\d+(?!\s*[#/])|bytes|calls|threads|copies|shards|processes|messages|[KMG]i?B"
CODE_ACTS = (
    "waits|calls|asks|holds|writes|reads|owns|sends|comes|came|arrives|made|makes|runs|starts|wants|has|had|was|uses"
)

# Phrases that are fine although a pattern below would match them.
ALLOWED = (
    r"there (?:[a-z]+ )?(?:is|are|was|were|be) no|(?:is|are) there no",
    r"(?:is|are|was|were|be) no (?:longer|larger|more|less|fewer|smaller|greater|higher|lower|later|earlier|faster"
    r"|slower|better|worse|shorter|wider|deeper|older|newer|further|different)",
    r"for good (?:measure|reasons?|performance|luck|practice)",
)
# Pattern -> what to write. A space in a pattern stands for GAP.
REFUSED = {
    r"(?:is|are|was|were|be) no [a-z]+": '"is not a ...", "there is no ..."',
    r"told": '"reported", "recorded", "returned" or "passed"',
    r"for good": '"permanently" or "forever"',
    rf"who (?:{CODE_ACTS})|(?:by|for|from|of|than|to|with|those) who": 'the noun: "a waiting thread", "the caller"',
    r"whoever|whomever": 'the noun: "the thread that", "the caller"',
    r"anew": '"again"',
    rf"(?:{COUNTED}) an? (?:{UNITS})": '"one per device", "one for each device"',
    r"(?:lies|lie|lay|lying) (?:on|there|elsewhere|where|beside|so)|where [a-z]+ lies?|come to lie": '"is placed on"',
    r"cut (?:over|along|dimensions?|axis|axes)": '"sharded over", "sharded dimension"',
    r"at hand": '"this" or "available"',
    r"g(?:ive|ives|iven|iving|ave) back": '"released", "freed" or "returned"',
    r"the whole of": '"all of"',
    r"(?:is|are|was|were|be) said": '"is reported", or name the actor',
    r"say(?:s|ing)? so|says (?:who|`)": '"reports it", "states"; put the subject first',
    r"by hand of": '"by"',
    r"patience": '"timeout"',
    r"farewells?": '"failure notice"',
    r"misfortunes?": '"failure" or "bad input"',
    r"hand(?:ed|s|ing)? over|letters? (?:to|from|between)|send(?:s|ing)? letters?": '"pass", "message"',
    r"knows of": '"supports" or "reports"',
    r"that there (?:is|are) not": '"unknown", "missing"',
    r"to begin with": '"initially", or nothing',
    r"direct ways?": '"direct copies", "strategy"',
    r"looks? again": '"polls"',
    r"(?:of|are|is) (?:no|any) use": '"useful", "useless"',
    r"but for": '"except for"',
    r"that which": '"the one that"',
    r"shall": '"should", "must" or "will"',
}

VERB_FIRST = 'a verb first: "Returns ...", "Formats ..."'
SUMMARY = "a first paragraph of complete sentences, which says more than the name"
# Nouns at the beginning of a docstring that look like a verb.
PLURALS = re.compile(
    "Address|Algorithms|Always|As|Axes|Blocks|Bytes|Columns|Devices|Elements|Entries|Events|Facts|Factors|Fields|Files"
    "|Indices|Its|Latencies|Layers|Lines|Members|Nodes|Numbers|Participants|Parts|Points|Positions|Products|Results"
    "|Rows|Seconds|Sizes|Terms|This|Tiles|Values|Views|Workers|[A-Z].*[A-Z].*"
)


def _pattern(phrases: Iterable[str]) -> str:
    return "|".join(phrase.replace(" ", GAP) for phrase in phrases)


_FIND = re.compile(
    rf"(?<![A-Za-z])(?:(?P<allowed>{_pattern(ALLOWED)})|"
    + "|".join(f"(?P<p{i}>{_pattern([phrase])})" for i, phrase in enumerate(REFUSED))
    + r")(?![A-Za-z])",
    re.IGNORECASE,
)
_ADVICE = list(REFUSED.values())
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def refused_phrases(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields line, phrase and what to write instead, for each refused phrase in `text`."""
    text = _CAMEL.sub("_", text)
    for match in _FIND.finditer(text):
        group = match.lastgroup
        if group is not None and group != "allowed":
            words = " ".join(re.findall(r"[\w`]+", match[0].replace("_", " ")))
            yield text.count("\n", 0, match.start()) + 1, words, _ADVICE[int(group[1:])]


def docstrings_without_verb(source: str) -> Iterator[tuple[int, str]]:
    """Yields line and first word of each docstring of a function or method that does not begin with a verb."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name == "__init__":
            continue
        if any(re.search(r"property|\.setter$", ast.unparse(decorator)) for decorator in node.decorator_list):
            continue
        first = (ast.get_docstring(node) or "Returns").split()[0].rstrip(".,:;")
        if not re.fullmatch(r"[A-Z][a-z]*-?[a-z]+s", first) or PLURALS.fullmatch(first):
            yield node.body[0].lineno, first


def _words(text: str) -> list[str]:
    """Returns the words of a name or sentence in lower case, without plurals, articles and "returns"."""
    words = re.findall(r"[a-z]+", text.lower())
    return [word.removesuffix("s") for word in words if word not in ("a", "an", "its", "returns", "the", "this")]


def docstrings_without_summary(source: str) -> Iterator[tuple[int, str]]:
    """Yields line and text of each docstring whose first paragraph ends in a sentence or only repeats the name."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        docstring = ast.get_docstring(node)
        if docstring is None:
            continue
        summary = docstring.split("\n\n")[0].strip()
        first = re.split(r"(?<=[.!?])\s", summary)[0]
        if not re.search(r"[.!?][\"'`)]*$", summary) or _words(first) == _words(node.name):
            yield node.body[0].lineno, summary.splitlines()[-1] if summary else ""


def tracked_files(paths: list[str]) -> list[str]:
    """Returns the text files that git tracks or would track under `paths`, relative to the checkout."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return [n for n in names if n and Path(n).suffix in SUFFIXES and not SKIPPED.match(n) and (ROOT / n).is_file()]


def main() -> int:
    parser = argparse.ArgumentParser(description="Refuses phrases that are not plain English.")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files or folders; everything if left out")
    parser.add_argument("--count", action="store_true", help="print the number of phrases per folder")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    paths = [str(Path(path).resolve().relative_to(ROOT)) for path in options.paths]
    for name in tracked_files(paths):
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        found = [each for each in refused_phrases(text) if each[1].lower() not in EXCEPTIONS.get(name, ())]
        if name.startswith("python/") and name.endswith((".py", ".pyi")):
            found += [(line, word, VERB_FIRST) for line, word in docstrings_without_verb(text)]
            found += [(line, summary, SUMMARY) for line, summary in docstrings_without_summary(text)]
        for line, phrase, advice in found:
            counts["/".join(name.split("/")[:3]) if "/" in name else name] += 1
            if not options.count:
                print(f"{name}:{line}: {phrase}; write {advice}")
    if options.count:
        for folder, count in sorted(counts.items()):
            print(f"{count:5} {folder}")
    print(f"{counts.total()} phrases", file=sys.stderr)
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
