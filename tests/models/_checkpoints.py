"""Tiny random models of the transformers library, built offline and saved as checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

SIDE = 32
WORDS = ["<pad>", "<s>", "</s>", "<unk>", "a", "photo", "of", "person", "nurse", "chef", "car", "."]


def _seeded():
    import torch

    torch.manual_seed(0)


def _tokenizer(folder: Path, length: int = 12) -> None:
    """Write a tokenizer of a few words that are parted at blanks."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pad, start, end, unknown = "<pad>", "<s>", "</s>", "<unk>"
    vocabulary = {word: k for k, word in enumerate(WORDS)}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]
    )
    made.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}",
        special_tokens=[(start, vocabulary[start]), (end, vocabulary[end])],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token=pad, unk_token=unknown, bos_token=start, eos_token=end,
        cls_token=start, sep_token=end, model_max_length=length,
    ).save_pretrained(folder)  # fmt: skip


def classifier(folder: Path, names: tuple[str, ...] = ("nurse", "chef", "other")) -> Path:
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    _seeded()
    config = ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                       intermediate_size=32, image_size=SIDE, patch_size=8, num_labels=len(names),
                       id2label=dict(enumerate(names)))  # fmt: skip
    ViTForImageClassification(config).save_pretrained(folder)
    ViTImageProcessor(size={"height": SIDE, "width": SIDE}).save_pretrained(folder)
    return folder


def age_classes(folder: Path) -> Path:
    return classifier(folder, ("0-9", "10-19", "30"))


def age(folder: Path) -> Path:
    return classifier(folder, ("age",))


def enlarger(folder: Path) -> Path:
    from transformers import Swin2SRConfig, Swin2SRForImageSuperResolution, Swin2SRImageProcessor

    _seeded()
    config = Swin2SRConfig(image_size=16, patch_size=1, embed_dim=8, depths=[1], num_heads=[2],
                           window_size=4, upscale=2, upsampler="pixelshuffle")  # fmt: skip
    Swin2SRForImageSuperResolution(config).save_pretrained(folder)
    Swin2SRImageProcessor().save_pretrained(folder)
    return folder


def embedder(folder: Path) -> Path:
    from transformers import BitImageProcessor, Dinov2Config, Dinov2Model

    _seeded()
    config = Dinov2Config(hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                          image_size=SIDE, patch_size=8)  # fmt: skip
    Dinov2Model(config).save_pretrained(folder)
    size = {"height": SIDE, "width": SIDE}
    BitImageProcessor(size={"shortest_edge": SIDE}, crop_size=size).save_pretrained(folder)
    return folder


def _towers() -> tuple[dict, dict]:
    text = {"vocab_size": len(WORDS), "hidden_size": 16, "num_hidden_layers": 1,
            "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 12,
            "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0}  # fmt: skip
    vision = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
              "intermediate_size": 32, "image_size": SIDE, "patch_size": 8}  # fmt: skip
    return text, vision


def clip(folder: Path) -> Path:
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    _seeded()
    text, vision = _towers()
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    CLIPModel(config).save_pretrained(folder)
    CLIPImageProcessor(
        size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
    ).save_pretrained(folder)
    _tokenizer(folder)
    _processor(folder, "CLIPProcessor")
    return folder


def siglip(folder: Path) -> Path:
    from transformers import SiglipConfig, SiglipImageProcessor, SiglipModel

    _seeded()
    text, vision = _towers()
    SiglipModel(SiglipConfig(text_config=text, vision_config=vision)).save_pretrained(folder)
    SiglipImageProcessor(size={"height": SIDE, "width": SIDE}).save_pretrained(folder)
    _tokenizer(folder)
    _processor(folder, "SiglipProcessor")
    return folder


def owl(folder: Path) -> Path:
    from transformers import Owlv2Config, Owlv2ForObjectDetection, Owlv2ImageProcessor

    _seeded()
    text, vision = _towers()
    config = Owlv2Config(text_config=text, vision_config=vision, projection_dim=16)
    Owlv2ForObjectDetection(config).save_pretrained(folder)
    Owlv2ImageProcessor(size={"height": SIDE, "width": SIDE}).save_pretrained(folder)
    _tokenizer(folder)
    _processor(folder, "Owlv2Processor")
    return folder


