# SPDX-License-Identifier: Apache-2.0
"""Bad calls: data.pack."""

from bad_input.rows import Calls, bad

CALLS = [
    Calls(
        "data.pack",
        "data.pack(s, 4)",
        [
            bad("data.pack([np.ones(3)], 4)", TypeError, "data.pack:", "stream is ["),
            bad("data.pack(s, 0)", ValueError, "data.pack:", "length is 0"),
            bad("data.pack(s, 2**31)", ValueError, "data.pack:", "length is 2147483648"),
            bad("data.pack(s, 4.0)", TypeError, "data.pack:", "length is 4.0"),
            bad("data.pack(s, 4, by=3)", TypeError, "data.pack:", "by is 3"),
            bad("data.pack(s, 4, by='positions')", ValueError, "data.pack:", "by is 'positions'"),
            bad("data.pack(s, 4, too_long='cut')", ValueError, "data.pack:", "too_long is 'cut'"),
            bad("data.pack(s, 2, too_long='error')", ValueError, "data.pack:", "3"),
            bad("data.pack(s, 4, lengths=[3])", ValueError, "data.pack:", "there are 1 lengths"),
            bad("data.pack(s, 4, lengths=5)", TypeError, "data.pack:", "one for each sample"),
            bad("data.pack(s, 4, lengths={'web': [3, 2]})", ValueError, "data.pack:", "lengths has 'web'"),
            bad("data.pack(s, 4, workers=0)", ValueError, "data.pack:", "workers is 0"),
        ],
        where="data = ad.data; s = data.Stream([np.ones(3), np.ones(2)])",
    ),
]
