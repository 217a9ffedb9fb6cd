# SPDX-License-Identifier: Apache-2.0
"""NumPy's operators and functions on Arrays: loaded at the first one that is used.

`layout` decides how a result lies, `blocks` reads and writes the shards, `dispatch` finds the function, and each other
module holds one family of functions.
"""
