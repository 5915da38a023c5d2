"""Settings: every knob of the server, declared once.

A setting comes from the command line, else from the environment (`DIGLOT_` and its name in capitals), else
from `config.toml` in the home folder, else from the default here. This is the only module that reads the
environment. `docs/settings.md` is made from it.

Invariant: settings do not change while the server runs.
"""

from __future__ import annotations

import ipaddress
import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import platformdirs

from diglot.core.images import MAX_PIXELS

PREFIX = "DIGLOT_"
_OLLAMA_SERVICE = Path("/usr/share/ollama/.ollama/models")


class SettingsError(Exception):
    """A setting has a wrong value; the message names it and says where it was found."""


def _told(text: str, *, least: float | None = None, most: float | None = None) -> msgspec.Meta:
    return msgspec.Meta(description=text, ge=least, le=most)


_FOR_EVER = 10 * 365 * 86400.0  # A limit for times, so that none of them is infinite or no number.


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings. Sizes are in bytes, times in seconds; 0 means "chosen by what the machine has" where so said."""

    home: Annotated[Path, _told("The folder that holds all state.")]
    models: Annotated[Path | None, _told("The folder of the models; `models` in the home folder by default.")] = None
    read_ollama: Annotated[
        bool,
        _told("Whether the models of Ollama on this machine are served too. They are read in place, never changed."),
    ] = True
    ollama_models: Annotated[
        Path | None,
        _told("Ollama's models folder. By default that of `OLLAMA_MODELS`, of this user, or of its service."),
    ] = None
    folders: Annotated[
        tuple[Path, ...], _told("Further folders of GGUF files, whose models are served too and called as their files.")
    ] = ()
    hub_cache: Annotated[
        Path | None, _told("Hugging Face's cache, to serve its GGUF files too; often `~/.cache/huggingface/hub`.")
    ] = None
    host: Annotated[
        str, _told("The address to listen on. One that other machines reach needs a `key`, or `keyless`.")
    ] = "127.0.0.1"
    port: Annotated[
        int, _told("The port to listen on, one above Ollama's; 0 takes a free one.", least=0, most=65535)
    ] = 11435
    keyless: Annotated[
        bool, _told("Whether `host` may be one that other machines reach although there is no `key`.")
    ] = False
    origins: Annotated[
        tuple[str, ...], _told("Further web origins that may call, such as `https://chat.example`; `*` for all.")
    ] = ()
    hosts: Annotated[tuple[str, ...], _told("Further names that the Host header may carry.")] = ()
    key: Annotated[str, _told("A key that every request must bring as a bearer token. None by default.")] = ""
    slots: Annotated[int, _told("Answers that one model makes at the same time.", least=1, most=1024)] = 4
    queue: Annotated[
        int,
        _told("Requests that wait for a slot of one model; further ones are refused with 503.", least=0, most=100_000),
    ] = 32
    keep_alive: Annotated[
        float, _told("How long a model stays loaded after its last answer; negative for ever.", most=_FOR_EVER)
    ] = 300.0
    memory: Annotated[
        int, _told("Memory that loaded models may take together; 0 for three quarters of what there is.", least=0)
    ] = 0
    cache: Annotated[
        int, _told("Memory that the KV cache of one model may take; 0 for a quarter of `memory`.", least=0)
    ] = 0
    window: Annotated[
        int, _told("Context window of a model in tokens; 0 for the trained one, as far as memory goes.", least=0)
    ] = 0
    threads: Annotated[
        int, _told("Threads that one model computes with; 0 for one less than there are cores.", least=0, most=1024)
    ] = 0
    gpu_layers: Annotated[int, _told("Layers put on a GPU where the engine has one; negative for all that fit.")] = -1
    engine: Annotated[Literal["llamacpp", "scripted"], _told("What runs the models.")] = "llamacpp"
    script: Annotated[Path | None, _told("The script of the scripted engine.")] = None
    llama_server: Annotated[
        Path | None, _told("A `llama-server` binary to use instead of the engine that comes along.")
    ] = None
    remotes: Annotated[
        tuple[str, ...], _told("Base URLs of OpenAI-compatible servers whose models are served too.")
    ] = ()
    remote_key: Annotated[str, _told("The key to send to them.")] = ""
    hub: Annotated[str, _told("Where the models of Hugging Face are, or a mirror of it.")] = "https://huggingface.co"
    hub_token: Annotated[str, _told("The token for what is not open to all there; sent to no other host.")] = ""
    connections: Annotated[
        int, _told("Connections over which one content of a model is fetched at once.", least=1, most=16)
    ] = 8
    embedding_model: Annotated[str, _told("The model for embeddings when a request names none.")] = ""
    max_inputs: Annotated[int, _told("Texts that one request may have embedded or ranked.", least=1)] = 2048
    max_connections: Annotated[
        int, _told("Connections of clients that may be open; by default half of what a process may open.", least=1)
    ] = 500
    max_head: Annotated[int, _told("Bytes that the head of a request may have, its path and headers.", least=1024)] = (
        64 * 1024
    )
    head_timeout: Annotated[float, _told("How long a head may take to arrive.", least=0.1, most=_FOR_EVER)] = 30.0
    max_body: Annotated[int, _told("Bytes that a request body may have, as it is sent.", least=1)] = 64 * 1024 * 1024
    max_unpacked: Annotated[int, _told("Bytes that a packed request body may have once it is unpacked.", least=1)] = (
        64 * 1024 * 1024
    )
    max_depth: Annotated[int, _told("How deep a request body may be nested.", least=1, most=500)] = 128
    max_values: Annotated[int, _told("JSON values that a request body may hold.", least=1)] = 2_000_000
    max_messages: Annotated[int, _told("Messages or items that one request may hold.", least=1)] = 10_000
    max_parts: Annotated[
        int, _told("Parts that the messages of one request may hold together, calls counted.", least=1)
    ] = 20_000
    max_images: Annotated[int, _told("Pictures that one request may hold.", least=0)] = 128
    max_pixels: Annotated[int, _told("Pixels that one picture may have.", least=1, most=MAX_PIXELS)] = MAX_PIXELS
    image_timeout: Annotated[
        float,
        _told(
            "How long the pictures of one request may take to be decoded, and as long again to be fetched.",
            least=0.1,
            most=_FOR_EVER,
        ),
    ] = 60.0
    fetch_images: Annotated[
        bool, _told("Whether pictures may be links, which the server then fetches from the public network.")
    ] = False
    fetch_size: Annotated[int, _told("Bytes that the fetched pictures of one request may have together.", least=1)] = (
        32 * 1024 * 1024
    )
    max_tools: Annotated[int, _told("Tools that one request may declare.", least=0)] = 1024
    body_timeout: Annotated[float, _told("How long a body may take to arrive.", least=0.1, most=_FOR_EVER)] = 60.0
    stall_timeout: Annotated[
        float,
        _told("How long a client may take nothing of its answer before it is let go.", least=0.1, most=_FOR_EVER),
    ] = 120.0
    hang_timeout: Annotated[
        float,
        _told(
            "How long an engine that owes an answer may give no sign of life before it is ended; the next request "
            "loads the model anew.",
            least=0.1,
            most=_FOR_EVER,
        ),
    ] = 300.0
    heartbeat: Annotated[
        float,
        _told(
            "Silence after which a stream sends a sign of life, where its protocol has one.", least=0.1, most=_FOR_EVER
        ),
    ] = 10.0
    on_overflow: Annotated[
        Literal["error", "compact"], _told("What happens to a conversation that does not fit: an error, or compaction.")
    ] = "error"
    sealed: Annotated[
        bool, _told("Whether compaction items are encrypted; plain ones can move to Ollama and back.")
    ] = False
    response_age: Annotated[
        float, _told("How long a stored response is remembered after it was last used.", least=0, most=_FOR_EVER)
    ] = 30 * 86400.0
    response_size: Annotated[int, _told("Bytes that all stored responses may take together.", least=0)] = 1024**3
    drain: Annotated[
        float, _told("How long answers in flight may go on after a request to stop.", least=0, most=_FOR_EVER)
    ] = 10.0
    log: Annotated[
        Literal["debug", "info", "warning", "error"], _told("The least severe log lines that are written.")
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"], _told("How log lines are written: for people, or each as a JSON object.")
    ] = "text"

    @property
    def unguarded(self) -> bool:
        """Whether other machines could call without a key, and nobody has said that they may."""
        return not (self.key or self.keyless or _is_loopback(self.host))

    @property
    def model_folder(self) -> Path:
        """Where the models are."""
        return self.models or self.home / "models"

    @property
    def state_folder(self) -> Path:
        """Where the server keeps what it remembers between runs."""
        return self.home / "state"


def _is_loopback(host: str) -> bool:
    """Say whether only this machine reaches what listens on `host`. A name is believed to be elsewhere."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def environment() -> Mapping[str, str]:
    """Return the environment of the process."""
    return os.environ


