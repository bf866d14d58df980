"""Files of requests on their way to the library: parts of a form, written to the disk of the workspace.

A form may have thousands of files of any size, so nothing of a file is kept in memory, and files are opened one by one.
"""

import logging
import re
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, unquote

import anyio
from fastapi import Request
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from framedex.core.counts import counted
from framedex.core.suffixes import ARCHIVE_SUFFIXES, is_video
from framedex.errors import Error, WorkspaceError
from framedex.service.actions import MAX_JSON_BYTES
from framedex.service.errors import Refusal
from framedex.settings import Settings

logging.getLogger("python_multipart").addHandler(logging.NullHandler())  # it warns of each form that is refused

ARCHIVE = "archive"
"""The field with an archive, whose size only the limit of the request bounds."""
_FOLDER = "service-uploads"
_BLOCK = 2**20
_MAX_HEADER = 2**16  # bytes; the name of a file may be long, as its last part counts
_MAX_FIELDS = 50
_MAX_FIELD = 2**16  # bytes
_EXTENDED = re.compile(r"""filename\*\s*=\s*"?(?:utf-8|iso-8859-1)?'[^']*'([^;"\s]*)""", re.IGNORECASE)
"""The name of a file in the form of RFC 5987, which some clients send for names beyond ASCII."""
_CUT = "The body ends too early"


class StagedFile:
    """A file of a form, opened when it is first read and closed at its end.

    Attributes:
        name: as the client sent it.
        path: where the content is.
        size: in bytes.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path, self.size = name, path, 0
        self._file: BinaryIO | None = None

    def read(self, size: int) -> bytes:
        """Return up to *size* bytes; none at the end."""
        if self._file is None:
            self._file = self.path.open("rb")
        data = self._file.read(size)
        if not data:
            self.close()
        return data

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._file is not None:
            self._file.close()
            self._file = None


@dataclass
class StagedForm:
    """A form whose files are on the disk.

    Attributes:
        fields: texts by the name of the field; the last one counts.
        files: files by the name of the field.
    """

    fields: dict[str, str] = field(default_factory=dict)
    files: dict[str, list[StagedFile]] = field(default_factory=dict)


def remove_staged(workspace: Path) -> None:
    """Remove what a killed server left, before the first request."""
    shutil.rmtree(workspace / _FOLDER, ignore_errors=True)


@asynccontextmanager
async def staged_form(
    request: Request, workspace: Path, settings: Settings, *, files: Mapping[str, Callable[[str], None]]
) -> AsyncIterator[StagedForm]:
    """Yield the form of a request; its files are removed at the end of the block.

    A file that cannot be used refuses the request after the rest of the body was read, as many clients do not expect an
    answer before.

    Args:
        request: whose body is multipart.
        workspace: the folder of the workspace.
        settings: limits.
        files: by the name of each field with files, a check of the name of a file.

    Raises:
        Refusal: the body is no form, a file or a field is larger than the limits, or files have another field's name.
        InvalidInput: a check failed.
        WorkspaceError: the disk cannot be written.
    """
    media_type, options = parse_options_header(request.headers.get("content-type", ""))
    if media_type == b"application/x-www-form-urlencoded":
        yield StagedForm(await _short_form(request))
        return
    if not media_type:  # no body
        yield StagedForm()
        return
    boundary = options.get(b"boundary")
    if media_type != b"multipart/form-data" or not boundary:
        raise Refusal(422, "The body must be a form: multipart/form-data")
    form = StagedForm()
    parser = _Parser(form, settings, files, boundary)
    await anyio.to_thread.run_sync(parser.open, workspace)
    try:
        await _feed(request, parser)
        yield form
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(parser.close)


@asynccontextmanager
async def staged_body(
    request: Request, workspace: Path, settings: Settings, *, field_name: str
) -> AsyncIterator[Path | None]:
    """Yield the file that has the body of a request, or the only file of its form; None for a form without one.

    Args:
        request: whose body is the file, or a form.
        workspace: the folder of the workspace.
        settings: limits.
        field_name: the field of the form with the file.

    Raises:
        Refusal: the form cannot be read, or has a file in another field.
        WorkspaceError: the disk cannot be written.
    """
    if parse_options_header(request.headers.get("content-type", ""))[0] == b"multipart/form-data":
        checks: Mapping[str, Callable[[str], None]] = {field_name: lambda _name: None}
        async with staged_form(request, workspace, settings, files=checks) as form:
            files = form.files.get(field_name, [])
            yield files[0].path if len(files) == 1 else None
        return
    folder = await anyio.to_thread.run_sync(_new_folder, workspace)
    try:
        async with await anyio.open_file(folder / "body", "wb") as file:
            try:
                async for chunk in request.stream():
                    await file.write(chunk)
            except ClientDisconnect:
                raise Refusal(400, _CUT) from None
            except OSError as error:
                raise WorkspaceError(f"cannot write the body of a request: {error.strerror}") from error
        yield folder / "body"
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(shutil.rmtree, folder, True)


async def _short_form(request: Request) -> dict[str, str]:
    """Return the fields of a form that can have no files."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_JSON_BYTES:
            raise HTTPException(413)
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        raise Refusal(400, f"A form has up to {_MAX_FIELDS} fields beside files") from None


async def _feed(request: Request, parser: "_Parser") -> None:
    block = bytearray()
    try:
        async for chunk in request.stream():
            block += chunk
            if len(block) >= _BLOCK:
                await anyio.to_thread.run_sync(parser.write, bytes(block))
                block.clear()
    except ClientDisconnect:
        raise Refusal(400, _CUT) from None
    await anyio.to_thread.run_sync(parser.finish, bytes(block))


