"""Kinds of text searches that can find something in a dataset."""

from framedex.encoders import TextEncoder
from framedex.errors import Conflict, Error
from framedex.operations.context import Context, open_media
from framedex.records import EmbeddingConfig, TextSearches
from framedex.search.query_images import encoder_of
from framedex.storage.condition import Condition

_LABELLED = Condition("coalesce(len(labels) > 0, FALSE)", columns=frozenset({"labels"}))
_CAPTIONED = Condition("coalesce(caption <> '', FALSE)", columns=frozenset({"caption"}))


def text_searches(context: Context, dataset_id: str) -> TextSearches:
    """Return the kinds of text searches of a dataset; see :meth:`framedex.Dataset.text_searches`."""
    try:
        media = open_media(context, dataset_id)
    except Conflict:  # nothing to show yet
        return TextSearches(labels=False, captions=False, semantic=False)
    has_captions = media.count(_CAPTIONED) > 0
    is_semantic = _encodes_texts(media.generation.embedding_config)
    return TextSearches(
        labels=media.count(_LABELLED) > 0,
        captions=has_captions,
        semantic=is_semantic or (has_captions and context.settings.text_encoder is not None),
    )


def _encodes_texts(config: EmbeddingConfig | None) -> bool:
    """Return whether the encoder of a dataset is available here, and encodes texts, too."""
    if config is None:
        return False
    try:
        encoder: object = encoder_of(config)
    except Error:
        return False
    return isinstance(encoder, TextEncoder)
