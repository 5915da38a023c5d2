"""Responses kept in memory, for tests."""

from __future__ import annotations

from diglot.core.errors import UnknownResponse
from diglot.core.result import Stored


class Memory:
    """Responses kept in memory."""

    def __init__(self) -> None:
        self.responses: dict[str, Stored] = {}

    def put(self, response: Stored) -> None:
        """Remember one."""
        self.responses[response.id] = response

    def get(self, response: str) -> Stored:
        """Return one. Raises UnknownResponse."""
        if response not in self.responses:
            raise UnknownResponse(response)
        return self.responses[response]

    def forget(self, response: str) -> None:
        """Forget one. Raises UnknownResponse."""
        del self.responses[self.get(response).id]
