"""Envelopes: compaction items opened and written, sealed where the settings say so.

Both forms are always read, so that the setting can be changed at any time. Neighbours:
`core.compaction.envelope` for the plain form, the `Seal` port for the sealed one.

Invariant: what was written here opens here, after a restart and after days.
"""

from __future__ import annotations

from diglot.core.compaction.envelope import Summary, open_envelope, write_envelope
from diglot.core.errors import BrokenCompaction
from diglot.core.items import Compaction
from diglot.core.ports import Seal


class Envelopes:
    """Opens every envelope, writes plain ones, or sealed ones with `sealing`."""

    def __init__(self, seal: Seal, *, sealing: bool = False) -> None:
        self._seal = seal
        self._sealing = sealing

    def write(self, summary: Summary) -> Compaction:
        """Return the item that holds a summary."""
        plain = write_envelope(summary)
        return Compaction(self._seal.close(plain) if self._sealing else plain)

    def open(self, item: Compaction) -> Summary:
        """Return what an item holds. `BrokenCompaction` names where it stood in the request."""
        try:
            sealed = self._seal.knows(item.payload)
            return open_envelope(self._seal.open(item.payload) if sealed else item.payload)
        except BrokenCompaction as fault:
            raise BrokenCompaction(fault.reason, field=item.origin or fault.field) from None
