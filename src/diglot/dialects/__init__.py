"""Dialects: the protocols that clients speak, as tables of pure functions over bytes.

Each package here is one protocol. It knows `core` and `framing`, no other dialect, no service and no
HTTP framework. `operation` holds the form of the tables.
"""