def _new_folder(workspace: Path) -> Path:
    try:
        (workspace / _FOLDER).mkdir(mode=0o700, exist_ok=True)
        return Path(mkdtemp(dir=workspace / _FOLDER))
    except OSError as error:
        raise WorkspaceError(f"cannot receive files in {workspace}: {error.strerror}") from error


class _Parser:
    """A parser of a form, which writes the contents of files to a folder.

    Args:
        form: receives the fields and files.
        settings: limits.
        files: checks of names, by the name of the field.
        boundary: between the parts.
    """

    def __init__(
        self,
        form: StagedForm,
        settings: Settings,
        files: Mapping[str, Callable[[str], None]],
        boundary: bytes,
    ) -> None:
        self._form, self._folder, self._settings, self._checks = form, Path(), settings, files
        self._header, self._value, self._disposition = b"", b"", b""
        self._name, self._text = "", bytearray()
        self._file: StagedFile | None = None
        self._target: BinaryIO | None = None
        self._n_files = self._n_fields = 0
        self._error: Exception | None = None
        self._is_complete = False
        callbacks: Any = {
            name: getattr(self, f"_{name}")
            for name in (
                "on_part_begin", "on_part_data", "on_part_end", "on_header_field", "on_header_value", "on_header_end",
                "on_headers_finished", "on_end",
            )
        }  # fmt: skip
        try:
            self._parser = MultipartParser(boundary, callbacks, max_header_size=_MAX_HEADER)
        except FormParserError:
            raise Refusal(422, "The boundary of the form cannot be used") from None

    def open(self, workspace: Path) -> None:
        """Make the folder of the files; :meth:`close` removes it."""
        self._folder = _new_folder(workspace)

    def write(self, data: bytes) -> None:
        """Parse a part of the body."""
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise Refusal(400, f"The form cannot be read: {error}") from None
        except OSError as error:
            raise WorkspaceError(f"cannot write an uploaded file: {error.strerror}") from error

    def finish(self, data: bytes) -> None:
        """Parse the last part of the body, and check that the form is complete and can be used."""
        if data:
            self.write(data)
        if not self._is_complete:
            raise Refusal(400, _CUT)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Close and remove the files."""
        if self._target is not None:
            self._target.close()
        for files in self._form.files.values():
            for file in files:
                file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _on_part_begin(self) -> None:
        self._header, self._value, self._disposition = b"", b"", b""
        self._text.clear()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header, self._value = b"", b""

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"name" not in options:
            raise Refusal(400, "The form cannot be read: a part has no name")
        self._name, self._file = _decoded(options[b"name"]), None
        extended = _EXTENDED.search(self._disposition.decode("latin-1"))
        if extended is not None:
            self._begin_file(unquote(extended[1]))
        elif b"filename" in options:
            self._begin_file(_decoded(options[b"filename"]))
        else:
            self._n_fields += 1
            if self._n_fields > _MAX_FIELDS:
                raise Refusal(400, f"A form has up to {_MAX_FIELDS} fields beside files")

    def _begin_file(self, name: str) -> None:
        suffix = next((each for each in ARCHIVE_SUFFIXES if name.lower().endswith(each)), "")  # which the library reads
        self._file = StagedFile(name, self._folder / f"{self._n_files}{suffix}")
        if not name:  # a form of a browser without a choice; a content is refused at its end
            return
        self._n_files += 1
        limit = self._settings.max_upload_files
        if self._name not in self._checks:
            self._refuse(Refusal(422, f"Field {next(iter(self._checks))!r} is required"))
        elif self._n_files > limit:
            self._refuse(Refusal(400, f"A request has up to {counted(limit, 'files')}"))
        elif self._error is None:
            try:
                self._checks[self._name](name)
            except Error as error:  # raised once the body was read
                self._refuse(error)
            else:
                self._target = self._file.path.open("wb")

    def _refuse(self, error: Exception) -> None:
        self._error = self._error or error

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is None:
            self._text += data[start:end]
            if len(self._text) > _MAX_FIELD:
                raise Refusal(413, f"The field {self._name!r} is too large")
            return
        self._file.size += end - start
        self._check_size(self._file)
        if self._target is not None and self._error is None:
            self._target.write(memoryview(data)[start:end])

    def _check_size(self, file: StagedFile) -> None:
        settings = self._settings
        limit = settings.max_video_bytes if is_video(file.name) else settings.max_file_bytes
        if file.size > limit and self._name != ARCHIVE:
            raise Refusal(
                413, f"The file {last_part(file.name)[:100]!r} is too large: it may have {counted(limit, 'bytes')}"
            )

    def _on_part_end(self) -> None:
        if self._file is None:
            self._form.fields[self._name] = self._text.decode("utf-8", "replace")
            return
        if not self._file.name:
            if self._file.size:
                self._refuse(Refusal(400, "A file needs a name"))
            return
        if self._target is not None:
            self._target.close()
            self._target = None
        if self._error is None:  # a form that is refused may have millions of parts
            self._form.files.setdefault(self._name, []).append(self._file)

    def _on_end(self) -> None:
        self._is_complete = True


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def last_part(name: str) -> str:
    """Return the last part of the name that a client gave a file."""
    return name.replace("\\", "/").rpartition("/")[2]
