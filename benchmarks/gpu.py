"""Models on a GPU: `isolux.predict` beside the loop that a user would write, in pictures a second.

JPEG files of 640 × 480 and networks with random weights. The peer is a plain loop in PyTorch: a
``DataLoader`` with a worker process for each core (at most 16) and pinned memory, the library's own
transform, batches of the same size, the same precision. Both sides open the model from its file and
run by the clock of an idle machine; neither is asked before its first pictures went through. Both
must give the same answers. Of the GPU: the share of time in which a kernel ran, by nvidia-smi.

Without a GPU nothing is measured, and RESULTS.md keeps what it says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

import isolux
from benchmarks.__main__ import ABSENT
from benchmarks._timing import last_line, quick

SIZES = (256, 1_024, 4_096, 16_384)
BATCH = 64
WORKERS = min(16, os.cpu_count() or 1)


@dataclass(frozen=True)
class Contest:
    """A network for both sides: how isolux names it, and what the peer makes of a file's batch."""

    spec: str
    options: tuple[str, ...]
    opened: Callable[[], tuple[Callable[[Path], Any], Callable[[Any], Any]]]
    answers: str = "labels"


class Files:
    """What a ``DataLoader`` reads: each file, prepared as the library does it."""

    def __init__(self, paths: Sequence[Path], prepare: Callable[[Path], Any]) -> None:
        self.paths, self.prepare = paths, prepare

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, k: int) -> Any:
        return self.prepare(self.paths[k])


def photo(path: Path) -> None:
    rng = np.random.default_rng(int(path.stem))
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3)).astype(np.uint8))
    whole = np.asarray(coarse.resize((640, 480), Image.Resampling.BICUBIC), np.int16)
    grain = rng.normal(0, 6, whole.shape)
    Image.fromarray(np.clip(whole + grain, 0, 255).astype(np.uint8)).save(path, quality=88)


def photos(folder: Path, n: int) -> list[Path]:
    paths = [folder / f"{k}.jpg" for k in range(n)]
    with ProcessPoolExecutor(WORKERS) as pool:
        list(pool.map(photo, paths, chunksize=64))
    for size in SIZES:
        names = [path.name for path in paths[:size]]
        pl.DataFrame({"id": names}).write_csv(folder / f"people{size}.csv")
    return paths


def of_timm(name: str, folder: Path) -> Contest:
    """A classifier of timm's, and timm's own transform."""
    import timm
    import torch
    from safetensors.torch import load_file, save_file

    weights = folder / f"{name}.safetensors"
    torch.manual_seed(0)
    save_file(timm.create_model(name, pretrained=False).state_dict(), weights)

    def opened() -> tuple[Callable[[Path], Any], Callable[[Any], Any]]:
        net = timm.create_model(name, pretrained=False)
        net.load_state_dict(load_file(weights))
        net = net.cuda().eval()
        config = timm.data.resolve_model_data_config(net)
        transform = timm.data.create_transform(**config, is_training=False)
        return (
            lambda path: transform(Image.open(path).convert("RGB")),
            lambda values: top(net(values.cuda(non_blocking=True)).softmax(1)),
        )

    options = (f"weights={weights}", f"labels={folder / 'names.txt'}", "device=cuda")
    return Contest(f"timm:{name}", options, opened)


def of_open_clip(folder: Path, prompts: int = 100) -> Contest:
    """CLIP ViT-B/32 asked in a hundred prompts, and open_clip's own transform."""
    import open_clip
    import torch
    from safetensors.torch import load_file, save_file

    weights, arch = folder / "clip.safetensors", "ViT-B-32"
    torch.manual_seed(0)
    save_file(open_clip.create_model(arch, pretrained=None).state_dict(), weights)
    texts = [f"a photo of thing {k}" for k in range(prompts)]
    lines = "".join(f"c{k}: {text}\n" for k, text in enumerate(texts))
    (folder / "prompts.yaml").write_text(lines)

    def opened() -> tuple[Callable[[Path], Any], Callable[[Any], Any]]:
        net, _, transform = open_clip.create_model_and_transforms(arch, pretrained=None)
        net.load_state_dict(load_file(weights))
        net = net.cuda().eval()
        with torch.inference_mode():
            tokens = open_clip.get_tokenizer(arch)(texts).cuda()
            words = net.encode_text(tokens, normalize=True)

        def ask(values: Any) -> Any:
            units = net.encode_image(values.cuda(non_blocking=True), normalize=True)
            return top((net.logit_scale.exp() * units @ words.T).softmax(1))

        return lambda path: transform(Image.open(path).convert("RGB")), ask

    options = (f"weights={weights}", f"prompts={folder / 'prompts.yaml'}", "device=cuda")
    return Contest(f"open_clip:{arch}", options, opened)


def of_rt_detr(folder: Path) -> Contest:
    """RT-DETR with a ResNet-50, and transformers' own processor: boxes of pictures of 640 × 640."""
    import torch
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrImageProcessor

    where = folder / "rt_detr"
    torch.manual_seed(0)
    RTDetrForObjectDetection(RTDetrConfig(num_labels=80)).save_pretrained(where)
    RTDetrImageProcessor().save_pretrained(where)

    def opened() -> tuple[Callable[[Path], Any], Callable[[Any], Any]]:
        net = RTDetrForObjectDetection.from_pretrained(where).cuda().eval()
        processor = RTDetrImageProcessor.from_pretrained(where)

        def prepare(path: Path) -> Any:
            shown = processor(images=Image.open(path).convert("RGB"), return_tensors="pt")
            return shown["pixel_values"][0]

        def ask(values: Any) -> Any:
            found = processor.post_process_object_detection(
                net(pixel_values=values.cuda(non_blocking=True)), threshold=0.05,
                target_sizes=[(480, 640)] * len(values),
            )  # fmt: skip
            return [{name: one.cpu() for name, one in each.items()} for each in found]

        return prepare, ask

    return Contest(f"hf:{where}", ("device=cuda", "min_score=0.05"), opened, "boxes")


