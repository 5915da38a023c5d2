"""Pictures that nobody decodes: a test says which of them are broken."""

# ruff: noqa: D102  the port says what its methods do

from collections.abc import Sequence

from diglot.core.errors import InvalidField
from diglot.core.items import Image


class Pictures:
    """Takes every picture for whole but those that a test names."""

    def __init__(self) -> None:
        self.looked: list[Image] = []
        self.broken: set[bytes] = set()

    async def check(self, images: Sequence[Image]) -> None:
        self.looked += images
        for index, image in enumerate(images):
            if image.data in self.broken:
                raise InvalidField(f"images[{index}]", "the image is damaged")

    async def readable(self, images: Sequence[Image]) -> tuple[Image, ...]:
        await self.check(images)
        return tuple(images)
