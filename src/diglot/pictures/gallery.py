"""The gallery: which pictures have been looked at, so that a conversation's are not decoded anew at each turn.

Implements `Pictures` of `core.ports` over `studio`. It remembers digests and no pictures.

Invariant: a picture that is let through was decoded to its last pixel by this server.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from diglot.core.errors import InvalidField
from diglot.core.images import LINK
from diglot.core.items import Image
from diglot.pictures.fetching import Fetcher
from diglot.pictures.studio import Looked, Studio
from diglot.pictures.wire import Verdict

_MOST_KNOWN: Final = 4096


class Gallery:
    """Looks at pictures. `pixels` is what one may have, for the words of a fault; without a `fetcher` links are none."""

    def __init__(self, studio: Studio, *, pixels: int, fetcher: Fetcher | None = None) -> None:
        self._studio = studio
        self._fetcher = fetcher
        self._pixels = pixels
        self._known: OrderedDict[bytes, None] = OrderedDict()

    async def fetched(self, images: Sequence[Image]) -> tuple[Image, ...]:
        """Return pictures with those behind links fetched. Raises InvalidField, which counts them from 0."""
        places = [place for place, image in enumerate(images) if image.media_type == LINK]
        if not places:
            return tuple(images)
        if self._fetcher is None:
            raise InvalidField(f"images[{places[0]}]", "pictures are not fetched here")
        came = await self._fetcher.fetch({place: images[place].data.decode() for place in places})
        return tuple(came.get(place, image) for place, image in enumerate(images))

    async def check(self, images: Sequence[Image]) -> None:
        """See that pictures can be decoded. Raises InvalidField, which counts them from 0."""
        digests = await asyncio.to_thread(lambda: [_digest(image) for image in images])
        new = [place for place, digest in enumerate(digests) if not self._knows(digest)]
        if new:
            await self._look([images[place] for place in new], new)
            for place in new:
                self._remember(digests[place])

    async def readable(self, images: Sequence[Image]) -> tuple[Image, ...]:
        """Return pictures in the forms that every engine reads, WebP as PNG. Raises as `check`."""
        await self.check(images)
        odd = [index for index, image in enumerate(images) if image.media_type == "image/webp"]
        shown = await self._look([images[index] for index in odd], odd) if odd else []
        made = {index: each.image for index, each in zip(odd, shown, strict=True)}
        return tuple(made.get(index, image) for index, image in enumerate(images))

    async def _look(self, images: Sequence[Image], places: Sequence[int]) -> list[Looked]:
        try:
            looked = await self._studio.look(images)
        except TimeoutError:
            raise InvalidField("images", "they take too long to decode") from None
        for each, place in zip(looked, places, strict=False):
            match each.verdict:
                case Verdict.WHOLE:
                    pass
                case Verdict.DAMAGED:
                    raise InvalidField(f"images[{place}]", "the image is damaged")
                case Verdict.TOO_LARGE:
                    raise InvalidField(
                        f"images[{place}]", f"the image has more than the limit of {self._pixels} pixels"
                    )
        return looked

    def _knows(self, digest: bytes) -> bool:
        if digest in self._known:
            self._known.move_to_end(digest)
            return True
        return False

    def _remember(self, digest: bytes) -> None:
        self._known[digest] = None
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)


def _digest(image: Image) -> bytes:
    return hashlib.sha256(image.media_type.encode() + b"\0" + image.data).digest()
