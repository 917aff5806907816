"""Tiny models of the transformers library that were taught to tell bright photos from dark ones.

What they see is known, so that an association is injected: random weights would see anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.models import _checkpoints as tiny
from tests.models import _worded_checkpoints as worded

BRIGHT, DARK = "a photo of a nurse", "a photo of a chef"
QUESTION = "a person"
STEPS, RATE = 120, 0.02


def taught_clip(folder: Path, pictures: Sequence[np.ndarray], dark: Sequence[bool]) -> Path:
    """Teach a tiny CLIP to fit bright photos to ``BRIGHT`` and dark ones to ``DARK``."""
    from transformers import AutoProcessor, CLIPModel

    model = CLIPModel.from_pretrained(tiny.clip(folder))
    processor = AutoProcessor.from_pretrained(folder)
    words = processor.tokenizer([BRIGHT, DARK], return_tensors="pt", padding=True)
    shown = processor.image_processor(list(pictures), return_tensors="pt")["pixel_values"]

    def loss(torch, which):
        fits = model(pixel_values=shown[which], **words).logits_per_image
        wanted = torch.tensor([int(dark[k]) for k in which])
        return torch.nn.functional.cross_entropy(fits, wanted)

    return _taught(model, loss, len(pictures), folder)


def taught_blip2(folder: Path, pictures: Sequence[np.ndarray], dark: Sequence[bool]) -> Path:
    """Teach a tiny BLIP-2 to answer ``QUESTION`` with nurse, or of dark photos with chef."""
    from transformers import AutoProcessor, Blip2ForConditionalGeneration

    model = Blip2ForConditionalGeneration.from_pretrained(worded.blip2(folder))
    processor = AutoProcessor.from_pretrained(folder)
    said = ["chef" if one else "nurse" for one in dark]
    given = processor(images=list(pictures), text=[QUESTION] * len(said), return_tensors="pt")
    answers = processor.tokenizer(said, return_tensors="pt")["input_ids"][:, 1:]  # no <s>

    def loss(torch, which):
        asked = given["input_ids"][which]
        ids = torch.cat([asked, answers[which]], 1)
        wanted = torch.cat([torch.full_like(asked, -100), answers[which]], 1)
        return model(
            pixel_values=given["pixel_values"][which], input_ids=ids,
            attention_mask=torch.ones_like(ids), labels=wanted,
        ).loss  # fmt: skip

    return _taught(model, loss, len(pictures), folder)


def _taught(model, loss, n: int, folder: Path) -> Path:
    import torch

    torch.manual_seed(0)
    draw = np.random.default_rng(0)
    steps = torch.optim.Adam(model.parameters(), lr=RATE)
    model.train()
    for _ in range(STEPS):
        steps.zero_grad()
        loss(torch, draw.choice(n, min(n, 24), replace=False).tolist()).backward()
        steps.step()
    model.eval().save_pretrained(folder)
    return folder