def owl_vit(folder: Path) -> Path:
    from transformers import OwlViTConfig, OwlViTForObjectDetection, OwlViTImageProcessor

    _seeded()
    text, vision = _towers()
    config = OwlViTConfig(text_config=text, vision_config=vision, projection_dim=16)
    OwlViTForObjectDetection(config).save_pretrained(folder)
    size = {"height": SIDE, "width": SIDE}
    OwlViTImageProcessor(size=size, crop_size=size).save_pretrained(folder)
    _tokenizer(folder)
    _processor(folder, "OwlViTProcessor")
    return folder


def detr(folder: Path) -> Path:
    from transformers import DetrConfig, DetrForObjectDetection, DetrImageProcessor, ResNetConfig

    _seeded()
    backbone = ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1],
                            out_features=["stage4"])  # fmt: skip
    config = DetrConfig(backbone_config=backbone, use_timm_backbone=False, d_model=16,
                        encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
                        num_queries=5, num_labels=3,
                        id2label={0: "person", 1: "car", 2: "other"})  # fmt: skip
    DetrForObjectDetection(config).save_pretrained(folder)
    DetrImageProcessor(size={"shortest_edge": 64, "longest_edge": 96}).save_pretrained(folder)
    return folder


def mask2former(folder: Path) -> Path:
    from transformers import (
        Mask2FormerConfig,
        Mask2FormerForUniversalSegmentation,
        Mask2FormerImageProcessor,
        SwinConfig,
    )

    _seeded()
    swin = SwinConfig(image_size=64, patch_size=2, embed_dim=8, depths=[1, 1, 1, 1],
                      num_heads=[1, 1, 1, 1], window_size=4,
                      out_features=["stage1", "stage2", "stage3", "stage4"])  # fmt: skip
    config = Mask2FormerConfig(
        backbone_config=swin, feature_size=32, mask_feature_size=32, hidden_dim=32,
        encoder_feedforward_dim=32, encoder_layers=1, decoder_layers=2, num_attention_heads=2,
        dim_feedforward=32, num_queries=5, num_labels=2, id2label={0: "person", 1: "car"},
    )  # fmt: skip
    Mask2FormerForUniversalSegmentation(config).save_pretrained(folder)
    Mask2FormerImageProcessor(size={"height": 64, "width": 64}).save_pretrained(folder)
    return folder


def _resnet(**told):
    from transformers import ResNetConfig

    return ResNetConfig(embedding_size=8, hidden_sizes=[8] * 4, depths=[1] * 4, **told)


