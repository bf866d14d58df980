"""Loading of transformers captioners: import of the engine, construction, and checked weights."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any

from framedex.encoders.torch_vision import import_torchvision
from framedex.enrichers.captioner_files import CaptionerFiles, check_packages
from framedex.errors import Error, InvalidInput, MissingDependency

_LOADING = RLock()
"""Held while the engine's log, which is shared by the whole process, is silent."""
_MAX_NAMES = 3  # maximum number of names in a message
_UNUSED = ".pooler."
"""Part of the names of weights that captions do not depend on. Many folders lack these weights."""


def load_transformers() -> Any:
    """Return the module ``transformers``.

    Raises:
        MissingDependency: transformers, or a package that it needs, is not installed.
    """
    check_packages()
    with _LOADING:
        with suppress(ImportError):  # images are prepared without torchvision
            import_torchvision()
        try:
            import transformers
        except ImportError as error:
            raise MissingDependency(
                f"models that write captions need a package that is not installed ({error}): "
                "pip install 'framedex[caption]'"
            ) from None
        return transformers


def load_model(files: CaptionerFiles, precision: str) -> Any:
    """Return a model for inference, on the CPU, with its weights.

    Args:
        files: the model's files.
        precision: of its weights, as a dtype of PyTorch. ``float16`` becomes ``bfloat16`` if the checkpoint has it.

    Raises:
        InvalidInput: it is not a model of images and texts, or its weights do not fit it or cannot be read.
        MissingDependency: it needs a package that is not installed.
    """
    import torch

    engine = load_transformers()
    with translate_errors(files, "model"):
        config = engine.AutoConfig.from_pretrained(files.folder, local_files_only=True, trust_remote_code=False)
        if precision == "float16" and config.dtype == torch.bfloat16:
            precision = "bfloat16"  # which has a larger range
        if type(config) not in engine.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
            raise InvalidInput(
                f"{os.fspath(files.folder)!r} has a model of the type {files.kind!r}, which makes no texts of images"
            )
        model, loading_info = engine.AutoModelForImageTextToText.from_pretrained(
            files.folder,
            config=config,
            dtype=getattr(torch, precision),
            local_files_only=True,
            trust_remote_code=False,
            weights_only=True,
            output_loading_info=True,
        )
    # Missing weights would be random, and transformers only logs them.
    if missing := sorted(name for name in loading_info["missing_keys"] if _UNUSED not in f".{name}."):
        shown, more = ", ".join(missing[:_MAX_NAMES]), len(missing) - _MAX_NAMES
        raise InvalidInput(
            f"the weights of {os.fspath(files.folder)!r} do not fit its configuration: they lack {shown}"
            f"{f' and {more} more' if more > 0 else ''}"
        )
    return model.eval().requires_grad_(False)


def load_part(files: CaptionerFiles, kind: str) -> Any:
    """Return the tokenizer or the image processor of a model.

    Args:
        files: the model's files.
        kind: ``AutoTokenizer``, ``AutoImageProcessor``, or ``AutoProcessor`` for both.

    Raises:
        InvalidInput: the files do not contain it, or are malformed.
        MissingDependency: it needs a package that is not installed.
    """
    engine = load_transformers()
    # Pillow's filters average when they shrink, and do not depend on whether torchvision is installed.
    more = {"backend": "pil"} if kind == "AutoImageProcessor" else {}
    with translate_errors(files, kind.removeprefix("Auto").lower()):
        return getattr(engine, kind).from_pretrained(
            files.folder, local_files_only=True, trust_remote_code=False, **more
        )


@contextmanager
def translate_errors(files: CaptionerFiles, what: str) -> Iterator[None]:
    """Silence the engine's log, and raise its errors as our own, while files are read."""
    from transformers.utils import logging

    with _LOADING:
        verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity(logging.CRITICAL)
        logging.disable_progress_bar()
        try:
            yield
        except Error:
            raise
        except ImportError as error:
            raise MissingDependency(
                f"the {what} of {os.fspath(files.folder)!r} needs a package that is not installed: {_reason(error)}"
            ) from None
        except Exception as error:  # readers raise errors of many types on damaged files
            raise InvalidInput(
                f"the {what} of {os.fspath(files.folder)!r} cannot be used: {type(error).__name__}: {_reason(error)}"
            ) from None
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
