"""Synthetic photographs with the statistics of real ones, and the copies that people make of them.

Natural pictures are told by two laws: power falls with the square of the frequency (Field 1987),
and things of all sizes hide one another (dead leaves: Lee, Mumford and Huang 2001). A photograph
here is ground and sky with such a texture, things upon it, and one to three people.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 320, 240
Picture = Image.Image


def _colour(rng: np.random.Generator, low: float = 10, high: float = 245) -> tuple[int, ...]:
    return tuple(int(v) for v in rng.uniform(low, high, 3))


def _texture(rng: np.random.Generator, slope: float) -> np.ndarray:
    frequency = np.hypot(np.fft.fftfreq(HEIGHT)[:, None], np.fft.rfftfreq(WIDTH)[None])
    frequency[0, 0] = 1
    waves = frequency**-slope * np.exp(2j * np.pi * rng.random(frequency.shape))
    waves[0, 0] = 0
    found = np.fft.irfft2(waves, s=(HEIGHT, WIDTH))
    return (found - found.mean()) / found.std()


def scene(rng: np.random.Generator) -> Picture:
    """Draw a place: sky over ground, a texture, three to 24 things."""
    above, below = rng.uniform(40, 215, (2, 3))
    horizon, soft = rng.uniform(0.3, 0.8) * HEIGHT, rng.uniform(5, 80)
    ground = np.clip((np.arange(HEIGHT) - horizon) / soft + 0.5, 0, 1)[:, None, None]
    grain = _texture(rng, rng.uniform(0.9, 1.4))[:, :, None]
    pixels = above * (1 - ground) + below * ground
    pixels = pixels + grain * rng.uniform(8, 30) * rng.uniform(0.7, 1.3, 3)
    picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(picture)
    for _ in range(rng.integers(3, 25)):
        size, tall = min(8 * rng.random() ** -0.7, 90), rng.uniform(0.4, 2.5)
        x, y = rng.uniform(0, WIDTH), rng.uniform(0, HEIGHT)
        shape = pen.ellipse if rng.random() < 0.5 else pen.rectangle
        shape([x - size * tall, y - size, x + size * tall, y + size], fill=_colour(rng))
    return picture


def with_person(picture: Picture, rng: np.random.Generator, height: float | None = None) -> Picture:
    """Put somebody into it: legs, clothes, hair, a face."""
    picture = picture.copy()
    pen = ImageDraw.Draw(picture)
    h = (height or rng.uniform(0.35, 0.95)) * HEIGHT
    x, top = rng.uniform(0.15, 0.85) * WIDTH, HEIGHT - h * rng.uniform(0.8, 1)
    skin = tuple(int(v) for v in np.array([230, 190, 160]) * rng.uniform(0.25, 1.05))
    pen.rectangle([x - 0.1 * h, top + 0.5 * h, x + 0.1 * h, top + h], fill=_colour(rng, high=200))
    pen.rounded_rectangle(
        [x - 0.15 * h, top + 0.15 * h, x + 0.15 * h, top + 0.58 * h],
        radius=int(0.05 * h),
        fill=_colour(rng),
    )
    pen.ellipse(
        [x - 0.075 * h, top - 0.03 * h, x + 0.075 * h, top + 0.1 * h],
        fill=_colour(rng, high=120),
    )
    pen.ellipse([x - 0.06 * h, top, x + 0.06 * h, top + 0.16 * h], fill=skin)
    return picture


def taken(picture: Picture, rng: np.random.Generator) -> Picture:
    """Take the photograph: a camera's noise, and its blur."""
    noisy = np.asarray(picture) + rng.normal(0, 4, (HEIGHT, WIDTH, 3))
    drawn = Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))
    return drawn.filter(ImageFilter.GaussianBlur(0.6))


def photograph(rng: np.random.Generator) -> Picture:
    """Take a photograph of one to three people somewhere."""
    picture = scene(rng)
    for _ in range(rng.integers(1, 4)):
        picture = with_person(picture, rng)
    return taken(picture, rng)


def portrait(rng: np.random.Generator) -> Picture:
    """Draw a face as sets of aligned faces show them: in the middle, before a plain wall."""
    wall = np.clip(
        rng.uniform(40, 220, 3) + _texture(rng, 1.2)[:, :, None] * rng.uniform(3, 15), 0, 255
    )
    picture = Image.fromarray(wall.astype(np.uint8))
    pen = ImageDraw.Draw(picture)
    x, y = WIDTH * rng.normal(0.5, 0.01), HEIGHT * rng.normal(0.52, 0.01)
    wide, high = WIDTH * rng.normal(0.19, 0.015), HEIGHT * rng.normal(0.36, 0.02)
    skin = np.array([230, 190, 160]) * rng.uniform(0.25, 1.05)
    dark = tuple(int(v) for v in skin * 0.4)
    hair, clothes = _colour(rng, 5, 120), _colour(rng)
    long = rng.uniform(0.9, 1.6)
    pen.ellipse([x - 1.9 * wide, y + 0.8 * high, x + 1.9 * wide, y + 2.5 * high], fill=clothes)
    pen.ellipse([x - 1.2 * wide, y - 1.2 * high, x + 1.2 * wide, y + long * high], fill=hair)
    pen.ellipse([x - wide, y - 0.9 * high, x + wide, y + high], fill=tuple(int(v) for v in skin))
    for side in (-1, 1):
        eye = x + side * 0.42 * wide
        pen.ellipse([eye - 12, y - 0.2 * high - 6, eye + 12, y - 0.2 * high + 6], fill=dark)
    mouth = rng.uniform(0.2, 0.45) * wide
    pen.ellipse([x - mouth, y + 0.45 * high, x + mouth, y + 0.58 * high], fill=dark)
    return taken(picture, rng)


def recompressed(picture: Picture, quality: int = 40) -> Picture:
    """Save it as a JPEG of low quality, and open that."""
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=quality)
    return Image.open(io.BytesIO(stream.getvalue())).convert("RGB")


def cut(picture: Picture, rng: np.random.Generator, part: float = 0.05) -> Picture:
    """Cut a part of its width and of its height away, anyhow split over the two edges."""
    u, v = rng.random(2)
    left, top = u * part * picture.width, v * part * picture.height
    box = (left, top, left + (1 - part) * picture.width, top + (1 - part) * picture.height)
    return picture.crop(tuple(round(side) for side in box))


def cut_all_round(picture: Picture, part: float = 0.05) -> Picture:
    """Cut a part away at each of the four edges."""
    x, y = round(part * picture.width), round(part * picture.height)
    return picture.crop((x, y, picture.width - x, picture.height - y))


def smaller(picture: Picture) -> Picture:
    """Halve its sides."""
    return picture.resize((picture.width // 2, picture.height // 2), Image.Resampling.BICUBIC)


def mirror(picture: Picture) -> Picture:
    """Swap left and right."""
    return picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


COPIES: dict[str, Callable[[Picture, np.random.Generator], Picture]] = {
    "half the size": lambda p, _: smaller(p),
    "JPEG of quality 40": lambda p, _: recompressed(p),
    "cut by 5 %": cut,
    "cut by 5 % at each edge": lambda p, _: cut_all_round(p),
    "mirrored": lambda p, _: mirror(p),
    "mirrored, cut by 5 %, half the size, JPEG": lambda p, rng: recompressed(
        smaller(cut(mirror(p), rng))
    ),
}
"""What people do to a picture before they upload it again."""
