"""The small trained captioner, and smaller ones with random weights."""

from pathlib import Path
from typing import Any

from framedex.enrichers.captioner_loading import load_transformers
from tests.extras import need

need("caption", "torch", "transformers")

TRAINED = Path(__file__).parent.parent / "checkpoints" / "shapes-captioner"
"""See tests/make_captioner.py."""
_SEEING: dict[str, int] = {
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32,
    "patch_size": 16,
}  # fmt: skip
_WRITING: dict[str, int] = {
    "vocab_size": 12, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "max_position_embeddings": 40, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
_WORDS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "<image>", "a", "red", "dog", "user", "say", "what", "is")
_CHAT = (
    "{% for said in messages %}{{ said['role'] }} {% for part in said['content'] %}"
    "{{ '<image>' if part['type'] == 'image' else part['text'] }} {% endfor %}{% endfor %}"
)


def write_tiny(folder: Path, kind: str) -> Path:
    """Write a model with random weights that says something, and return its folder.

    Args:
        folder: to be made.
        kind: ``blip``, ``git`` or ``llava``; the last one has a chat template.
    """
    import torch

    engine = load_transformers()
    square = {"height": 32, "width": 32}
    cropped = engine.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=square)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        model = _model(engine, kind)
    model.save_pretrained(folder)
    if kind == "llava":
        engine.LlavaProcessor(
            cropped, _tokenizer(engine, extra_special_tokens={"image_token": "<image>"}), patch_size=16,
            vision_feature_select_strategy="default", chat_template=_CHAT, num_additional_image_tokens=1,
        ).save_pretrained(folder)  # fmt: skip
        return folder
    _tokenizer(engine).save_pretrained(folder)
    (cropped if kind == "git" else engine.BlipImageProcessorPil(size=square)).save_pretrained(folder)
    return folder


def _model(engine: Any, kind: str) -> Any:
    if kind == "blip":
        writing = {**_WRITING, "encoder_hidden_size": 16, "sep_token_id": 2}
        return engine.BlipForConditionalGeneration(
            engine.BlipConfig(text_config=writing, vision_config=_SEEING, image_text_hidden_size=16)
        )
    if kind == "git":
        return engine.GitForCausalLM(engine.GitConfig(vision_config=_SEEING, **_WRITING))
    seeing, writing = engine.CLIPVisionConfig(**_SEEING), engine.LlamaConfig(**_WRITING)
    return engine.LlavaForConditionalGeneration(
        engine.LlavaConfig(vision_config=seeing, text_config=writing, image_token_index=4)
    )


def _tokenizer(engine: Any, **more: Any) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(_WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return engine.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]", **more
    )
