# SPDX-License-Identifier: Apache-2.0
"""Bad calls: checkpoints."""

from bad_input.rows import Calls, bad

_SAVED = "c = ad.checkpoint; path = folder / 'saved'; c.save(path, {'w': X, 'step': 3}, overwrite=True)"
_NEW = "c = ad.checkpoint; path = folder / 'new'; gone = put(X); gone.delete()"
_MANAGER = "m = ad.checkpoint.Manager(folder / 'run', max_to_keep=2); m.save(1, {'w': X}, overwrite=True); gone = put(X); gone.delete()"

CALLS = [
    Calls(
        "checkpoint.save",
        "c.save(path, {'w': X}, overwrite=True)",
        [
            bad("c.save(3, {'w': X})", TypeError, "checkpoint.save:", "path is 3"),
            bad("c.save('', {'w': X})", TypeError, "checkpoint.save:", "expected a path"),
            bad("c.save('a\\0b', {'w': X})", ValueError, "checkpoint.save:", "null characters"),
            bad("c.save(path, {'w': object})", TypeError, "checkpoint.save:", "the leaf 'w'"),
            bad("c.save(path, {'w': np.array(['a'])})", TypeError, "checkpoint.save:", "dtype"),
            bad("c.save(path, {'w': gone})", RuntimeError, "checkpoint.save:", "was deleted"),
            bad("c.save(path, {'w.a': 1, 'w': {'a': 2}})", ValueError, "checkpoint.save:", "'w.a'"),
            bad("c.save(path, {'w': X}, overwrite=1)", TypeError, "checkpoint.save:", "overwrite is 1"),
            bad("c.save(path, {'w': X}, progress=True)", TypeError, "checkpoint.save:", "progress is True"),
            bad("c.save(path, {'w': X})", FileExistsError, "checkpoint.save:", "exists", repair=r"pass (overwrite=True)", then="c.save(path, {'w': X}, {})"),
            bad("c.save(folder, {'w': X}, overwrite=True)", ValueError, "checkpoint.save:", "is not a checkpoint"),
        ],
        where=_NEW,
    ),
    Calls(
        "checkpoint.save_async",
        "c.save_async(path, {'w': X}, overwrite=True).wait()",
        [
            bad("c.save_async(None, {'w': X})", TypeError, "checkpoint.save_async:", "path is None"),
            bad("c.save_async(path, {'w': b'x'})", TypeError, "checkpoint.save_async:", "the leaf 'w'"),
            bad("c.save_async(path, {'w': gone})", RuntimeError, "checkpoint.save_async:", "was deleted"),
            bad("c.save_async(path, {'w': X}, overwrite='no')", TypeError, "checkpoint.save_async:", "overwrite is 'no'"),
        ],
        where=_NEW,
    ),
    Calls(
        "checkpoint.restore",
        "c.restore(path, {'w': X, 'step': 0})",
        [
            bad("c.restore(3)", TypeError, "checkpoint.restore:", "path is 3"),
            bad("c.restore(folder / 'none')", FileNotFoundError, "checkpoint.restore:", "does not exist"),
            bad("c.restore(folder)", FileNotFoundError, "checkpoint.restore:", "checkpoint.json"),
            bad("c.restore(path, {'w': X})", ValueError, "checkpoint.restore:", "'step'", repair=r"pass (strict=False)", then="c.restore(path, {'w': X}, {})"),
            bad("c.restore(path, {'w': X, 'v': X}, strict=False)", ValueError, "checkpoint.restore:", "'v'"),
            bad("c.restore(path, {'w': X[0], 'step': 0})", ValueError, "checkpoint.restore:", "(8, 8)"),
            bad("c.restore(path, {'w': X > 0, 'step': 0})", ValueError, "checkpoint.restore:", "float32", "bool"),
            bad("c.restore(path, {'w': 'x', 'step': 0})", ValueError, "checkpoint.restore:", "'w' is an array"),
            bad("c.restore(path, {'w': X, 'step': True})", ValueError, "checkpoint.restore:", "'step' is a value of type int"),
            bad("c.restore(path, {'w': P('x'), 'step': 0})", ValueError, "checkpoint.restore:", "set_mesh"),
            bad("c.restore(path, strict=0)", TypeError, "checkpoint.restore:", "strict is 0"),
            bad("c.restore(path, verify=1)", TypeError, "checkpoint.restore:", "verify is 1"),
            bad("c.restore(path, follow_links=1)", TypeError, "checkpoint.restore:", "follow_links is 1"),
            bad("c.restore(path, progress=1)", TypeError, "checkpoint.restore:", "progress is 1"),
        ],
        where=_SAVED,
    ),
    Calls(
        "checkpoint.convert",
        "c.convert(path, folder / 'other', overwrite=True)",
        [
            bad("c.convert(3, folder / 'other')", TypeError, "checkpoint.convert:", "source is 3"),
            bad("c.convert(path, None)", TypeError, "checkpoint.convert:", "target is None"),
            bad("c.convert(folder / 'none', folder / 'other')", FileNotFoundError, "checkpoint.convert:", "does not exist"),
            bad("c.convert(path, path)", FileExistsError, "checkpoint.convert:", "exists"),
            bad("c.convert(path, folder / 'new', num_files=0)", ValueError, "checkpoint.convert:", "num_files is 0"),
            bad("c.convert(path, folder / 'new', overwrite=1)", TypeError, "checkpoint.convert:", "overwrite is 1"),
            bad("c.convert(path, folder / 'new', format='onnx')", ValueError, "checkpoint.convert:", "format is 'onnx'", "safetensors"),
            bad("c.convert(path, folder / 'new', format='safetensors')", ValueError, "checkpoint.convert:", "cannot store the values 'step'", repair=r"pass (allow_extra=\['step'\])", then="c.convert(path, folder / 'st', format='safetensors', {})"),
            bad("c.convert(path, folder / 'new.safetensors')", ValueError, "checkpoint.convert:", "the target ends in '.safetensors', and format is 'artifex'", repair=r"pass (format='safetensors'), or", then="c.convert(path, folder / 'one.safetensors', {}, allow_extra=['step'])"),
            bad("c.convert(path, folder / 'new', rules=['w'])", TypeError, "checkpoint.convert:", "rules[0] is 'w'"),
            bad("c.convert(path, folder / 'new', like={'w': X})", ValueError, "checkpoint.convert:", "like does not have the values 'step'"),
            bad("c.convert(path, folder / 'new', like={'w': X, 'step': object})", TypeError, "checkpoint.convert:", "the leaf 'step' of `like`"),
            bad("c.convert(path, folder / 'new', mesh=3)", TypeError, "checkpoint.convert:", "mesh is 3"),
            bad("c.convert(path, folder / 'new', like={'w': X}, num_files=2)", ValueError, "checkpoint.convert:", "two of like, mesh and num_files"),
            bad("c.convert(path, folder / 'new', dtype=3)", TypeError, "checkpoint.convert:"),
            bad("c.convert(path, folder / 'new', max_shard_size='big', format='safetensors')", ValueError, "checkpoint.convert:", "max_shard_size is 'big'"),
            bad("c.convert(path, folder / 'new', max_shard_size=4)", ValueError, "checkpoint.convert:", "format='artifex'"),
            bad("c.convert(path, folder / 'new', allow_extra='w')", TypeError, "checkpoint.convert:", "allow_extra is 'w'"),
            bad("c.convert(path, folder / 'new', dry_run=1)", TypeError, "checkpoint.convert:", "dry_run is 1"),
            bad("c.convert(path, folder / 'new', progress=1)", TypeError, "checkpoint.convert:", "progress is 1"),
        ],
        where=_SAVED,
    ),
    Calls(
        "checkpoint.metadata",
        "c.metadata(path)",
        [
            bad("c.metadata(3)", TypeError, "checkpoint.metadata:", "path is 3"),
            bad("c.metadata(folder / 'none')", FileNotFoundError, "checkpoint.metadata:", "does not exist"),
            bad("c.metadata(path, follow_links=1)", TypeError, "checkpoint.metadata:", "follow_links is 1"),
            bad("c.metadata(folder)", FileNotFoundError, "checkpoint.metadata:", "checkpoint.json"),
        ],
        where=_SAVED,
    ),
    Calls(
        "checkpoint.open",
        "c.open(path, format='artifex', follow_links=True).close()",
        [
            bad("c.open(3)", TypeError, "checkpoint.open:", "path is 3"),
            bad("c.open(folder / 'none')", FileNotFoundError, "checkpoint.open:", "does not exist"),
            bad("c.open(path, format='zarr')", ValueError, "checkpoint.open:", "format is 'zarr'", "orbax"),
            bad("c.open(path, format='torch')", ValueError, "checkpoint.open:", "is not of the format 'torch'", repair=r"pass (format='artifex')", then="c.open(path, {})"),
            bad("c.open(path, follow_links=1)", TypeError, "checkpoint.open:", "follow_links is 1"),
        ],
        where=_SAVED,
    ),
    Calls(
        "checkpoint.compare",
        "c.compare(path, path)",
        [
            bad("c.compare(3, path)", TypeError, "checkpoint.compare:", "a is 3"),
            bad("c.compare(path, None)", TypeError, "checkpoint.compare:", "b is None"),
            bad("c.compare(path, folder / 'none')", FileNotFoundError, "checkpoint.compare:", "does not exist"),
            bad("c.compare(path, path, rules='w')", TypeError, "checkpoint.compare:", "rules is 'w'"),
            bad("c.compare(path, path, rules=[3])", TypeError, "checkpoint.compare:", "rules[0] is 3"),
            bad("c.compare(path, path, rules=c.rules.transpose('w', (0,)))", ValueError, "checkpoint.compare:", "'w'"),
            bad("c.compare(path, path, dtype='spam')", TypeError, "checkpoint.compare:", "spam"),
            bad("c.compare(path, path, follow_links=1)", TypeError, "checkpoint.compare:", "follow_links is 1"),
            bad("c.compare(path, path, progress=1)", TypeError, "checkpoint.compare:", "progress is 1"),
        ],
        where=_SAVED,
    ),
    Calls(
        "checkpoint.Reader.verify",
        "r.verify()",
        [
            bad("r.verify(progress=1)", TypeError, "Reader.verify:", "progress is 1"),
            bad("r.verify(progress='x')", TypeError, "Reader.verify:", "progress is 'x'"),
            bad("(r.close(), r.verify())", ValueError, "Reader.verify:", "the reader is closed"),
        ],
        where=f"{_SAVED}; r = c.open(path)",
    ),
    Calls(
        "checkpoint.Reader.read",
        "r.read('w', (slice(0, 2),))",
        [
            bad("r.read('v')", ValueError, "Reader.read:", "'v'", "'w'"),
            bad("r.read(3)", TypeError, "Reader.read:", "name is 3"),
            bad("r.read('w', 3)", TypeError, "Reader.read:", "box is 3", "a tuple of slices"),
            bad("r.read('w', (slice(0, 4, 2),))", ValueError, "Reader.read:", "step 2"),
            bad("r.read('w', (slice('a'),))", TypeError, "Reader.read:", "slices of integers"),
            bad("r.read('w', verify=1)", TypeError, "Reader.read:", "verify is 1"),
        ],
        where=f"{_SAVED}; r = c.open(path)",
    ),
    *(
        Calls(
            f"checkpoint.Reader.{method}",
            f"r.{method}('w')",
            [
                bad(f"r.{method}('v')", ValueError, f"Reader.{method}:", "'v'", "'w'"),
                bad(f"r.{method}(None)", TypeError, f"Reader.{method}:", "name is None"),
                bad(f"r.{method}('step')", ValueError, f"Reader.{method}:", "'step'"),
            ],
            where=f"{_SAVED}; r = c.open(path)",
        )
        for method in ("shape", "dtype", "type")
    ),
    Calls(
        "checkpoint.Manager",
        "ad.checkpoint.Manager(folder, max_to_keep=1)",
        [
            bad("ad.checkpoint.Manager(3)", TypeError, "checkpoint.Manager:", "directory is 3"),
            bad("ad.checkpoint.Manager(folder, max_to_keep=0)", ValueError, "checkpoint.Manager:", "max_to_keep is 0"),
            bad("ad.checkpoint.Manager(folder, keep_every='x')", TypeError, "checkpoint.Manager:", "keep_every is 'x'"),
        ],
    ),
    Calls(
        "checkpoint.Manager.save",
        "m.save(2, {'w': X}, overwrite=True)",
        [
            bad("m.save('1', {'w': X})", TypeError, "Manager.save:", "step is '1'"),
            bad("m.save(-1, {'w': X})", ValueError, "Manager.save:", "step is -1"),
            bad("m.save(1, {'w': X})", FileExistsError, "Manager.save:", "exists"),
        ],
        where=_MANAGER,
    ),
    Calls(
        "checkpoint.Manager.save_async",
        "m.save_async(2, {'w': X}, overwrite=True).wait()",
        [
            bad("m.save_async(1.5, {'w': X})", TypeError, "Manager.save_async:", "step is 1.5"),
            bad("m.save_async(10**18, {'w': X})", ValueError, "Manager.save_async:", "step is 1000"),
            bad("m.save_async(3, {'w': gone})", RuntimeError, "Manager.save_async:", "was deleted"),
        ],
        where=_MANAGER,
    ),
    Calls(
        "checkpoint.Manager.restore",
        "m.restore(1, {'w': X})",
        [
            bad("m.restore(7)", FileNotFoundError, "Manager.restore:", "no checkpoint of step 7"),
            bad("m.restore(None)", TypeError, "Manager.restore:", "step is None"),
            bad("m.restore(1, {'v': X})", ValueError, "checkpoint.restore:", "'v'"),
        ],
        where=_MANAGER,
    ),
    Calls(
        "checkpoint.SaveFuture.wait",
        "f.wait(10)",
        [
            bad("f.wait('x')", TypeError, "SaveFuture.wait:", "timeout_s is 'x'"),
            bad("f.wait(-1)", ValueError, "SaveFuture.wait:", "timeout_s is -1"),
            bad("f.wait(float('nan'))", ValueError, "SaveFuture.wait:", "timeout_s is nan"),
        ],
        where="f = ad.checkpoint.save_async(folder / 'f', {'w': X}, overwrite=True); f.wait()",
    ),
]
