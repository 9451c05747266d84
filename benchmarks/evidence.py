"""Time to choose the sentences that answer a question.

    python -m benchmarks.evidence --data DIR

DIR has ``evidence/hotpotqa.jsonl``.  Of each question the first 50 sentences are used,
or all if there are fewer, repeated up to 1,000 questions.  Vectors are made before the
clock starts.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from variegate.text import EvidenceSelector
from variegate.text.word_vectors import load_word_vectors

N_SENTENCES, N_QUESTIONS = 50, 1000


def read_questions(folder: Path) -> dict[str, list[Any]]:
    """Return lists of questions, sentences, titles, wanted ones and embeddings."""
    lines = (folder / "evidence" / "hotpotqa.jsonl").read_text("utf-8").splitlines()
    vectors = load_word_vectors()
    found: dict[str, list[Any]] = {"questions": [], "sentences": [], "wanted": []}
    found |= {"titles": [], "embeddings": []}
    for record in map(json.loads, lines):
        texts = record["sentences"][:N_SENTENCES]
        wanted = [one for one in record["wanted"] if one < len(texts)]
        if not wanted:
            continue
        found["questions"].append(record["question"])
        found["sentences"].append(texts)
        found["wanted"].append(wanted)
        found["titles"].append(record["titles"][:N_SENTENCES])
        found["embeddings"].append(vectors.embed([record["question"], *texts]))
    return found


def main() -> None:
    """Print milliseconds a question, alone, and questions a second in batches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    columns = read_questions(parser.parse_args().data)
    model = EvidenceSelector(quality_model="boosting").fit(
        columns["questions"],
        columns["sentences"],
        columns["wanted"],
        titles=columns["titles"],
        embeddings=columns["embeddings"],
    )
    long = [k for k, one in enumerate(columns["sentences"]) if len(one) == N_SENTENCES]
    for _ in range(2):  # the first time warms caches and compiled loops
        begin, cpu = time.perf_counter(), time.process_time()
        for k in long:
            model.select(
                columns["questions"][k],
                columns["sentences"][k],
                titles=columns["titles"][k],
                embeddings=columns["embeddings"][k],
            )
        cpu = 1e3 * (time.process_time() - cpu) / len(long)
        wall = 1e3 * (time.perf_counter() - begin) / len(long)
    print(f"select, {N_SENTENCES} sentences: {wall:.2f} ms, {cpu:.2f} ms of CPU")
    times = -(-N_QUESTIONS // len(columns["questions"]))
    many = {name: (values * times)[:N_QUESTIONS] for name, values in columns.items()}
    mean = np.mean([len(one) for one in many["sentences"]])
    for n_jobs in (1, 2):
        for _ in range(2):
            begin = time.perf_counter()
            model.predict(
                many["questions"],
                many["sentences"],
                titles=many["titles"],
                embeddings=many["embeddings"],
                n_jobs=n_jobs,
            )
            rate = N_QUESTIONS / (time.perf_counter() - begin)
        print(
            f"predict, {mean:.0f} sentences on average, n_jobs={n_jobs}: "
            f"{rate:,.0f} questions a second"
        )


if __name__ == "__main__":
    main()
