"""Models on this machine: fetched from their publisher, or added by hand, in the folder of the setting ``models``.

Beside each file a record, ``<name>.json``, has its SHA-256. A later download with another hash is refused, also after
the file was deleted.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from framedex.core.atomic import SUFFIX, atomic_file, write_atomic
from framedex.core.downloads import TIMEOUT_S, OnBytes, RemoteFile, download
from framedex.core.regular_files import has_file, read_text
from framedex.encoders.model_list import NAME, SUFFIXES, Kind, ListedModel, listed_model, listed_models
from framedex.encoders.onnx import OnnxEncoder
from framedex.encoders.onnx_settings import sidecar_of
from framedex.encoders.open_clip import OpenClipEncoder
from framedex.encoders.weights import sha256_of
from framedex.errors import Conflict, InvalidInput, NotFound, Unavailable
from framedex.settings import Settings, load_settings, user_path

_locks: Any
try:
    import fcntl as _locks
except ImportError:  # Windows: two downloads at a time are not kept apart
    _locks = None

_PACKAGES: dict[Kind, tuple[tuple[str, ...], str]] = {
    "open_clip": (("torch", "open_clip"), "clip"),
    "onnx": (("onnx", "onnxruntime"), "onnx"),
}
"""The packages that load a model of a kind, and the extra that installs them."""
FETCHED = "auto: the fetched model"
"""The beginning of the reason for the choice of a model on this machine."""


class ModelRecord(BaseModel):
    """The content of the record beside a model.

    Attributes:
        kind: the engine that loads the model.
        model: the model of open_clip.
        file: the name of the file.
        sha256: of the file.
        size_bytes: of the file.
        source: the address or the path that it came from.
        licence: of the weights; empty if it is not known.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: Kind
    model: str | None = None
    file: Annotated[str, Field(pattern=f"^{NAME}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size_bytes: int
    source: str
    licence: str = ""


@dataclass(frozen=True)
class LocalModel:
    """A model on this machine.

    Attributes:
        name: of the model.
        path: of its file.
        record: what is known about the file.

    Examples:
        >>> model = framedex.encoders.add_model("classifier.onnx")
        >>> model.name, model.record.kind
        ('classifier', 'onnx')
    """

    name: str
    path: Path
    record: ModelRecord

    @property
    def encoder(self) -> str:
        """The name of the encoder, for ``create_dataset(encoder=…)``."""
        path = os.fspath(self.path)
        return f"onnx:{path}" if self.record.kind == "onnx" else f"open_clip:{self.record.model}/{path}"

    @property
    def missing_packages(self) -> str:
        """The command that installs the packages that load it; empty if they are installed."""
        packages, extra = _PACKAGES[self.record.kind]
        return "" if all(find_spec(each) for each in packages) else f"pip install 'framedex[{extra}]'"


def models_folder(settings: Settings) -> Path:
    """Return the absolute path of the folder of models."""
    return Path(os.path.abspath(user_path(settings.models)))  # noqa: PTH100 - does not follow links


def local_models(settings: Settings | None = None) -> list[LocalModel]:
    """Return the models on this machine: listed ones in the order of the list, then others by name.

    Examples:
        >>> model = framedex.encoders.add_model("classifier.onnx", name="mine")
        >>> [each.name for each in framedex.encoders.local_models()]
        ['mine']
    """
    settings = settings or load_settings()
    folder = models_folder(settings)
    found = []
    for path in sorted(folder.glob("*.json")):
        with suppress(InvalidInput):  # another file; fetching or adding a model of its name says so
            if (record := _read_record(path)) is not None and has_file(folder / record.file):
                found.append(LocalModel(path.stem, folder / record.file, record))
    order = list(listed_models(settings))
    return sorted(found, key=lambda each: order.index(each.name) if each.name in order else len(order))


def fetch_model(
    name: str,
    *,
    settings: Settings | None = None,
    on_bytes: OnBytes = lambda _done, _total: None,
    on_wait: Callable[[], None] = lambda: None,
    timeout_s: float = TIMEOUT_S,
) -> LocalModel:
    """Fetch a listed model from its publisher, unless it is on this machine. An interrupted download continues.

    Args:
        name: of the model; see ``framedex models``.
        settings: the folder of models; by default from the environment.
        on_bytes: called for each block with the bytes that are there, and with those of the file if they are known.
        on_wait: called if another process is fetching the model, which is then waited for.
        timeout_s: seconds to wait for a connection, and for the next bytes.

    Raises:
        NotFound: no such model is listed.
        Unavailable: it cannot be reached or written; the next call continues.
        Forbidden: an address leads to another host than those of the publisher.
        InvalidInput: the file is another one than expected, by size or hash, or no model.

    Examples:
        >>> framedex.encoders.fetch_model("clip")
        Traceback (most recent call last):
            ...
        framedex.errors.NotFound: no model 'clip' can be fetched; there are: ViT-B-32, ViT-L-14, dinov2-base,
          dinov2-small
    """
    settings = settings or load_settings()
    listed = listed_model(name, settings)
    folder = _made(models_folder(settings))
    with _exclusive(folder / f".{name}.lock", on_wait):
        record = _read_record(folder / f"{name}.json")
        path = folder / (listed.file if record is None else record.file)
        if record is not None and has_file(path):
            return _checked(LocalModel(name, path, record), listed)
        path = folder / listed.file
        expected = listed.sha256 or (None if record is None else record.sha256)
        remote = RemoteFile(listed.addresses, listed.hosts, listed.size_bytes, expected)
        partial = path.with_name(path.name + SUFFIX)
        digest = download(remote, partial, on_bytes=on_bytes, timeout_s=timeout_s)
        _check_form(partial, path.suffix, listed)
        record = _record_of(listed, path.name, digest, partial.stat().st_size, listed.addresses[0])
        _write_beside(listed, path, record)
        os.replace(partial, path)  # noqa: PTH105 - as in core.atomic
        return LocalModel(name, path, record)


def add_model(
    file: str | os.PathLike[str], *, name: str | None = None, link: bool = False, settings: Settings | None = None
) -> LocalModel:
    """Add a model that was carried to this machine, after checking that it can be loaded.

    Args:
        file: the weights of a listed model, or any image model in ONNX.
        name: of the model; by default that of the listed model with this file, else that of the file.
        link: whether a link is made instead of a copy.
        settings: the folder of models; by default from the environment.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it cannot be loaded as what it should be, or is another file than expected.
        Conflict: another file has the name.
        MissingDependency: the packages that load it are not installed.
        Unavailable: it cannot be written.

    Examples:
        >>> framedex.encoders.add_model("classifier.onnx", name="mine").name
        'mine'
    """
    settings = settings or load_settings()
    source = Path(os.path.abspath(user_path(file)))  # noqa: PTH100 - does not follow links
    if not has_file(source):
        raise NotFound(f"no file {os.fspath(source)!r}")
    digest = sha256_of(source)
    models = listed_models(settings)
    name = name or _name_of(source, digest, models)
    if not re.fullmatch(NAME, name):
        raise InvalidInput(f"{name!r} is no name of a model: letters, digits, '.', '_' and '-', up to 64")
    listed = models.get(name)
    folder = _made(models_folder(settings))
    with _exclusive(folder / f".{name}.lock", lambda: None):
        before = _read_record(folder / f"{name}.json")
        if before is not None and before.sha256 != digest:
            raise Conflict(
                f"the model {name!r} has the SHA-256 {before.sha256}, and {os.fspath(source)!r} has {digest}; "
                f"give another name, or delete {os.fspath(folder / f'{name}.json')!r} if it was replaced on purpose"
            )
        _check_loads(source, listed, digest, models)
        path = folder / f"{name if listed is None else Path(listed.file).stem}{source.suffix}"
        record = (
            ModelRecord(
                kind="onnx", file=path.name, sha256=digest, size_bytes=source.stat().st_size, source=str(source)
            )
            if listed is None
            else _record_of(listed, path.name, digest, source.stat().st_size, str(source))
        )
        if path != source:
            _copy(source, path, link=link)
            if listed is None and has_file(sidecar_of(source)):
                _copy(sidecar_of(source), sidecar_of(path), link=link)
        _write_beside(listed, path, record)
        return LocalModel(name, path, record)


def automatic_model(settings: Settings) -> tuple[LocalModel | None, str]:
    """Return the model that ``auto`` selects, and the reason; None, with the reason, if packages are missing.

    Only listed models count. The reason is empty if there are none.
    """
    names = listed_models(settings)
    models = [model for model in local_models(settings) if model.name in names]
    for model in models:
        if not model.missing_packages:
            return model, f"{FETCHED} {model.name} is on this machine, and its packages are installed"
    if not models:
        return None, ""
    return None, f"the fetched model {models[0].name} needs {models[0].missing_packages}"


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise Unavailable(f"the folder of models {os.fspath(folder)!r} cannot be made: {reason}") from None
    return folder


@contextmanager
def _exclusive(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a model, which ends with the process."""
    try:
        file = path.open("ab")
    except OSError as error:
        raise Unavailable(f"{os.fspath(path)!r} cannot be written: {error.strerror or error}") from None
    with file:
        if _locks is not None:
            try:
                _locks.flock(file, _locks.LOCK_EX | _locks.LOCK_NB)
            except BlockingIOError:
                on_wait()
                _locks.flock(file, _locks.LOCK_EX)
        yield


def _read_record(path: Path) -> ModelRecord | None:
    """Return the record in a file; None if there is none."""
    if not has_file(path):
        return None
    try:
        return ModelRecord.model_validate_json(read_text(path))
    except (OSError, ValidationError, ValueError):
        raise InvalidInput(
            f"{os.fspath(path)!r} is no record of a model; delete it, and fetch or add the model"
        ) from None


def _record_of(listed: ListedModel, file: str, digest: str, size_bytes: int, source: str) -> ModelRecord:
    return ModelRecord(
        kind=listed.kind, model=listed.model, file=file, sha256=digest, size_bytes=size_bytes, source=source,
        licence=listed.licence,
    )  # fmt: skip


def _write_beside(listed: ListedModel | None, path: Path, record: ModelRecord) -> None:
    """Write the settings and the record of a model."""
    try:
        if listed is not None and listed.settings:
            lines = [f"{key} = {json.dumps(value)}\n" for key, value in listed.settings.items()]
            write_atomic(sidecar_of(path), "".join(lines).encode())
        name = path.stem if listed is None else listed.name
        text = json.dumps(record.model_dump(exclude_none=True), indent=2)
        write_atomic(path.with_name(f"{name}.json"), text.encode(), fsync=True)
    except OSError as error:
        raise Unavailable(f"{os.fspath(path.parent)!r} cannot be written: {error.strerror or error}") from None


def _check_form(partial: Path, suffix: str, listed: ListedModel) -> None:
    """Check by its first bytes that a fetched file is a model, and no message of a server; else delete it."""
    with partial.open("rb") as file:
        start = file.read(9)
    match suffix:
        case ".safetensors":  # eight bytes with the length of a JSON object
            fits = start[8:] == b"{"
        case ".onnx":  # field 1 of the message, a number: the version of the format
            fits = start[:1] == b"\x08"
        case _:  # a ZIP archive, or a pickle of older versions of PyTorch
            fits = start.startswith((b"PK\x03\x04", b"\x80\x02"))
    if not fits:
        partial.unlink()
        raise InvalidInput(f"{listed.addresses[0]} is no {suffix} file: it begins with {start!r}")


def _checked(model: LocalModel, listed: ListedModel) -> LocalModel:
    """Return a model whose file is that of its record, and of the list."""
    digest, expected = sha256_of(model.path), listed.sha256 or model.record.sha256
    if digest != expected:
        raise InvalidInput(
            f"{os.fspath(model.path)!r} is another file than expected: its SHA-256 is {digest}, and should be "
            f"{expected}; delete it to fetch the model again"
        )
    return model


def _name_of(source: Path, digest: str, models: dict[str, ListedModel]) -> str:
    fitting = (name for name, each in models.items() if digest == each.sha256 or source.name == each.file)
    return next(fitting, source.stem)


def _check_loads(source: Path, listed: ListedModel | None, digest: str, models: dict[str, ListedModel]) -> None:
    """Check that a file can be loaded as the listed model, or as any image model in ONNX."""
    says = repr(os.fspath(source))
    kind: Kind = "onnx" if listed is None else listed.kind
    if not source.name.endswith(SUFFIXES[kind]):
        if listed is None:
            raise InvalidInput(
                f"{says} is no model in ONNX; weights of open_clip get the name of a listed model "
                f"({', '.join(models)}), or are used as encoder='open_clip:<model>/<file>'"
            )
        raise InvalidInput(f"{says} cannot be {listed.name}, whose file ends with {', '.join(SUFFIXES[kind])}")
    if listed is not None and listed.sha256 not in (None, digest):
        raise InvalidInput(
            f"{says} is another file than {listed.name}: its SHA-256 is {digest}, and should be {listed.sha256}"
        )
    if listed is not None and listed.kind == "open_clip":
        assert listed.model is not None
        OpenClipEncoder(listed.model, source, device="cpu")
        return
    encoder = OnnxEncoder(source, **({} if listed is None else listed.settings))
    if beside := [path.name for path in encoder.files if path not in (source, sidecar_of(source))]:
        raise InvalidInput(
            f"{says} keeps weights in {', '.join(beside)}; leave it in its place, and use encoder='onnx:{source}'"
        )


def _copy(source: Path, path: Path, *, link: bool) -> None:
    try:
        with atomic_file(path, fsync=not link) as partial:
            if link:
                partial.symlink_to(source)
            else:
                shutil.copyfile(source, partial)
    except OSError as error:
        raise Unavailable(f"{os.fspath(path)!r} cannot be written: {error.strerror or error}") from None
