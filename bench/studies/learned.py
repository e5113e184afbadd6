"""Compare learned with planned temperatures, by the ELBO at T = 1 and the held-out likelihood.

    python -m bench.studies.learned [--corpus arxiv_100k] [--seeds 3] [--sparse] [--jobs 2]
        [--minibatch 100] [--offset 64] [--decay .7] [--passes 4] [--topics 100]

There are five families of methods: plain inference (SVI), annealed likelihood (AVI), annealed
posterior (DASVI), one learned temperature (VT), and one learned temperature per document (LVT).
The last four families have several variants.  The script prints a line for each fit, and at the end
the two tables of docs/record/evidence.md.  The first table contains one variant of each family, the
one with the best mean held-out log-likelihood on validation documents.  Its scores are those of
test documents, which were not used for any choice.  The second table contains every variant.
"Warned" is the number of fits whose learned temperature was not near 1 at the end of its learning.
Seconds are those of the steps.

K = 100, alpha = 0.1, eta = 0.01 (with --sparse both are 1/K), kappa = 0.7.  All fits of a seed
start from the same random draws, use the same minibatches and make the same number of steps.  The
training, validation and test documents and the steps are (SETTINGS below):

- ``arxiv_100k``: rows 0 to 30,000; 30,000 to 31,500; 31,500 to 33,000.  4 passes in minibatches
  of 100, tau = 64.
- ``debian_desc``: all except the last 2,000 rows; the last 2,000 to 1,000; the last 1,000.  The
  steps are the same.
- ``bbc_news``: all except the last 500 rows (1,725); the last 500 to 250; the last 250.  40 passes,
  which have as many words as 4 passes over the first corpus, with minibatches of 32 and tau = 256,
  as in ``annealvi demo`` on a corpus of this size.

On a corpus as small as the last one, step sizes matter as much as the temperature.  Other step
sizes can be set by the options.  Of minibatches of 32 and 100 and tau = 10 to 1024, plain inference
is best with 100 and 10.  With these, no temperature is better than plain inference.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from annealvi import Annealed, Fixed, LocalVariational, TemperedLDA, Variational
from annealvi.datasets import load_corpus
from annealvi.metrics import document_completion
from annealvi.temperature import Temperature
from bench import parser
from bench.markdown import spread, table

COMMON = dict(
    n_components=100,
    learning_method="online",
    preset="sklearn",  # mean-field inference from random starts
)
SETTINGS = {
    "arxiv_100k": COMMON | dict(batch_size=100, learning_offset=64, max_iter=4),
    "debian_desc": COMMON | dict(batch_size=100, learning_offset=64, max_iter=4),
    "bbc_news": COMMON | dict(batch_size=32, learning_offset=256, max_iter=40),
}
#: The options that change the settings, with the parameter and its least value.
OPTIONS = {
    "minibatch": ("batch_size", 1),
    "offset": ("learning_offset", 1.0),
    "decay": ("learning_decay", 0.0),
    "passes": ("max_iter", 1),
    "topics": ("n_components", 1),
}
#: The rows at which training, validation and test documents end.
SPLITS = {
    "arxiv_100k": (30_000, 31_500, 33_000),
    "debian_desc": (-2_000, -1_000, None),
    "bbc_news": (-500, -250, None),
}


class SplitCorpus(NamedTuple):
    """A corpus, and the settings of its fits."""

    train: sparse.csr_matrix
    validation: sparse.csr_matrix
    test: sparse.csr_matrix
    settings: dict

    @property
    def n_steps(self) -> int:
        return self.settings["max_iter"] * -(-self.train.shape[0] // self.settings["batch_size"])


class FitScores(NamedTuple):
    """The scores per word of one fit, and its seconds."""

    elbo: float
    validation: float
    test: float
    seconds: float
    last: float  # the last learned T, before the final steps at T = 1
    warned: bool


def load(corpus: str, changes: dict) -> SplitCorpus:
    """Read and split a corpus."""
    try:
        X = load_corpus(corpus).data
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    first, second, third = SPLITS[corpus]
    return SplitCorpus(X[:first], X[first:second], X[second:third], SETTINGS[corpus] | changes)


def families() -> dict[str, dict[str, Temperature]]:
    """The variants of each family; the lengths are fractions of the fit."""
    return {
        "SVI": {"T = 1": Fixed(1)},
        "AVI": {
            "relax over 1/3 (default)": Annealed(),
            "relax over 1/10": Annealed(length=0.1),
            "linear over 1/4": Annealed(shape="linear", length=0.25),
        },
        "DASVI": {
            "from 2 over 1/40": Annealed(2, length=1 / 40, form="posterior"),
            "from 2 over 1/3": Annealed(2, form="posterior"),
            "from 3.9 over 1/3": Annealed(form="posterior"),
        },
        "VT": {
            "posterior (default)": Variational(),
            "posterior from 2.5": Variational(start=2.5),
            "as printed": Variational.as_printed(),
        },
        "LVT": {
            "damped (default)": LocalVariational(),
            "corpus": LocalVariational(normaliser="corpus"),
            "continuous": LocalVariational(continuous=True),
            "undamped": LocalVariational(undamped=True),
        },
    }


def fit(
    problem: SplitCorpus, temperature: Temperature, seed: int, prior: dict, jobs: int
) -> FitScores:
    """Make one fit, and score it."""
    lda = TemperedLDA(
        **problem.settings,
        **prior,
        temperature=temperature,
        random_state=seed,
        n_jobs=jobs,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lda.fit(problem.train)
    final = getattr(temperature, "final_fraction", 0.0)
    learned = max(1, int(problem.n_steps * (1 - final)))
    return FitScores(
        elbo=-float(np.log(lda.bound_)),
        validation=document_completion(lda, problem.validation),
        test=document_completion(lda, problem.test),
        seconds=float(lda.history_["seconds"][-1]),
        last=float(lda.temperature_path_[learned - 1]),
        warned=any(issubclass(warning.category, ConvergenceWarning) for warning in caught),
    )


def each(fits: Sequence[FitScores], name: str) -> list[float]:
    return [getattr(one, name) for one in fits]


def mean(fits: Sequence[FitScores], name: str) -> float:
    return float(np.mean(each(fits, name)))


def gain(
    fits: Sequence[FitScores], by_family: dict[str, dict[str, list[FitScores]]], name: str
) -> str:
    """Format the gain of a score over plain inference."""
    (baseline,) = by_family["SVI"].values()
    return f"{mean(fits, name) - mean(baseline, name):+.3f}"


def chosen_table(results: dict[str, dict[str, dict[str, list[FitScores]]]]) -> str:
    """Make the table with the variant of each family that predicts validation documents best."""
    header = ["corpus", "method", "variant chosen", "ELBO per word, T = 1", "against SVI"]
    header += ["held out per word, test", "against SVI", "seconds"]
    rows = []
    for corpus, by_family in results.items():
        for family, variants in by_family.items():
            variant = max(variants, key=lambda name: mean(variants[name], "validation"))
            fits = variants[variant]
            row = [corpus, family, variant]
            row += [spread(each(fits, "elbo")), gain(fits, by_family, "elbo")]
            row += [spread(each(fits, "test")), gain(fits, by_family, "test")]
            rows.append([*row, spread(each(fits, "seconds"), 1)])
    return table(header, rows)


def full_table(results: dict[str, dict[str, dict[str, list[FitScores]]]]) -> str:
    """Make the table of every variant."""
    header = ["corpus", "method", "variant", "ELBO per word, T = 1", "against SVI"]
    header += ["held out, validation", "held out, test", "against SVI"]
    header += ["last learned T", "warned", "seconds"]
    rows = []
    for corpus, by_family in results.items():
        for family, variants in by_family.items():
            for variant, fits in variants.items():
                row = [corpus, family, variant]
                row += [spread(each(fits, "elbo")), gain(fits, by_family, "elbo")]
                row += [spread(each(fits, "validation")), spread(each(fits, "test"))]
                row += [gain(fits, by_family, "test")]
                if family in ("VT", "LVT"):
                    row += [f"{mean(fits, 'last'):.2f}", f"{sum(each(fits, 'warned'))}"]
                else:
                    row += ["–", "–"]
                rows.append([*row, f"{mean(fits, 'seconds'):.1f}"])
    return table(header, rows)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--corpus", choices=list(SETTINGS), action="append", help="default: all")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--sparse", action="store_true", help="alpha = eta = 1/K")
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    for option, (name, smallest) in OPTIONS.items():
        options.add_argument(f"--{option}", type=type(smallest), help=f"{name} for all corpora")
    arguments = options.parse_args()
    changes = {}
    for option, (name, smallest) in {"seeds": ("", 1), **OPTIONS}.items():
        value = getattr(arguments, option)
        if value is not None and value < smallest:
            options.error(f"--{option} must be at least {smallest}")
        if value is not None and name:
            changes[name] = value
    prior = {} if arguments.sparse else dict(doc_topic_prior=0.1, topic_word_prior=0.01)
    results: dict[str, dict[str, dict[str, list[FitScores]]]] = {}
    for corpus in arguments.corpus or SETTINGS:
        problem = load(corpus, changes)
        results[corpus] = {}
        for family, variants in families().items():
            results[corpus][family] = {}
            for variant, temperature in variants.items():
                fits: list[FitScores] = []
                results[corpus][family][variant] = fits
                for seed in range(arguments.seeds):
                    fits.append(fit(problem, temperature, seed, prior, arguments.jobs))
                    print(
                        f"{corpus}, {family}, {variant}, seed {seed}: ELBO {fits[-1].elbo:.4f}, "
                        f"validation {fits[-1].validation:.4f}, test {fits[-1].test:.4f}, "
                        f"{fits[-1].seconds:.1f} s{', warned' if fits[-1].warned else ''}",
                        flush=True,
                    )
    print(f"\n{chosen_table(results)}\n\n{full_table(results)}")


if __name__ == "__main__":
    main()
