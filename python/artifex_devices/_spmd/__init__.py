# SPDX-License-Identifier: Apache-2.0
"""Programs of many participants, one for each device: the room of `shard_map`, `pmap` and `jit`.

`participant` and `program` hold the state of a call, `cooperative` and `threaded` execute it, `collectives` computes,
and `cross_process` exchanges blocks between processes.
"""
