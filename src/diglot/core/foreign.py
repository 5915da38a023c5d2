"""JSON from elsewhere: what reading it can raise, so that every reader of it catches all of it.

No reader of its own: `msgspec.json.decode` is one, and whoever calls it says in its own words what is wrong.
"""

from __future__ import annotations

from typing import Final

import msgspec

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""Not JSON or not of the type that is wanted; no Unicode; brackets within brackets, deeper than the stack."""
