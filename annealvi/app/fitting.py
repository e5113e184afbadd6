"""The fit of a study, in a process of its own: ``python -m annealvi.app.fitting FOLDER``.

The process ends, after it has written a checkpoint, when its standard input is closed: by the
server when a person cancels, and by the system when the server has been killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any
from warnings import simplefilter

from annealvi.app.files import (
    CHECKPOINT,
    CHOICE,
    NEXT,
    candidates,
    read_documents,
    read_state,
    topic_model,
)
from annealvi.callbacks import Checkpoint, ProgressBar
from annealvi.storage import save
from annealvi.topics import choose_n_topics

#: Seconds between two checkpoints.
PAUSE = 10
#: Seconds in which a checkpoint is written before the process ends.
PATIENCE = 20


def fit(folder: Path) -> None:
    """Fit the model that the settings describe to the documents of a study, and save it."""
    settings = read_state(folder)["next"]
    texts = read_documents(folder)[settings["text"]].tolist()
    model = topic_model(settings)
    if model.n_topics == "auto":
        numbers = candidates(len(texts))
        print(f"Comparing {len(numbers)} numbers of topics", flush=True)
        model.n_topics = numbers[0]
        choice = choose_n_topics(
            texts, numbers, n_runs=2, model=model, random_state=0, checkpoints=folder / CHOICE
        )
        model.n_topics = choice.recommended
    print("Counting words", flush=True)
    checkpoint = folder / CHECKPOINT
    model.set_params(lda__callback=[ProgressBar(), Checkpoint(checkpoint, seconds=PAUSE)])
    model.fit(texts, resume=checkpoint if checkpoint.exists() else None)
    model.set_params(lda__callback=None)
    save(model, folder / NEXT)


def end_with_server() -> None:
    """Wait until standard input is closed; then end this process, which writes a checkpoint.

    A second signal ends it at once.
    """
    # on Windows, os.kill would end the process at once, without a last step
    stop = signal.raise_signal if os.name == "nt" else partial(os.kill, os.getpid())
    os.read(sys.stdin.fileno(), 1)
    stop(signal.SIGTERM)
    time.sleep(PATIENCE)
    stop(signal.SIGTERM)


def main(arguments: list[str]) -> Any:
    """Fit the study in a folder; return an exit status."""
    simplefilter("ignore")
    Thread(target=end_with_server, daemon=True).start()
    try:
        fit(Path(arguments[0]))
    except (ImportError, OSError, ValueError, TypeError, MemoryError) as error:
        print(f"\n{' '.join(str(error).split()) or type(error).__name__}", flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
