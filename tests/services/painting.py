"""Pictures that nobody decodes, of which a test says which are broken; and a seal that seals nothing."""

# ruff: noqa: D102, ARG002  the ports say what their methods do, and give them arguments

from collections.abc import Sequence

from diglot.core.errors import InvalidField
from diglot.core.images import LINK
from diglot.core.items import Image


class Pictures:
    """Takes every picture for whole but those that a test names."""

    def __init__(self) -> None:
        self.looked: list[Image] = []
        self.broken: set[bytes] = set()
        self.behind: dict[str, Image] = {}

    async def fetched(self, images: Sequence[Image]) -> tuple[Image, ...]:
        return tuple(
            self.behind.get(image.data.decode(), image) if image.media_type == LINK else image for image in images
        )

    async def check(self, images: Sequence[Image]) -> None:
        self.looked += images
        for index, image in enumerate(images):
            if image.data in self.broken:
                raise InvalidField(f"images[{index}]", "the image is damaged")

    async def readable(self, images: Sequence[Image]) -> tuple[Image, ...]:
        await self.check(images)
        return tuple(images)


class NoSeal:
    """Knows no sealed text and makes none."""

    def knows(self, text: str) -> bool:
        return False

    def close(self, text: str) -> str:
        return text

    def open(self, sealed: str) -> str:
        return sealed
