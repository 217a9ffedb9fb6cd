# SPDX-License-Identifier: Apache-2.0
"""Bad calls: streams and their sources."""

from bad_input.rows import Calls, bad

CALLS = [
    Calls(
        "data.Stream",
        "data.Stream([1, 2], seed=7)",
        [
            bad("data.Stream(5)", TypeError, "data.source:", "samples is 5"),
            bad("data.Stream(iter([1]))", TypeError, "data.source:", "without __len__"),
            bad("data.Stream([1], seed=-1)", ValueError, "data.Stream:", "seed is -1"),
            bad("data.Stream([1], seed=1.5)", TypeError, "data.Stream:", "seed is 1.5"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Stream.shuffle",
        "s.shuffle()",
        [
            bad("s.shuffle(window=0)", ValueError, "Stream.shuffle:", "window is 0"),
            bad("s.shuffle(window=2, shards=True)", ValueError, "Stream.shuffle:", "both given"),
            bad("s.shuffle(shards=[1, 2])", ValueError, "shuffle:", "begin at 0"),
            bad("s.shuffle(shards=['a'])", TypeError, "Stream.shuffle:", "shards is ['a']"),
            bad("s.repeat().shuffle()", ValueError, "shuffle:", "endless"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Stream.repeat",
        "s.repeat(2)",
        [
            bad("s.repeat(-1)", ValueError, "Stream.repeat:", "times is -1"),
            bad("s.repeat().repeat()", ValueError, "repeat:", "endless"),
            bad("s.repeat(2**62)", ValueError, "repeat:", "63 bits"),
            bad("s.repeat(1.0)", TypeError, "Stream.repeat:", "times is 1.0"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Stream.take",
        "s.take(1)",
        [
            bad("s.take(-1)", ValueError, "Stream.take:", "count is -1"),
            bad("s.take(2.0)", TypeError, "Stream.take:", "count is 2.0"),
            bad("s.take(None)", TypeError, "Stream.take:", "count is None"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Stream.skip",
        "s.skip(1)",
        [
            bad("s.skip(True)", TypeError, "Stream.skip:", "count is True"),
            bad("s.skip(-1)", ValueError, "Stream.skip:", "count is -1"),
            bad("s.skip(2**63)", ValueError, "Stream.skip:", "count is 9223372036854775808"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Stream.__getitem__",
        "s[0]",
        [
            bad("s[1.5]", TypeError, "Stream[...]:", "index is 1.5"),
            bad("s[2]", IndexError, "position 2"),
            bad("s[::0]", ValueError, "zero"),
            bad("s['a':]", TypeError, "Stream[...]:", "start is 'a'"),
            bad("s.repeat()[-1:]", ValueError, "Stream[...]:", "the end of an endless stream"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Stream.at",
        "s.at(0)",
        [
            bad("s.at(2)", IndexError, "position 2", "0 to 1"),
            bad("s.at(2**70)", ValueError, "Stream.at:", "position is"),
            bad("s.at(None)", TypeError, "Stream.at:", "position is None"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Stream.indices",
        "s.indices(0, 2)",
        [
            bad("s.indices(0, 3)", IndexError, "indices:", "3 positions from 0"),
            bad("s.indices('a', 3)", TypeError, "Stream.indices:", "start is 'a'"),
            bad("s.repeat().indices(0, 2**40)", ValueError, "Stream.indices:", "at once"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Stream.describe_position",
        "s.describe_position(0)",
        [
            bad("s.describe_position(-1)", IndexError, "position -1"),
            bad("s.describe_position(2)", IndexError, "position 2"),
            bad("s.describe_position('a')", TypeError, "Stream.describe_position:", "position is 'a'"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Stream.filter",
        "s.filter([0])",
        [
            bad("s.filter([True])", ValueError, "Stream.filter:", "the mask has 1 values"),
            bad("s.filter([5])", IndexError, "filter:", "position 5"),
            bad("s.filter([0.5])", TypeError, "Stream.filter:", "keep is [0.5]"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Stream.map",
        "s.map(str)",
        [
            bad("s.map(3)", TypeError, "Stream.map:", "function is 3"),
            bad("s.map(str, random=1)", TypeError, "Stream.map:", "random is 1"),
            bad("s.map(None)", TypeError, "Stream.map:", "function is None"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.mix",
        "data.mix({'a': (s, 1)})",
        [
            bad("data.mix({})", TypeError, "data.mix:", "streams is {}"),
            bad("data.mix([s])", TypeError, "data.mix:", "a dict of (stream, weight)"),
            bad("data.mix({'a': s})", TypeError, "data.mix:", "streams['a']"),
            bad("data.mix({1: (s, 1)})", TypeError, "data.mix:", "the name of a stream is 1"),
            bad("data.mix({'a': (s, 'x')})", TypeError, "data.mix:", "the weight of 'a' is 'x'"),
            bad("data.mix({'a': (s, -1)})", ValueError, "data.mix:", "the weight of 'a' is -1"),
            bad("data.mix({'a': (s, float('nan'))})", ValueError, "data.mix:", "the weight of 'a' is nan"),
            bad("data.mix({'a': (s, 0)})", ValueError, "data.mix:", "all weights are 0"),
            bad("data.mix({'a': (s, 1)}, seed='x')", TypeError, "data.mix:", "seed is 'x'"),
            bad("data.mix({'a': (s, 1)}, repeat=2)", TypeError, "data.mix:", "repeat is 2"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.concatenate",
        "data.concatenate([s, s])",
        [
            bad("data.concatenate([])", TypeError, "data.concatenate:", "streams is []"),
            bad("data.concatenate([s, 3])", TypeError, "data.concatenate:", "a list of Streams"),
            bad("data.concatenate([s.repeat(), s])", ValueError, "concatenate:", "endless"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.source",
        "data.source([1, 2])",
        [
            bad("data.source(None)", TypeError, "data.source:", "samples is None"),
            bad("data.source({1: 2})", TypeError, "data.source:", "dict"),
            bad("data.source('no/*.npy')", FileNotFoundError, "data.source:", "no file matches 'no/*.npy'"),
            bad("data.source('no.npy')", FileNotFoundError, "data.source:", "there is no file 'no.npy'"),
            bad("data.source(__file__)", ValueError, "data.source:", "cannot be read by number"),
            bad("data.source([1, 2])[2]", IndexError, "index 2"),
        ],
        where="data = ad.data; import artifex_devices.data; __file__ = ad.data.__file__",
    ),
    Calls(
        "data.batches",
        "next(data.batches(s, 2))",
        [
            bad("data.batches([1])", TypeError, "data.batches:", "stream is [1]"),
            bad("data.batches(s, 0)", ValueError, "data.batches:", "batch is 0"),
            bad("data.batches(s, True)", TypeError, "data.batches:", "batch is True"),
            bad("data.batches(s, 2, sharding=3)", TypeError, "sharding"),
            bad("data.batches(s, 2, last='keep')", ValueError, "data.batches:", "last is 'keep'"),
            bad("data.batches(s, 2, workers=0)", ValueError, "data.batches:", "workers is 0"),
            bad("data.batches(s, 2, prefetch=0)", ValueError, "data.batches:", "prefetch is 0"),
            bad("data.batches(s, 2, on_error='ignore')", ValueError, "data.batches:", "on_error is 'ignore'"),
            bad("data.batches(s, 2, state=3)", TypeError, "data.batches:", "state is 3"),
            bad("data.batches(s, 2, state={})", TypeError, "data.batches:", "state['version']"),
            bad("data.batches(s, 2, state={**b.state(), 'version': 2})", ValueError, "data.batches:", "version 2"),
            bad("data.batches(s, 2, state={**b.state(), 'seed': '8'})", ValueError, "its seed is '8'"),
            bad("data.batches(s, 2, state={**b.state(), 'position': -1})", ValueError, "state['position'] is -1"),
            bad("data.batches(s, 2, state={**b.state(), 'position': 9})", ValueError, "state['position'] is 9"),
        ],
        where="data = ad.data; s = data.Stream([1, 2]); b = data.batches(s, 2)",
    ),
    Calls(
        "data.TorchSampler",
        "data.TorchSampler(s, 1, 2)",
        [
            bad("data.TorchSampler([1])", TypeError, "data.TorchSampler:", "stream is [1]"),
            bad("data.TorchSampler(s, 2, 2)", ValueError, "data.TorchSampler:", "rank is 2"),
            bad("data.TorchSampler(s, 0, 0)", ValueError, "data.TorchSampler:", "world is 0"),
            bad("data.TorchSampler(s, batch_size=0)", ValueError, "data.TorchSampler:", "batch_size is 0"),
            bad("data.TorchSampler(s.map(str))", ValueError, "data.TorchSampler:", "functions of map"),
            bad("data.TorchSampler(data.concatenate([s, s]))", ValueError, "data.TorchSampler:", "2 sources"),
            bad("len(data.TorchSampler(s.repeat()))", TypeError, "len:", "endless"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.TorchLoader",
        "data.TorchLoader(L)",
        [
            bad("data.TorchLoader(3)", TypeError, "data.TorchLoader:", "sampler is None"),
            bad("data.TorchLoader(types.SimpleNamespace(sampler=range(3)))", TypeError, "data.TorchLoader:", "range"),
            bad(
                "data.TorchLoader(types.SimpleNamespace(sampler=L.sampler, batch_size=None))",
                ValueError,
                "data.TorchLoader:",
                "batch_size=None",
            ),
        ],
        where=("import types; data = ad.data; L = types.SimpleNamespace(sampler=data.TorchSampler(data.Stream([1, 2])), batch_size=1)"),
    ),
    Calls(
        "data.GrainSource",
        "data.GrainSource(s)",
        [
            bad("data.GrainSource([1])", TypeError, "data.GrainSource:", "stream is [1]"),
            bad("data.GrainSource(s.repeat())", TypeError, "endless"),
            bad("data.GrainSource(None)", TypeError, "data.GrainSource:", "stream is None"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.Batches.state_at",
        "b.state_at(1)",
        [
            bad("b.state_at(-1)", ValueError, "step is -1"),
            bad("b.state_at(1.5)", TypeError, "step is 1.5"),
            bad("b.state_at(9)", ValueError, "step is 9"),
        ],
        where="data = ad.data; b = data.batches(data.Stream([1, 2]), 2)",
    ),
    Calls(
        "data.TorchSampler.advance",
        "data.TorchSampler(s).advance()",
        [
            bad("data.TorchSampler(s).advance(-1)", ValueError, "TorchSampler.advance:", "batches is -1"),
            bad("data.TorchSampler(s).advance(1.5)", TypeError, "TorchSampler.advance:", "batches is 1.5"),
            bad("data.TorchSampler(s).advance(None)", TypeError, "TorchSampler.advance:", "batches is None"),
        ],
        where="data = ad.data; s = data.Stream([1, 2])",
    ),
    Calls(
        "data.TorchSampler.load_state_dict",
        "t.load_state_dict(t.state_dict())",
        [
            bad("t.load_state_dict({})", TypeError, "TorchSampler.load_state_dict:"),
            bad("t.load_state_dict(3)", TypeError, "state is 3"),
            bad("t.load_state_dict({**t.state_dict(), 'seed': '1'})", ValueError, "its seed is '1'"),
        ],
        where="data = ad.data; t = data.TorchSampler(data.Stream([1, 2]))",
    ),
    Calls(
        "data.TorchLoader.load_state_dict",
        "L.load_state_dict(L.state_dict())",
        [
            bad("L.load_state_dict({})", TypeError, "TorchSampler.load_state_dict:"),
            bad("L.load_state_dict(3)", TypeError, "state is 3"),
            bad("L.load_state_dict({**L.state_dict(), 'seed': '1'})", ValueError, "its seed is '1'"),
        ],
        where=("import types; data = ad.data; t = data.TorchSampler(data.Stream([1, 2])); L = data.TorchLoader(types.SimpleNamespace(sampler=t, batch_size=1))"),
    ),
    Calls(
        "data.GrainSource.__getitem__",
        "g[0]",
        [
            bad("g[2]", IndexError, "position 2"),
            bad("g['a']", TypeError, "GrainSource:", "position is 'a'"),
            bad("g[1.5]", TypeError, "GrainSource:", "position is 1.5"),
        ],
        where="data = ad.data; g = data.GrainSource(data.Stream([1, 2]))",
    ),
    Calls(
        "data.Source.__getitem__",
        "s[0]",
        [
            bad("s[2]", IndexError, "index 2"),
            bad("s[-3]", IndexError, "index -3"),
            bad("s[2**70]", IndexError, "index"),
        ],
        where="data = ad.data; s = data.source([1, 2])",
    ),
]
