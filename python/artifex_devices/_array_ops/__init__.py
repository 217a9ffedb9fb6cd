# SPDX-License-Identifier: Apache-2.0
"""NumPy's operators and functions on Arrays, loaded when a program first uses one.

`layout` decides how a result is sharded, `blocks` reads and writes the shards, `dispatch` finds the function, and each
other module holds one family of functions.
"""
