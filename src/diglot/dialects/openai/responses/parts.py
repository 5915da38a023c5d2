"""Parts: the contents of messages and of results: a text, or a list of texts and pictures."""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Sequence

import msgspec

from diglot.core.errors import InvalidField, UnsupportedField
from diglot.core.items import Part, Text
from diglot.dialects.openai.messages import bytes_of, image_part


class PartBody(msgspec.Struct):
    """A part of any kind; which of the fields hold it depends on the kind."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    file_data: str | None = None
    filename: str | None = None


Content = str | list[PartBody] | None


def content_of(content: Content, path: str) -> tuple[Part, ...]:
    """Return the parts of a content that stands at `path`, a link for each that is one. Raises InvalidField and UnsupportedField."""
    if not content:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_parts(content, path))


def _parts(parts: Sequence[PartBody], path: str) -> Iterator[Part]:
    for index, part in enumerate(parts):
        where = f"{path}[{index}]"
        match part.type:
            case "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text":
                yield Text(part.text or "")
            case "refusal":
                yield Text(part.refusal or "")
            case "input_image":
                yield _image(part, where)
            case "input_file":
                yield _file(part, where)
            case _:
                raise UnsupportedField(f"{where}.type", f"a part of the kind {part.type[:40]!r} is not read here")


def _image(part: PartBody, path: str) -> Part:
    if part.file_id is not None and part.image_url is None:
        raise UnsupportedField(
            f"{path}.file_id", "no files are kept here; send the picture as a data: URL in image_url"
        )
    if part.image_url is None:
        raise InvalidField(f"{path}.image_url", "is required")
    return image_part(part.image_url, f"{path}.image_url", links=True)


def _file(part: PartBody, path: str) -> Part:
    """Return a file of text as text under its name; no model here reads any other."""
    for field in ("file_id", "file_url"):
        if getattr(part, field) is not None:
            raise UnsupportedField(f"{path}.{field}", "no files are kept or fetched here; send the text in file_data")
    if part.file_data is None:
        raise InvalidField(f"{path}.file_data", "is required")
    head, comma, data = part.file_data.partition(",")
    try:
        text = bytes_of(data if comma else head).decode()
    except binascii.Error:
        raise InvalidField(f"{path}.file_data", "must be base64, or a data: URL with it") from None
    except UnicodeDecodeError:
        raise UnsupportedField(f"{path}.file_data", "only files of text are read; take the text out of it") from None
    return Text(f"[{part.filename}]\n{text}" if part.filename else text)
