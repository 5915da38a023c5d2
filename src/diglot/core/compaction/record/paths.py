"""Paths as they stand in commands and patches: joined and tidied as text. No file is looked at.

Invariant: a tidied path has no `.`, no doubled slash, and `..` only at its start.
"""

from __future__ import annotations


def below(folder: str, path: str) -> str:
    """Return the tidied path as seen from where the folder is told from; an absolute path stays one."""
    whole = path if path.startswith("/") or not folder else f"{folder}/{path}"
    parts: list[str] = []
    for part in whole.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part == ".." and whole.startswith("/"):
            continue
        elif part not in {"", "."}:
            parts.append(part)
    return ("/" if whole.startswith("/") else "") + "/".join(parts) or "."


def name_of(path: str) -> str:
    """Return what stands behind the last slash."""
    return path.rpartition("/")[2]
