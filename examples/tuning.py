"""Draw docs/images/tuning-path.png: precision and recall by omega on held-out data.

Run it with ``python examples/tuning.py [FILE]``; it takes about a minute.
"""

import sys
from pathlib import Path

import variegate as vg
from variegate.report.figures import to_png

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "tuning-path.png"


def main():
    data = vg.datasets.make_synthetic(n_sets=300, random_state=1)
    model = vg.LargeMarginDPPCV(
        lams=(0.0, 1.0, 4.0), target_recall=0.85, n_jobs=-1, random_state=0
    )
    model.fit(data.ground_sets, data.subsets)
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    path.write_bytes(to_png(model.path_.plot(model.paths_)))
    print(model.path_)
    print(path)


if __name__ == "__main__":
    main()
