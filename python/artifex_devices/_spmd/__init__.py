# SPDX-License-Identifier: Apache-2.0
"""Functions of many participants, one for each device: the room of `shard_map`, `pmap` and `jit`.

`session` holds the state of a call, `cooperative` and `threaded` execute it, `collectives` computes, and
`cross_process` exchanges blocks between processes.
"""
