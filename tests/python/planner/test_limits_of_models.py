# SPDX-License-Identifier: Apache-2.0
"""Numbers that models take and refuse, at the limits; messages compared as a whole."""

import dataclasses

import pytest
from artifex_devices import models

SMALL = {"embed": 8, "mlp": 16, "layers": 1, "tokens": 16}


@pytest.mark.parametrize(
    ("experts", "each", "factor", "parameters"),
    [
        (4, 4, 1, 1568),  # each token to all experts
        (16, 1, 1, 6272),  # one place for each expert
        (32, 1, 2, 12544),
    ],
)
def test_experts_at_the_limits(experts, each, factor, parameters):
    found = models.moe(experts=experts, experts_per_token=each, capacity_factor=factor, **SMALL)
    assert found.parameters == parameters == experts * 3 * 8 * 16 + 8 * experts


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        (
            {"experts_per_token": 5},
            "each token is routed to 5 of 4 experts; expected at most all; correct experts_per_token",
        ),
        (
            {"experts": 32},
            "each of 32 experts has 0.5 places for 16 tokens that are routed to 1 experts each; expected a whole "
            "number; change the tokens or capacity_factor",
        ),
        (
            {"capacity_factor": 2.0**62},
            "capacity_factor is 4.611686018427388e+18; expected a number below 2**62; write 1",
        ),
        ({"experts_per_token": 0}, "experts_per_token is 0; expected ints of 1 or more, below 2**62; correct each"),
        ({"embed": True}, "embed is True; expected ints of 1 or more, below 2**62; correct each"),
        ({"mlp": 2**62}, "mlp is 4611686018427387904; expected ints of 1 or more, below 2**62; correct each"),
    ],
)
def test_numbers_of_experts_that_are_refused(numbers, text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        models.moe(**{"experts": 4, "experts_per_token": 1, **SMALL, **numbers})
    assert str(caught.value) == f"models.moe: {text}"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ({"cache": -1}, "cache is -1; expected a cache of 0 or more tokens, below 2**62; correct each"),
        (
            {"batch": 0, "cache": -1},
            "batch is 0, cache is -1; expected ints of 1 or more and a cache of 0 or more tokens, below 2**62; correct "
            "each",
        ),
        (
            {"cache": 8},
            "cache is 8 in a training step; expected 0, because training has no tokens from before; give "
            "optimizer=None",
        ),
        ({"capacity_factor": 2}, "capacity_factor is 2 and llama-2-7b has no experts; expected 1; leave it out"),
        ({"keep": "x"}, "keep is 'x'; expected 'layers', 'products', 'all' or names of tensors; choose one"),
    ],
)
def test_numbers_of_a_transformer_that_are_refused(numbers, text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        models.transformer("llama-2-7b", **{"batch": 1, "sequence": 1, **numbers})
    assert str(caught.value) == f"models.transformer: {text}"


@pytest.mark.parametrize(("sequence", "cache"), [(64, 0), (1, 63)])
def test_a_window_of_all_tokens_limits_nothing(sequence, cache):
    shape = dataclasses.replace(models.SHAPES["llama-2-7b"], window=64)
    found = models.transformer(shape, batch=1, sequence=sequence, cache=cache, optimizer=None)
    assert found.parameters == 6738415616
    with pytest.raises(ValueError, match=r"^models\.transformer: llama-2-7b has a window of 64 of 65 tokens; expected"):
        models.transformer(shape, batch=1, sequence=sequence + 1, cache=cache, optimizer=None)