_DETECTOR = {"d_model": 32, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
             "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "num_queries": 5}  # fmt: skip
_PEOPLE = {"num_labels": 3, "id2label": {0: "person", 1: "car", 2: "other"}}
_STAGES = ["stage2", "stage3", "stage4"]


def maskformer(folder: Path) -> Path:
    from transformers import (
        DetrConfig,
        MaskFormerConfig,
        MaskFormerForInstanceSegmentation,
        MaskFormerImageProcessor,
        SwinConfig,
    )

    _seeded()
    swin = SwinConfig(image_size=64, patch_size=2, embed_dim=8, depths=[1] * 4, num_heads=[1] * 4,
                      window_size=4, out_features=["stage1", *_STAGES])  # fmt: skip
    config = MaskFormerConfig(
        backbone_config=swin, fpn_feature_size=32, mask_feature_size=32, num_labels=2,
        decoder_config=DetrConfig(encoder_layers=1, decoder_layers=2, **_DETECTOR),
        id2label={0: "person", 1: "car"},
    )  # fmt: skip
    MaskFormerForInstanceSegmentation(config).save_pretrained(folder)
    MaskFormerImageProcessor(size={"height": 64, "width": 64}).save_pretrained(folder)
    return folder


def deformable_detr(folder: Path) -> Path:
    from transformers import (
        DeformableDetrConfig,
        DeformableDetrForObjectDetection,
        DeformableDetrImageProcessor,
    )

    _seeded()
    config = DeformableDetrConfig(
        backbone_config=_resnet(out_features=_STAGES), use_timm_backbone=False, encoder_layers=1,
        decoder_layers=2, num_feature_levels=3, **_DETECTOR, **_PEOPLE,
    )  # fmt: skip
    DeformableDetrForObjectDetection(config).save_pretrained(folder)
    size = {"shortest_edge": 64, "longest_edge": 96}
    DeformableDetrImageProcessor(size=size).save_pretrained(folder)
    return folder


def rt_detr(folder: Path) -> Path:
    from transformers import (
        RTDetrConfig,
        RTDetrForObjectDetection,
        RTDetrImageProcessor,
        RTDetrResNetConfig,
    )

    _seeded()
    backbone = RTDetrResNetConfig(embedding_size=8, hidden_sizes=[8] * 4, depths=[1] * 4,
                                  layer_type="basic", out_features=_STAGES)  # fmt: skip
    config = RTDetrConfig(
        backbone_config=backbone, encoder_hidden_dim=32, encoder_in_channels=[8] * 3,
        decoder_in_channels=[32] * 3, encoder_layers=1, decoder_layers=1, num_feature_levels=3,
        num_denoising=0, **_DETECTOR, **_PEOPLE,
    )  # fmt: skip
    RTDetrForObjectDetection(config).save_pretrained(folder)
    RTDetrImageProcessor(size={"height": 64, "width": 64}).save_pretrained(folder)
    return folder


def grounding_dino(folder: Path) -> Path:
    from transformers import (
        BertConfig,
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessor,
        SwinConfig,
    )

    _seeded()
    swin = SwinConfig(image_size=64, patch_size=2, embed_dim=8, depths=[1] * 4, num_heads=[1] * 4,
                      window_size=4, out_features=_STAGES)  # fmt: skip
    text = BertConfig(vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1,
                      num_attention_heads=2, intermediate_size=32,
                      max_position_embeddings=12)  # fmt: skip
    config = GroundingDinoConfig(
        backbone_config=swin, text_config=text, encoder_layers=2, decoder_layers=2,
        num_feature_levels=3, max_text_len=12, **_DETECTOR,
    )  # fmt: skip
    GroundingDinoForObjectDetection(config).save_pretrained(folder)
    size = {"shortest_edge": 64, "longest_edge": 96}
    GroundingDinoImageProcessor(size=size).save_pretrained(folder)
    _tokenizer(folder)
    _processor(folder, "GroundingDinoProcessor")
    return folder


def vit_pose(folder: Path) -> Path:
    from transformers import (
        VitPoseBackboneConfig,
        VitPoseConfig,
        VitPoseForPoseEstimation,
        VitPoseImageProcessor,
    )

    _seeded()
    backbone = VitPoseBackboneConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=[64, 48],
        patch_size=[16, 16], out_features=["stage1"],
    )  # fmt: skip
    VitPoseForPoseEstimation(
        VitPoseConfig(backbone_config=backbone, num_labels=17, use_simple_decoder=True)
    ).save_pretrained(folder)
    VitPoseImageProcessor(size={"height": 64, "width": 48}).save_pretrained(folder)
    return folder


def _processor(folder: Path, name: str) -> None:
    path = folder / "preprocessor_config.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"processor_class": name}))


TINY = "tiny-test"


def tiny_clip(folder: Path) -> Path:
    """Write a tiny CLIP of open_clip's, by the architecture's name ``TINY``; give its weights."""
    import open_clip
    from safetensors.torch import save_file

    tower = {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 8}
    text = {"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1}
    told = {"embed_dim": 16, "vision_cfg": tower, "text_cfg": text}
    (folder / f"{TINY}.json").write_text(json.dumps(told))
    open_clip.add_model_config(folder / f"{TINY}.json")
    _seeded()
    save_file(open_clip.create_model(TINY).state_dict(), folder / "clip.safetensors")
    return folder / "clip.safetensors"
