"""What the tests of models on their way share: a clock that nobody waits for, and weights that come in parts."""

from typing import Final

from tests.services.world import Clock
from tests.store.gguf_bytes import LLAMA, Tensor, gguf

WEIGHTS: Final = gguf(LLAMA, [Tensor(shape=(1024, 250))])
"""A megabyte, which the supply of these tests fetches in eight parts."""


class QuickClock(Clock):
    """Time that flies: nobody waits."""

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.seconds += seconds
