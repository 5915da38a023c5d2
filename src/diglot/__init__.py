"""Diglot: a local model server that speaks Ollama's and OpenAI's protocols from one port.

This file holds the version and nothing else, so that `diglot --version` stays quick.
"""

__version__ = "0.1.0"
