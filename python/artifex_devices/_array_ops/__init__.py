# SPDX-License-Identifier: Apache-2.0
"""NumPy's operators and functions on Arrays: loaded when the first of them is used.

`layout` decides how a result lies, `blocks` reads and writes the shards, `dispatch` finds the function, and each other
module holds one family of functions.
"""
