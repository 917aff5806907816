"""Fine-tuning an extractor with a new last layer (Fairness Indicators, appendix B.3).

The whole network learns, not only its head: ``fit_probe`` leaves features as they are. A model can
be fine-tuned whose predictor has ``torch``, ``inner`` (a module of PyTorch), ``features`` (pictures
as a tensor to ``[n, d]``, differentiable) and ``prepare``: timm's, transformers', open_clip's (of
models with texts the part that sees pictures, ``extractor``), FairFace's, and a callable of one's
own with these. The head begins at zero, so that all classes are as likely at first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core.errors import IsoluxError, SpecError
from isolux.io.images import Pixels
from isolux.models import Model, is_out_of_memory_error, move_network_to_device
from isolux.models.finetuned import WEIGHTS, get_extractor
from isolux.training.checkpoints import Checkpoint, train_with_checkpoints, write_safetensors
from isolux.training.faces import CHECKPOINT
from isolux.training.trainer import (
    Epoch,
    Schedule,
    State,
    TrainerInputs,
    raise_memory_errors_with_hint,
)
from isolux.training.training_images import ImageScan, TrainingImages

FINETUNED = WEIGHTS
_REQUIRED_ATTRIBUTES = ("torch", "inner", "features", "prepare")
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TrainableExtractor:
    """An extractor that can be fine-tuned, with its new head.

    Parameters
    ----------
    torch : module
    net : torch.nn.Module
        ``extractor`` and ``head``.
    source : object
        The model's predictor.
    device : str
    """

    torch: Any
    net: Any
    source: Any
    device: str

    def prepare(self, pixels: Pixels) -> npt.NDArray[Any]:
        """Prepare an image as the extractor's input."""
        with _raise_model_errors_as_spec_errors("preparation"):
            model_input = self.source.prepare(pixels)
            return np.asarray(getattr(model_input, "values", model_input))

    def forward(self, values: Any) -> Any:
        """Compute logits ``[n, k]`` of a tensor of images."""
        with _raise_model_errors_as_spec_errors("network"):
            return self.net.head(self.source.features(values))

    def predict_probabilities(
        self, images: TrainingImages, batch_size: int, rows: Ints
    ) -> npt.NDArray[np.float64]:
        """Predict probabilities ``[n, k]`` of rows of images."""
        self.net.eval()
        probabilities = []
        batches = np.array_split(rows, max(-(-len(rows) // batch_size), 1))
        with (
            self.torch.inference_mode(),
            raise_memory_errors_with_hint("judging pictures", self.device),
        ):
            for _, values in images.iterate_prepared_batches(
                [batch_rows for batch_rows in batches if len(batch_rows)]
            ):
                logits = self.forward(self.torch.from_numpy(values).to(self.device))
                probabilities.append(logits.double().softmax(dim=1).cpu().numpy())
        return (
            np.concatenate(probabilities)
            if probabilities
            else np.zeros((0, self.net.head.out_features))
        )


@contextmanager
def _raise_model_errors_as_spec_errors(stage: str) -> Iterator[None]:
    """Re-raise exceptions of the model as ``SpecError``; memory errors pass.

    Raises
    ------
    SpecError
        With what it raised.
    """
    try:
        yield
    except (IsoluxError, MemoryError):
        raise
    except Exception as error:
        if is_out_of_memory_error(error):
            raise  # a smaller batch may fit: ``room_for`` says so
        message = (str(error).splitlines() or [""])[0][:200]
        raise SpecError(
            f"the model's {stage} raised {type(error).__name__}",
            found=message,
            hint="run again with ISOLUX_TRACEBACK=1 to see where",
        ) from error


def add_classification_head(model: Model, n_classes: int, device: str) -> TrainableExtractor:
    """Add a new head to a model's features."""
    source: Any = getattr(model.predictor, "function", model.predictor)
    missing = [name for name in _REQUIRED_ATTRIBUTES if not hasattr(source, name)]
    if missing:
        raise SpecError(
            "this model cannot be fine-tuned",
            expected="timm:…, hf:…, open_clip:…, fairface:…, or a callable of your own with "
            + ", ".join(_REQUIRED_ATTRIBUTES[:-1])
            + f" and {_REQUIRED_ATTRIBUTES[-1]}",
            found=f"{model.spec}, without {', '.join(missing)}",
            hint="isolux train probe gives the features of any model a head",
        )
    torch = source.torch
    inner = move_network_to_device(get_extractor(source), device)
    net = torch.nn.Module()
    extractor = TrainableExtractor(torch, net, source, device)
    blank_input = extractor.prepare(np.zeros((64, 64, 3), dtype=np.uint8))
    with torch.no_grad(), _raise_model_errors_as_spec_errors("network"):
        width = int(source.features(torch.from_numpy(blank_input[None]).to(device)).shape[-1])
    net.extractor = inner
    net.head = torch.nn.Linear(width, n_classes)
    torch.nn.init.zeros_(net.head.weight)
    torch.nn.init.zeros_(net.head.bias)
    net.to(device)
    return extractor


def finetune_with_checkpoints(
    extractor: TrainableExtractor,
    images: TrainingImages,
    scan: ImageScan,
    labels: Ints,
    splits: tuple[Ints, Ints],
    schedule: Schedule,
    *,
    folder: Path,
    training_record: Mapping[str, Any],
    checkpoint: Checkpoint | None = None,
    report: Callable[[Epoch], None] = lambda _: None,
    head: str = "label",
) -> State:
    """Train extractor and head with checkpoints; the network ends with the best weights.

    Shapes: ``labels`` [n].
    """
    inputs = TrainerInputs(
        extractor.torch,
        extractor.net,
        extractor.forward,
        images,
        labels[:, None],
        {head: slice(0, extractor.net.head.out_features)},
        splits[0],
        splits[1],
    )
    path, image_hashes = folder / CHECKPOINT, scan.hashes
    state = train_with_checkpoints(
        checkpoint,
        inputs,
        schedule,
        path=path,
        training_record=training_record,
        image_hashes=image_hashes,
        report=report,
    )
    extractor.net.load_state_dict(dict(state.weights()))
    write_safetensors(folder / FINETUNED, state.weights(), {})
    return state
