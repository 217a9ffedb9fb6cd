# SPDX-License-Identifier: Apache-2.0
"""One program, many participants: what runs under `shard_map` and `pmap`.

`participant` says who runs, `program` brings participants together, `cooperative` and `threaded` let them run, and
`shard_map`, `pmap` and `jit` are the public calls.
"""
