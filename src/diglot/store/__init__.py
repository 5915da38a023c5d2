"""Models on disk: Ollama's layout as our own format, GGUF headers, conversion, and the starter models.

Neighbours: `core.model` holds the values that come out, `core.ports.ModelStore` is what `LocalStore` fulfils.
"""

from __future__ import annotations
