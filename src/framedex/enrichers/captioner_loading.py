"""Reading captioners of transformers: the engine is imported, the model built, its weights loaded and checked."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any

from framedex.encoders.torch_vision import import_torchvision
from framedex.enrichers.captioner_files import CaptionerFiles, check_packages
from framedex.errors import Error, InvalidInput, MissingDependency

_LOADING = RLock()
"""Held while the engine's own log, which is one for the whole process, is silent."""
_SHOWN = 3  # names of weights in a message
_UNUSED = ".pooler."
"""Part of the name of weights that captions do not depend on, and that many folders lack therefore."""


def load_engine() -> Any:
    """Return the module ``transformers``.

    Raises:
        MissingDependency: it is not installed, or what it needs is not.
    """
    check_packages()
    with _LOADING:
        with suppress(ImportError):  # pictures are prepared without it
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
        files: where it is.
        precision: of its weights, as PyTorch names it; ``float16`` gives ``bfloat16`` where the model was made so.

    Raises:
        InvalidInput: it is no model of pictures and texts, or its weights do not fit it or cannot be read.
        MissingDependency: it needs a package that is not installed.
    """
    import torch

    engine = load_engine()
    with reading(files, "model"):
        config = engine.AutoConfig.from_pretrained(files.folder, local_files_only=True, trust_remote_code=False)
        if precision == "float16" and config.dtype == torch.bfloat16:
            precision = "bfloat16"  # which has a larger range
        if type(config) not in engine.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
            raise InvalidInput(
                f"{os.fspath(files.folder)!r} has a model of the type {files.kind!r}, which makes no texts of pictures"
            )
        model, told = engine.AutoModelForImageTextToText.from_pretrained(
            files.folder,
            config=config,
            dtype=getattr(torch, precision),
            local_files_only=True,
            trust_remote_code=False,
            weights_only=True,
            output_loading_info=True,
        )
    # What is missing would be random, and transformers only logs it.
    if missing := sorted(name for name in told["missing_keys"] if _UNUSED not in f".{name}."):
        shown, more = ", ".join(missing[:_SHOWN]), len(missing) - _SHOWN
        raise InvalidInput(
            f"the weights of {os.fspath(files.folder)!r} do not fit its configuration: they lack {shown}"
            f"{f' and {more} more' if more > 0 else ''}"
        )
    return model.eval().requires_grad_(False)


def load_part(files: CaptionerFiles, kind: str) -> Any:
    """Return what stands before a model and behind it.

    Args:
        files: where it is.
        kind: ``AutoTokenizer``, ``AutoImageProcessor``, or ``AutoProcessor`` for both.

    Raises:
        InvalidInput: it cannot be made of the files.
        MissingDependency: it needs a package that is not installed.
    """
    engine = load_engine()
    # Pillow's filters average over what is left out, and are the same whether torchvision is installed or not.
    more = {"backend": "pil"} if kind == "AutoImageProcessor" else {}
    with reading(files, kind.removeprefix("Auto").lower()):
        return getattr(engine, kind).from_pretrained(
            files.folder, local_files_only=True, trust_remote_code=False, **more
        )


@contextmanager
def reading(files: CaptionerFiles, what: str) -> Iterator[None]:
    """Keep the engine silent, and let its errors be ours, while something is read."""
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
        except Exception as error:  # readers raise errors of every kind on damaged files
            raise InvalidInput(
                f"the {what} of {os.fspath(files.folder)!r} cannot be used: {type(error).__name__}: {_reason(error)}"
            ) from None
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
