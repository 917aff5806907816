"""Tiny random models of the transformers library that answer in words."""

from __future__ import annotations

from pathlib import Path

from tests.models._checkpoints import SIDE, WORDS, _processor, _seeded, _tokenizer, _towers

_CHAT = (
    "{% for said in messages %}{% for part in said['content'] %}"
    "{% if part['type'] == 'image' %}<image> {% else %}{{ part['text'] }} {% endif %}"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %}.{% endif %}"
)


def vilt(folder: Path) -> Path:
    from transformers import ViltConfig, ViltForQuestionAnswering, ViltImageProcessor

    _seeded()
    config = ViltConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=12, image_size=SIDE, patch_size=8,
        num_labels=3, id2label={0: "yes", 1: "no", 2: "nurse"},
    )  # fmt: skip
    ViltForQuestionAnswering(config).save_pretrained(folder)
    ViltImageProcessor(size={"shortest_edge": SIDE}).save_pretrained(folder)
    _tokenizer(folder)
    _processor(folder, "ViltProcessor")
    return folder


def blip(folder: Path, kind: str = "BlipForConditionalGeneration") -> Path:
    import transformers

    _seeded()
    text, vision = _towers()
    text |= {"encoder_hidden_size": 16, "max_position_embeddings": 48, "sep_token_id": 2}
    config = transformers.BlipConfig(text_config=text, vision_config=vision, projection_dim=16)
    getattr(transformers, kind)(config).save_pretrained(folder)
    size = {"height": SIDE, "width": SIDE}
    transformers.BlipImageProcessor(size=size).save_pretrained(folder)
    _tokenizer(folder)
    _processor(folder, "BlipProcessor")
    return folder


def blip_vqa(folder: Path) -> Path:
    return blip(folder, "BlipForQuestionAnswering")


def blip2(folder: Path) -> Path:
    from transformers import (
        AutoTokenizer,
        Blip2Config,
        Blip2ForConditionalGeneration,
        Blip2Processor,
        BlipImageProcessor,
    )

    _seeded()
    _, vision = _towers()
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    size = len(WORDS) + 1  # one more: where the picture stands
    asking = small | {"intermediate_size": 32, "encoder_hidden_size": 16, "vocab_size": size}
    text = small | {"model_type": "opt", "vocab_size": size, "ffn_dim": 32, "bos_token_id": 1,
                    "max_position_embeddings": 64, "word_embed_proj_dim": 16, "eos_token_id": 2,
                    "pad_token_id": 0}  # fmt: skip
    config = Blip2Config(vision_config=vision, qformer_config=asking, text_config=text,
                         num_query_tokens=4, image_token_index=len(WORDS))  # fmt: skip
    Blip2ForConditionalGeneration(config).save_pretrained(folder)
    _tokenizer(folder, length=40)
    words, pixels = AutoTokenizer.from_pretrained(folder), {"height": SIDE, "width": SIDE}
    Blip2Processor(BlipImageProcessor(size=pixels), words, num_query_tokens=4).save_pretrained(
        folder
    )
    return folder


def _long_tokenizer(extra: list[str], **told):
    """Make a tokenizer of words, places and marks; what it decodes has no blanks."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: k for k, word in enumerate(WORDS)}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))  # noqa: S106
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.decoder = decoders.Fuse()
    marks = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    found = PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=4096, **marks, **told)
    found.add_tokens(extra)
    return found


def florence2(folder: Path) -> Path:
    from transformers import (
        CLIPImageProcessor,
        Florence2Config,
        Florence2ForConditionalGeneration,
        Florence2Processor,
    )

    _seeded()
    places = [f"<loc_{k}>" for k in range(1000)]
    words = _long_tokenizer(["<image>", *places], extra_special_tokens={"image_token": "<image>"})
    vision = {"depths": [1, 1], "embed_dim": [8, 16], "num_heads": [1, 2], "num_groups": [1, 2],
              "window_size": 2, "patch_size": [4, 3], "patch_stride": [4, 2],
              "patch_padding": [1, 1], "patch_prenorm": [False, True], "projection_dim": 16,
              "max_position_embeddings": 8, "max_temporal_embeddings": 2}  # fmt: skip
    text = {"model_type": "bart", "vocab_size": len(words), "d_model": 16, "encoder_layers": 1,
            "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 256,
            "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 2,
            "forced_eos_token_id": 2}  # fmt: skip
    config = Florence2Config(text_config=text, vision_config=vision, is_encoder_decoder=True,
                             image_token_id=words.convert_tokens_to_ids("<image>"))  # fmt: skip
    Florence2ForConditionalGeneration(config).save_pretrained(folder)
    size = {"height": SIDE, "width": SIDE}
    pixels = CLIPImageProcessor(size=size, crop_size=size, do_center_crop=False)
    pixels.image_seq_length = 17
    Florence2Processor(
        pixels, words, post_processor_config={"phrase_grounding": {}}
    ).save_pretrained(folder)
    return folder


def kosmos2(folder: Path) -> Path:
    from transformers import (
        CLIPImageProcessor,
        Kosmos2Config,
        Kosmos2ForConditionalGeneration,
        Kosmos2Processor,
    )

    _seeded()
    size = {"height": SIDE, "width": SIDE}
    pixels = CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=size)
    processor = Kosmos2Processor(pixels, _long_tokenizer([]))
    _, vision = _towers()
    text = {"vocab_size": len(processor.tokenizer) + 70, "embed_dim": 16, "layers": 1,
            "ffn_dim": 32, "attention_heads": 2, "max_position_embeddings": 256,
            "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}  # fmt: skip
    Kosmos2ForConditionalGeneration(
        Kosmos2Config(text_config=text, vision_config=vision, latent_query_num=64)
    ).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def llava(folder: Path) -> Path:
    """Write a model that is talked to: a picture and a text by its own template of a chat."""
    from transformers import (
        CLIPImageProcessor,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    _seeded()
    words = _long_tokenizer(["<image>"], extra_special_tokens={"image_token": "<image>"})
    _, vision = _towers()
    text = {"model_type": "llama", "vocab_size": len(words), "hidden_size": 16,
            "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
            "intermediate_size": 32, "max_position_embeddings": 256, "bos_token_id": 1,
            "eos_token_id": 2, "pad_token_id": 0}  # fmt: skip
    config = LlavaConfig(
        vision_config={"model_type": "clip_vision_model", **vision}, text_config=text,
        image_token_index=words.convert_tokens_to_ids("<image>"), vision_feature_layer=-1,
    )  # fmt: skip
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    size = {"height": SIDE, "width": SIDE}
    pixels = CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=size)
    LlavaProcessor(
        pixels,
        words,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=_CHAT,
    ).save_pretrained(folder)
    return folder