def environment_of_children() -> Mapping[str, str]:
    """Return the environment without our settings: keys are among them, which no child needs."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def load_settings(flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings in force. `flags` are those of the command line, None where not given.

    Raises SettingsError.
    """
    environ = environment() if environ is None else environ
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    home = Path(given.get("home") or environ.get(f"{PREFIX}HOME") or platformdirs.user_data_path("diglot"))
    home = home.expanduser().absolute()
    from_file = _from_file(home / "config.toml")
    if "home" in from_file:
        raise SettingsError("home in config.toml cannot be: the file is looked for in that folder")
    layers = (
        ("config.toml", from_file),
        ("the environment", _from_environment(environ)),
        ("the command line", given),
    )
    merged: dict[str, Any] = {}
    for where, layer in layers:
        for name, value in layer.items():
            merged[name] = _convert(name, value, where)
    if merged.get("ollama_models") is None:
        merged["ollama_models"] = _ollama_models(environ)
    return Settings(**(merged | {"home": home}))


def _ollama_models(environ: Mapping[str, str]) -> Path | None:
    """Return Ollama's models folder, where there is one that can be read."""
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if not home:
        return None  # Nobody is at home whose models these could be.
    named = environ.get("OLLAMA_MODELS")
    places = (Path(named),) if named else (Path(home) / ".ollama" / "models", _OLLAMA_SERVICE)
    return next((place for place in places if os.access(place / "manifests", os.R_OK | os.X_OK)), None)


def _from_file(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"config.toml cannot be read: {error}") from error


def _from_environment(environ: Mapping[str, str]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(Settings):
        text = environ.get(PREFIX + field.name.upper())
        if text is None or text == "":
            continue
        found[field.name] = [part.strip() for part in text.split(",") if part.strip()] if _is_list(field.type) else text
    return found


def _is_list(kind: Any) -> bool:
    return get_origin(get_args(kind)[0]) is tuple


def _convert(name: str, value: object, where: str) -> Any:
    kinds = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    if name not in kinds:
        raise SettingsError(f"{name} in {where} is no setting")
    if isinstance(value, list | tuple):
        value = [str(each) if isinstance(each, Path) else each for each in value]
    elif isinstance(value, Path):
        value = str(value)
    try:
        made = msgspec.convert(value, kinds[name], strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{name} in {where}: {error}") from error
    if isinstance(made, float) and math.isnan(made):
        raise SettingsError(f"{name} in {where}: Expected a number")
    return made


def _path(kind: type, value: object) -> Path:
    if kind is Path and isinstance(value, str):
        return Path(value).expanduser()
    raise TypeError(f"expected a path, got {value!r}")
