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

from isolux.io.images import Pixels
from isolux.models import Model, out_of_memory, to_device
from isolux.models.finetuned import WEIGHTS, extractor_of
from isolux.training.checkpoints import Checkpoint, descend_from, write_weights
from isolux.training.descent import Epoch, Learning, Schedule, State, room_for
from isolux.training.faces import CHECKPOINT
from isolux.training.pictures import Looked, Pictures
from isolux.vocabulary.errors import IsoluxError, SpecError

FINETUNED = WEIGHTS
_NEEDS = ("torch", "inner", "features", "prepare")
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tuned:
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
        """Bring a picture to what the extractor is given."""
        with _own("preparation"):
            shown = self.source.prepare(pixels)
            return np.asarray(getattr(shown, "values", shown))

    def run(self, values: Any) -> Any:
        """Give logits ``[n, k]`` of pictures as a tensor."""
        with _own("network"):
            return self.net.head(self.source.features(values))

    def chances(self, pictures: Pictures, batch: int, rows: Ints) -> npt.NDArray[np.float64]:
        """Give probabilities ``[n, k]`` of rows of pictures."""
        self.net.eval()
        found = []
        parts = np.array_split(rows, max(-(-len(rows) // batch), 1))
        with self.torch.inference_mode(), room_for("judging pictures", self.device):
            for _, values in pictures.batches([part for part in parts if len(part)]):
                logits = self.run(self.torch.from_numpy(values).to(self.device))
                found.append(logits.double().softmax(dim=1).cpu().numpy())
        return np.concatenate(found) if found else np.zeros((0, self.net.head.out_features))


@contextmanager
def _own(part: str) -> Iterator[None]:
    """Say that it was the model that raised: a callable of one's own may, and memory may run out.

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
        if out_of_memory(error):
            raise  # a smaller batch may fit: ``room_for`` says so
        found = (str(error).splitlines() or [""])[0][:200]
        raise SpecError(
            f"the model's {part} raised {type(error).__name__}",
            found=found,
            hint="run again with ISOLUX_TRACEBACK=1 to see where",
        ) from error


def tunable(model: Model, classes: int, device: str) -> Tuned:
    """Put a new head on a model's features."""
    source: Any = getattr(model.predictor, "function", model.predictor)
    missing = [name for name in _NEEDS if not hasattr(source, name)]
    if missing:
        raise SpecError(
            "this model cannot be fine-tuned",
            expected="timm:…, hf:…, open_clip:…, fairface:…, or a callable of your own with "
            + ", ".join(_NEEDS[:-1])
            + f" and {_NEEDS[-1]}",
            found=f"{model.spec}, without {', '.join(missing)}",
            hint="isolux train probe gives the features of any model a head",
        )
    torch = source.torch
    inner = to_device(extractor_of(source), device)
    net = torch.nn.Module()
    made = Tuned(torch, net, source, device)
    blank = made.prepare(np.zeros((64, 64, 3), dtype=np.uint8))
    with torch.no_grad(), _own("network"):
        width = int(source.features(torch.from_numpy(blank[None]).to(device)).shape[-1])
    net.extractor = inner
    net.head = torch.nn.Linear(width, classes)
    torch.nn.init.zeros_(net.head.weight)
    torch.nn.init.zeros_(net.head.bias)
    net.to(device)
    return made


def finetune(
    tuned: Tuned,
    pictures: Pictures,
    looked: Looked,
    labels: Ints,
    rows: tuple[Ints, Ints],
    how: Schedule,
    *,
    folder: Path,
    about: Mapping[str, Any],
    before: Checkpoint | None = None,
    tell: Callable[[Epoch], None] = lambda _: None,
    head: str = "label",
) -> State:
    """Train extractor and head, keep each epoch, and leave the best epoch's weights in the network.

    Shapes: ``labels`` [n].
    """
    what = Learning(
        tuned.torch,
        tuned.net,
        tuned.run,
        pictures,
        labels[:, None],
        {head: slice(0, tuned.net.head.out_features)},
        rows[0],
        rows[1],
    )
    path, marks = folder / CHECKPOINT, looked.marks
    state = descend_from(before, what, how, path=path, about=about, marks=marks, tell=tell)
    tuned.net.load_state_dict(dict(state.weights()))
    write_weights(folder / FINETUNED, state.weights(), {})
    return state
