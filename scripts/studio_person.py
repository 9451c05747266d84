"""Does learning pay?  A scripted person picks in the studio, in a real browser.

``python scripts/studio_person.py [N_GROUPS]`` prints, for pages of 20 handwritten
digits and "the sharpest of each digit", the F-score of what was proposed in each group
before it was corrected, beside that of the untrained proposal in the same group.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from studio_browser import Person, chromium, f_score, studio, write_digits


def main(n_groups: int) -> None:
    """Pick in so many groups."""
    with TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        rule = write_digits(folder / "digits", n_groups + 10)
        start = time.perf_counter()
        with studio(folder / "digits", "--store", folder / "p.sqlite") as address:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(address)
            page.wait_for_selector("[role=option][aria-selected=true]")
            seconds = time.perf_counter() - start
            print(f"first proposal {seconds:.1f} s after the command")
            person = Person(page, rule)
            untrained = [
                set(person.ask(f"/api/groups/{g}/proposal")["chosen"])
                for g in range(n_groups + 10)
            ]
            rows = []
            for seen in range(n_groups):
                group, proposal = person.finish()
                wanted = rule(group)
                ours, plain = (f_score(c, wanted) for c in (proposal, untrained[group]))
                rows.append((ours, plain))
                print(f"{seen:3} seen: {ours:.2f}, untrained {plain:.2f}", flush=True)
            print("groups seen   proposed   untrained")
            for first in range(0, n_groups, 5):
                mean, plain = np.mean(rows[first : first + 5], axis=0)
                last = min(first + 5, n_groups) - 1
                print(f"{first:4} to {last:<4}     {mean:.2f}       {plain:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
