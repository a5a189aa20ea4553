"""The log of a training run: one JSON line per evaluation, and the same numbers for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nasrlm.extras import check_extra
from nasrlm.files import to_json, write_atomically


class TrainLog:
    """Writer of ``log.jsonl`` and, on request, ``tensorboard/``.

    Args:
        folder: of the run.
        tensorboard: also write event files.

    Raises:
        ImportError: ``tensorboard`` is True, and TensorBoard is not installed.
    """

    def __init__(self, folder: Path, tensorboard: bool) -> None:
        self.entries: list[dict[str, Any]] = []
        self._folder = folder
        self._make_writer = _summary_writer() if tensorboard else None
        self._writer: Any = None

    def start(self) -> None:
        """Write the entries so far, and purge TensorBoard events of later steps, which will be trained again."""
        if self._make_writer is not None:
            step = self.entries[-1]["step"] if self.entries else 0
            self._writer = self._make_writer(str(self._folder / "tensorboard"), purge_step=step + 1)
        self._write()

    def note(self, values: Mapping[str, Any]) -> None:
        """Add a line; its values must include ``step``."""
        self.entries.append(dict(values))
        self._write()
        if self._writer is not None:
            for name, value in values.items():
                if name != "step":
                    self._writer.add_scalar(name, value, values["step"])
            self._writer.flush()

    def close(self) -> None:
        """Close TensorBoard's writer."""
        if self._writer is not None:
            self._writer.close()

    def _write(self) -> None:
        lines = "".join(f"{to_json(entry)}\n" for entry in self.entries)
        write_atomically(self._folder / "log.jsonl", lines.encode())


def _summary_writer() -> Any:
    check_extra("train", "tensorboard", "tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter
