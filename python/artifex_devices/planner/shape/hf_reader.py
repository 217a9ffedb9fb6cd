# SPDX-License-Identifier: Apache-2.0
"""Reads typed values of a config.json of Hugging Face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.plain_numbers import is_count

_MISSING: Any = object()


class ConfigReader:
    """Reads values of a config and collects every problem with them.

    Attributes:
        values: The config.
        problems: Texts of the problems.
        defaulted: Sizes that the config leaves out, with the defaults of its family.
        notes: Facts that the sizes of a TransformerShape do not show.
    """

    def __init__(self, values: Mapping[Any, Any], defaults: Mapping[str, Any]) -> None:
        self.values = values
        self.problems: list[str] = []
        self.defaulted: dict[str, int] = {}
        self.notes: list[str] = []
        self._defaults = defaults

    def size(self, key: str, default: Any = _MISSING, *, minimum: int = 1, other: str = "") -> int:
        """Reads a size of the model. A missing key has the usual size of the family, and null has `default`.

        Args:
            key: The key.
            default: Value where neither the config nor the family has one. Without it, the key is needed.
            minimum: Smallest size.
            other: A second name of the key.
        """
        value = self.values.get(key)
        if value is None and other:
            value = self.values.get(other)
        if value is None:
            usual: int | None = None if key in self.values else self._defaults.get(key, self._defaults.get(other))
            if usual is None and default is _MISSING:
                self.problems.append(f"{key} is missing")
                return 1
            if default is _MISSING and usual is not None:
                self.defaulted[key] = usual
            return int(default if usual is None else usual)
        if not is_count(value, minimum):
            self.problems.append(f"{key} is {safe_repr(value)}, not an int of {minimum} or more")
            return max(minimum, 1)
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        """Returns a boolean; null and a missing key have the default of the family, else `default`."""
        value = self.values.get(key)
        if value is None:
            return bool(self._defaults.get(key, default))
        if not isinstance(value, bool):
            self.problems.append(f"{key} is {safe_repr(value)}, not true or false")
            return default
        return value

    def expect(self, key: str, value: object, default: object) -> None:
        """Adds a problem unless the key has the only value that a TransformerShape can express."""
        found = self.values.get(key, default)
        if found != value:
            self.problems.append(f"{key} is {safe_repr(found)}; a TransformerShape can only express {value!r}")

    def head_dim(self, embed: int, heads: int) -> int:
        """Returns the width of a head: as given, else as usual in the family, else `embed / heads`."""
        if self.values.get("head_dim") is not None or self._defaults.get("head_dim") is not None:
            return self.size("head_dim", self._defaults.get("head_dim"))
        if embed % heads:
            self.problems.append(f"hidden size {embed} is not a multiple of {heads} heads, and head_dim is missing")
        return max(embed // heads, 1)

    def window(self) -> int:
        """Returns the sliding window; null is none."""
        return self.size("sliding_window", 0)

    def full_period(self, usual: int, limited: str = "sliding_attention") -> int:
        """Returns the period of layers that attend to all tokens; 0 where no layer does.

        Args:
            usual: Period where the config lists no kinds of layers.
            limited: Kind of the other layers in `layer_types`.
        """
        kinds = self.values.get("layer_types")
        if kinds is None:
            return usual
        count = self.size("num_hidden_layers")
        listed = kinds if isinstance(kinds, list) else []
        period = listed.index("full_attention") + 1 if "full_attention" in listed else 0
        expected = [
            "full_attention" if period and (i + 1) % period == 0 else limited for i in range(min(count, len(listed)))
        ]
        if listed != expected or len(listed) != count:
            self.problems.append(f"layer_types is not a full_attention at each {usual}-th layer")
        return period


def decoder(read: ConfigReader, **more: Any) -> dict[str, Any]:
    """Returns the sizes that most families name alike."""
    embed, heads = read.size("hidden_size"), read.size("num_attention_heads")
    kv_heads = read.size("num_key_value_heads", heads)
    if "num_key_value_heads" not in read.values and heads % kv_heads:
        kv_heads = heads  # the family's number is of larger models
    return {
        "layers": read.size("num_hidden_layers"),
        "embed": embed,
        "mlp": read.size("intermediate_size"),
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": read.head_dim(embed, heads),
        "vocab": read.size("vocab_size"),
        "tied_embeddings": read.flag("tie_word_embeddings", False),
    } | more