def top(chances: Any) -> Any:
    best = chances.topk(5, dim=1)
    return list(zip(best.values.cpu().tolist(), best.indices.cpu().tolist(), strict=True))


def plain_loop(contest: Contest, paths: Sequence[Path], batch: int) -> list[Any]:
    """Do what a user would write."""
    import torch

    prepare, ask = contest.opened()
    loader = torch.utils.data.DataLoader(
        Files(paths, prepare), batch_size=batch, num_workers=WORKERS, pin_memory=True  # type: ignore[arg-type]
    )  # fmt: skip
    found: list[Any] = []
    with torch.inference_mode():
        for values in loader:
            found += ask(values)
    return found


def ours(contest: Contest, folder: Path, n: int, **settings: Any) -> pl.DataFrame:
    with tempfile.TemporaryDirectory(dir=folder) as out:
        found = isolux.predict(
            f"table:{folder / f'people{n}.csv'}", contest.spec, out=Path(out) / "answers",
            images=str(folder), model_option=contest.options, **settings,
        )  # fmt: skip
    if found.inferences["reason"].null_count() < n:
        raise SystemExit(f"some picture has no answer: {found.record['unanswered']}")
    return found.predictions


def clocked(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Give the seconds by the clock, the share of them in which the GPU worked, and the result."""
    with kernels() as seen:
        began = time.monotonic()
        found = work()
        seconds = time.monotonic() - began
    return seconds, float(np.mean(seen)) if seen else float("nan"), found


@contextmanager
def kernels() -> Iterator[list[float]]:
    """Have nvidia-smi say every 100 ms in how much of the time a kernel ran."""
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits",
               "-lms", "100"]  # fmt: skip
    seen: list[float] = []
    with tempfile.TemporaryFile("w+") as told:
        beside = subprocess.Popen(command, stdout=told, stderr=subprocess.DEVNULL)
        try:
            yield seen
        finally:
            beside.terminate()
            beside.wait()
            told.seek(0)
            seen += [float(line) for line in told if line.strip().isdigit()]


def apart(contest: Contest, theirs: list[Any], found: pl.DataFrame) -> str:
    """Say by how much both sides' answers differ."""
    if contest.answers == "boxes":
        many = sum(len(one["scores"]) for one in theirs)
        best = found.group_by("image_id", maintain_order=True).agg(pl.col("score").max())
        other = [float(one["scores"].max()) for one in theirs]
        most = np.abs(best["score"].to_numpy() - other).max()
        return f"boxes {found.height:,} and {many:,}; best scores differ by {most:.1e} at most"
    scores = found["score"].to_numpy().reshape(len(theirs), -1)
    most = np.abs(scores - np.array([row[0] for row in theirs])).max()
    return f"scores differ by {most:.1e} at most"


def refuse_without_gpu() -> None:
    missing = [n for n in ("torch", "timm", "open_clip", "transformers") if find_spec(n) is None]
    if missing:
        print(f"{', '.join(missing).upper()} ABSENT: NOTHING WAS MEASURED")
        sys.exit(ABSENT)
    import torch

    if not torch.cuda.is_available():
        print("NO CUDA GPU HERE: NOTHING WAS MEASURED")
        sys.exit(ABSENT)


def compare(name: str, contest: Contest, folder: Path, paths: list[Path], sizes: Sequence[int],
            **settings: Any) -> tuple[float, float]:  # fmt: skip
    """Print both sides at each size; give the seconds of the largest."""
    ours(contest, folder, sizes[0], **settings)  # what is imported is imported
    plain_loop(contest, paths[: sizes[0]], BATCH)
    for n in sizes:
        theirs_s, theirs_busy, theirs = clocked(lambda n=n: plain_loop(contest, paths[:n], BATCH))
        ours_s, ours_busy, found = clocked(lambda n=n: ours(contest, folder, n, **settings))
        print(f"{name} {n:>6,} pictures: isolux {n / ours_s:7,.0f} a second, GPU busy"
              f" {ours_busy:3.0f} %; plain loop {n / theirs_s:7,.0f}, {theirs_busy:3.0f} %;"
              f" ratio {theirs_s / ours_s:.2f}; {apart(contest, theirs, found)}",
              flush=True)  # fmt: skip
    return ours_s, theirs_s


def main() -> None:
    few = quick()
    refuse_without_gpu()
    import torch

    sizes = SIZES[:2] if few else SIZES
    print(f"{torch.cuda.get_device_name()}, {os.cpu_count()} cores, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as there:
        folder = Path(there)
        paths = photos(folder, sizes[-1])
        (folder / "names.txt").write_text("\n".join(f"c{k}" for k in range(1000)))
        totals = np.zeros(2)
        for name, contest, upto in (
            ("timm resnet50", of_timm("resnet50", folder), len(sizes)),
            ("timm vit_base_patch16_224", of_timm("vit_base_patch16_224", folder), len(sizes)),
            ("open_clip ViT-B-32", of_open_clip(folder), len(sizes)),
            ("transformers RT-DETR", of_rt_detr(folder), 2),
        ):
            totals += compare(name, contest, folder, paths, sizes[:upto])
    last_line("gpu", float(totals[0]), "a plain PyTorch loop with a DataLoader", float(totals[1]))


if __name__ == "__main__":
    main()
