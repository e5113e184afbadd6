"""Effects against sums by hand, another library's numbers, and planted truth."""

import os
import warnings
from contextlib import suppress
from datetime import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn import config_context
from sklearn.decomposition import NMF

from annealvi import TemperedLDA, TopicModel
from annealvi.exceptions import BadParameter
from annealvi.topics import describe, estimate_effects, refit, shares
from annealvi.topics.effects import numbers_in
from annealvi.topics.refits import Refits
from tests.asserts import refused
from tests.marks import cases

N, K = 40, 3
ALIKE = [0.1 + 0.2] * 9 + [0.3] * (N - 9)
TIMES = pd.date_range("2020-01-31", periods=N)
RNG = np.random.RandomState(0)
DRAWS, VALUES = RNG.dirichlet([1.0, 2, 0.5], size=(5, N)), RNG.normal(size=N)
PARTY = np.where(VALUES > 0.3, "left", "right")
DATA = pd.DataFrame({"x": VALUES, "party": PARTY, "n": np.arange(N)})
RIGHT = (PARTY == "right").astype(float)
MATRIX = np.column_stack([np.ones(N), RIGHT, VALUES, RIGHT * VALUES])  # of ~ party * x


@pytest.mark.parametrize("clusters", [None, np.arange(N) % 7])
def test_numbers_are_those_of_topica(clusters):
    # topica 0.62, estimate_effect(draws, [x, x^2], cluster=clusters): the terms x and x^2
    estimates = [0.04482042, 0.00824683, -0.04433000, -0.00703885, -0.00049042, -0.00120797]
    errors = [0.06272706, 0.04703415, 0.05154199, 0.04742302, 0.05738058, 0.04979648]
    of_clusters = [0.05958370, 0.04326700, 0.04125414, 0.04432312, 0.05659974, 0.05014211]
    table = estimate_effects(DRAWS, "~ x + {x**2}", DATA, clusters=clusters).table
    table = table[table.term != "Intercept"]
    assert_allclose(table.estimate, estimates, atol=1e-8, rtol=0)
    assert_allclose(table.std_error, errors if clusters is None else of_clusters, atol=1e-8, rtol=0)


@pytest.mark.parametrize("clusters", [None, np.arange(N) % 7])
def test_a_matrix_is_taken_as_it_is(clusters):
    effects = estimate_effects(DRAWS, "~ party * x", DATA, clusters=clusters)
    assert effects.terms == ["Intercept", "party[T.right]", "x", "party[T.right]:x"]
    assert_array_equal(effects.table.topic, np.repeat(range(K), 4))
    same = estimate_effects(DRAWS, pd.DataFrame(MATRIX, columns=list("abcd")), clusters=clusters)
    for column in ("estimate", "std_error"):
        assert_allclose(same.table[column], effects.table[column])
    assert same.terms == list("abcd")


def test_one_draw_has_the_intervals_of_least_squares():
    table = estimate_effects(DRAWS[0], "~ x", DATA).table
    for k in range(K):
        line = stats.linregress(DATA.x, DRAWS[0, :, k])
        row = table[(table.topic == k) & (table.term == "x")].iloc[0]
        half = stats.t.ppf(0.975, N - 2) * line.stderr
        assert_allclose([row.low, row.high], [line.slope - half, line.slope + half])
        assert_allclose(row.p_value, line.pvalue)


def test_rubins_degrees_of_freedom():
    table = estimate_effects(DRAWS, np.ones((N, 1))).table
    means = DRAWS.mean(axis=1)
    within = np.mean(DRAWS.var(axis=1, ddof=1) / N, axis=0)
    between = 1.2 * means.var(axis=0, ddof=1)
    freedom = (within + between) ** 2 / (within**2 / (N - 1) + between**2 / 4)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(within + between)
    assert_allclose(table.high - table.estimate, half)


def test_contrasts_and_mean_shares():
    effects = estimate_effects(DRAWS, "~ party * x", DATA)
    coefficients = effects.table.pivot(index="topic", columns="term", values="estimate")
    expected = coefficients["party[T.right]"] + coefficients["party[T.right]:x"] * DATA.x.mean()
    found = effects.contrast({"party": "right"}, {"party": "left"})
    assert_allclose(found.estimate, expected)
    back = effects.contrast({"party": "left"}, {"party": "right"})
    assert_allclose(back[["estimate", "low"]], -found[["estimate", "high"]])
    same = effects.contrast({"x": 1}, {"x": 1})[["estimate", "std_error", "low", "high"]]
    assert (same == 0).all(axis=None)
    by_party = effects.shares("party")
    assert_array_equal(by_party.party, ["left", "right"] * K)
    pairs = by_party.pivot(index="topic", columns="party", values="share")
    assert_allclose(pairs.right - pairs.left, found.estimate)
    assert_allclose(by_party.groupby("party").share.sum(), 1)
    curve = effects.shares({"x": None, "party": ["left"]})
    assert 15 * K < len(curve) <= 25 * K
    assert set(curve.x) <= set(DATA.x)
    assert (curve.x.min(), curve.x.max()) == (DATA.x.min(), DATA.x.max())
    at = effects.shares({"x": 1.0, "party": "left"})
    assert_allclose(at.share, coefficients["Intercept"] + coefficients["x"])
    # at values of all covariates the interval is that of the regression's line
    row = np.array([1.0, 0.0, 1.0, 0.0])
    moved = MATRIX @ np.linalg.inv(np.array([row, *np.eye(4)[1:]]))  # its first term is that line
    assert_allclose(at.std_error, estimate_effects(DRAWS, moved).table.std_error[::4])


def test_splines_and_levels():
    effects = estimate_effects(DRAWS, "~ bs(n, df=5) + C(n % 2)", DATA)
    assert len(effects.terms) == 7 and len(effects.shares("n")) == 25 * K
    refused("have in the data", effects.shares, {"n": 0.5}, error=BadParameter)
    assert estimate_effects(DRAWS, "~ y", {"y": [1, 2, 3, 4] * 10}).values("y") == [1, 2, 3, 4]


@cases(
    "formula, change, message",
    ("~ s(x)", {}, "'formula' parameter of estimate_effects must be a formula.*'s' is not"),
    ("~ wing", {}, "columns of 'data' are \\['x', 'party', 'n'\\]"),
    ("x ~ party", {}, "without a left side, such as '~ party'"),
    ("~ x +", {}, r"must be a formula such as[^\x1b]*$"),
    ("~ x + {2 * x}", {}, r"are linearly independent. Got \['2 \* x'\]"),
    ("~ x", {"data": {"x": ALIKE}}, r"differ .* Got \['x'\]"),
    ("~ center(x)", {"data": {"x": ALIKE}}, r"Got \['x'\] .* constant"),
    ("~ scale(x)", {"data": {"x": [2020] * N}}, r"Got \['x'\] .* constant"),
    ("~ land", {"data": {"land": ["Chile"] * N}}, r"Got \['land'\] .* constant"),
    ("~ C(x)", {"data": {"x": [True] * N}}, r"Got \['x'\] .* constant"),
    ("~ x", {"data": {"x": [np.inf] + [1.0] * (N - 1)}}, r"terms are finite. Got \['x'\]"),
    ("~ label", {"data": {"label": range(N)}}, r"whose names are not in .* Got \['label'\]"),
    ("~ {1 / n}", {}, r"terms are finite. Got \['1 / n'\]"),
    ("~ x", {"data": None}, "'data' parameter .* must be a DataFrame or a dict"),
    ("~ x", {"data": {"x": [1.0]}}, "one row for each of the 40 documents. Got '1 rows"),
    ("~ x", {"data": {"x": [1.0], "y": [1, 2]}}, "'data' parameter .* must be a DataFrame"),
    (np.ones((N, 1)), {}, "must be None if 'formula' is a matrix"),
    (np.ones((3, 1)), {"data": None}, "one row for each of the 40 documents. Got '3 rows"),
    (np.ones(N), {"data": None}, "must be a formula such as"),
    (np.ones((N, 2)), {"data": None}, "are linearly independent"),
    ("~ C(n)", {}, "fewer terms than the 40 documents"),
    ("~ x", {"clusters": [1] * N}, "at least two clusters"),
    ("~ x", {"clusters": [1]}, "one entry for each of the 40 documents"),
    ("~ x", {"clusters": [None, *range(1, N)]}, r"'clusters\[0\]' parameter"),
    ("~ x", {"shares": np.ones(3)}, "'shares' parameter .* must be an array of shape"),
    ("~ x", {"shares": np.full((N, K), np.nan)}, "finite numbers"),
)
def test_what_is_refused(formula, change, message):
    given = {"shares": DRAWS, "data": DATA, **change}
    refused(message, estimate_effects, given.pop("shares"), formula, **given, error=BadParameter)


def test_columns_of_every_kind():
    party, expected = DATA.party, estimate_effects(DRAWS, "~ party", DATA)
    kinds = {
        "string": party.astype("string"),
        "category": pd.Categorical(party, ["centre", "left", "none", "right"]),
        "object": party.astype(object),
    }
    for kind, values in kinds.items():
        found = estimate_effects(DRAWS, "~ party", {"party": values})
        assert found.terms == expected.terms, kind
        assert_allclose(found.shares("party").share, expected.shares("party").share)
        assert found.values("party") == ["left", "right"]
    # the order of categories stays, and a level of documents that are left out is none
    ordered = pd.Series(pd.Categorical(party, ["right", "left", "centre"]))
    ordered[0] = "centre"
    x = DATA.x.where(ordered != "centre")
    found = estimate_effects(DRAWS, "~ party + x", {"party": ordered, "x": x})
    assert found.terms == ["Intercept", "party[T.left]", "x"]
    assert found.values("party") == ["right", "left"]
    numbers = estimate_effects(DRAWS, "~ n", {"n": pd.array(DATA.n, dtype="Int64")})
    assert_allclose(numbers.table.estimate, estimate_effects(DRAWS, "~ n", DATA).table.estimate)
    mixed = estimate_effects(DRAWS, "~ who", {"who": [1, "a"] * (N // 2)})
    assert mixed.values("who") == [1, "a"]
    contrast, terms = mixed.contrast({"who": "a"}, {"who": 1}), mixed.table.set_index("term")
    assert_allclose(contrast.estimate, terms.estimate["who[T.a]"])


@cases("term", "x", "scale(x)", "cr(x, df=3, constraints='center')", "bs(x, df=4)")
def test_documents_with_missing_values_are_left_out(term):
    """Also of terms that depend on all documents."""
    data = DATA.copy()
    data.loc[[3, 5], "x"] = np.nan
    kept = data.x.notna().to_numpy()
    found = estimate_effects(DRAWS, f"~ {term}", data)
    assert found.n_documents == N - 2
    expected = estimate_effects(DRAWS[:, kept], f"~ {term}", data[kept]).table
    assert_allclose(found.table[["estimate", "std_error"]], expected[["estimate", "std_error"]])


@pytest.mark.parametrize("data", [[[1.0], [2.0, 3.0]], [[], 1.0], [{"x": 1.0}, None]])
def test_rows_that_are_no_table(data):
    refused(
        r"'data' .* a DataFrame, or a dict of columns",
        estimate_effects,
        np.ones((3, 2)),
        "~ x",
        data,
    )


def test_values_that_are_refused():
    effects = estimate_effects(DRAWS, "~ party + x", DATA)
    party, one_of = {"party": "right"}, r"one of \['x', 'party'\]"
    for method, given, message in (
        ("contrast", [{"party": "l"}, party], r"first\['party'\].* \['left', 'right'\]. Got 'l"),
        ("contrast", [{"x": 1}, {"x": "a"}], r"second\['x'\].* must be a finite number. Got 'a'"),
        ("shares", [{"x": np.nan}], r"at\['x'\].* must be a finite number. Got nan"),
        ("shares", [{"x": []}], r"at\['x'\].* a value or a list of values. Got \[\]"),
        *(("values", [v], f"'covariate' parameter .* {one_of}") for v in ("day", 3, ["x"])),
    ):
        refused(message, getattr(effects, method), *given, error=BadParameter)
    strings = list(np.array(DATA["party"], str))
    for column in (strings, pd.Series(strings).astype("category")):
        numpy_strings = estimate_effects(DRAWS, "~ party", pd.DataFrame({"party": column}))
        refused(r"one of \['left', 'right'\]", numpy_strings.contrast, {"party": "l"}, party)
    message = r"values of some of the covariates \['x', 'party'\]"
    for wrong in ("day", {"day": 1}, {}, 3):
        refused(message, effects.shares, wrong, error=BadParameter)


def test_the_known_effect_of_an_experiment():
    # Gadarian and Albertson 2014, in the fit that R's stm ships: -.161, standard error .030
    path = Path(os.environ.get("ANNEALVI_DATA", "../shared/data")) / "gadarian_fit.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with np.load(path) as file:
        theta, treatment = file["theta"], file["treatment"]
    # the fit has no covariance of its logistic normal; that of the documents stands for it
    eta = np.log(theta[:, :2] / theta[:, 2:])
    design = np.column_stack([np.ones(len(eta)), treatment])
    errors = eta - design @ np.linalg.lstsq(design, eta, rcond=None)[0]
    rng = np.random.RandomState(0)
    spread = rng.multivariate_normal([0, 0], errors.T @ errors / len(eta), size=(100, len(eta)))
    draws = np.exp(np.insert(eta + spread, 2, 0, axis=2))
    draws /= draws.sum(axis=2, keepdims=True)
    table = estimate_effects(draws, "~ treatment", {"treatment": treatment}).table
    row = table[(table.topic == 0) & (table.term == "treatment")].iloc[0]
    assert abs(row.estimate + 0.161) < 0.01 and abs(row.std_error - 0.030) < 0.005


def planted(seed=0, D=600, V=60):
    """Counts of documents of two groups, of which the second has .3 more of the first topic."""
    rng = np.random.RandomState(seed)
    group = np.arange(D) % 2
    means = np.where(group[:, np.newaxis], [0.55, 0.225, 0.225], [0.25, 0.375, 0.375])
    theta = np.array([rng.dirichlet(3 * mean) for mean in means])
    topics = np.repeat(np.eye(3), V // 3, axis=1) / (V // 3)
    return np.array([rng.multinomial(60, p) for p in theta @ topics]), group, topics


@pytest.fixture(scope="module")
def summary():
    X, _, _ = planted()
    return describe(TemperedLDA(3, random_state=0).fit(X), X, refits=4)


def test_a_planted_effect(summary):
    _, group, topics = planted()
    k = int((summary.topics @ topics.T)[:, 0].argmax())
    table = summary.effects("~ group", {"group": group}, topics=[k]).table
    row = table[table.term == "group"].iloc[0]
    assert row.low < 0.3 < row.high and row.low > 0.2
    assert row.found_again == 1 and row.label == summary.labels[k]
    assert_array_equal(table.topic, [k, k])


def effects_with(refits):
    """The table of effects if these were the refits."""
    X, group, _ = planted()
    summary = describe(TemperedLDA(3, random_state=0).fit(X), X, refits=refits)
    return summary.effects("~ group", {"group": group}).table


def test_refits_widen_by_their_own_spread(summary):
    _, group, _ = planted()
    without = effects_with(0)
    found = summary.effects("~ group", {"group": group}).table
    least_squares = np.linalg.pinv(np.column_stack([np.ones(len(group)), group]))
    of_refits = [(least_squares @ own.astype(float)).T for own in summary.refits.shares]
    between = 1.25 * np.var(of_refits, axis=0, ddof=1)
    assert_allclose(found.estimate, without.estimate)
    assert_allclose(found.std_error**2, without.std_error**2 + between.ravel())
    assert "found_again" not in without
    assert summary.effects("~ group", {"group": group}).table.equals(found)  # each time


def test_a_topic_that_is_not_found_again_has_no_interval(summary):
    similarity = summary.refits.similarity.copy()
    similarity[2:, 1] = 0.5  # two refits have found it, which is one too few
    refits = Refits(similarity, summary.refits.shares, summary.refits.checksum)
    assert_allclose(refits.found_again, [1, 0.5, 1])
    table = effects_with(refits)
    missing = table[table.topic == 1]
    assert missing[["std_error", "low", "high"]].isna().all(axis=None)
    assert set(missing.reason) == {"2 of 4 refits found the topic; an interval needs 3"}
    assert table[table.topic != 1].notna().all(axis=None) and table.estimate.notna().all()
    similarity[2, 1] = 0.7
    with_three = effects_with(Refits(similarity, summary.refits.shares, summary.refits.checksum))
    assert with_three.notna().all(axis=None)


def test_the_reason_of_a_wide_interval_is_that_refits_differ(summary):
    X, group, _ = planted()
    shares = summary.refits.shares.copy()
    shares[::2, :, 0] *= 0.2  # the share of topic 0 differs between refits
    refits = Refits(summary.refits.similarity, shares, summary.refits.checksum)
    table = effects_with(refits)
    assert table[table.topic == 0].reason.str.endswith("is the difference between refits").any()
    described = describe(TemperedLDA(3, random_state=0).fit(X), X, refits=refits)
    total = described.by_group(group, value="std_error").iloc[:, 1:]
    between = described.by_group(group, value="refits").iloc[:, 1:]
    without = describe(TemperedLDA(3, random_state=0).fit(X), X)
    of_documents = without.by_group(group, value="std_error").iloc[:, 1:]
    assert_allclose(total**2, of_documents**2 + between**2, rtol=1e-9)
    assert (between.iloc[:, 0] ** 2 > 0.5 * total.iloc[:, 0] ** 2).all()
    refused("'share' or 'std_error' without refits", without.by_group, group, value="refits")


def test_refits_do_not_depend_on_the_output_that_is_set_for_transformers():
    X, _, _ = planted(D=60)
    lda = TemperedLDA(3, random_state=0).fit(X)
    expected = refit(lda, X, 2)
    with config_context(transform_output="pandas"):
        assert_array_equal(refit(lda, X, 2).shares, expected.shares)
        assert_array_equal(describe(lda, X, refits=2).refits.shares, expected.shares)


def test_refits_draw_clusters():
    X, _, _ = planted(D=60)
    lda = TemperedLDA(3, random_state=0).fit(X)
    # each document in a cluster of its own: the same draws as of documents
    plain = refit(lda, X, 2)
    assert_array_equal(
        refit(lda, X, 2, clusters=[f"author {n}" for n in range(60)]).shares, plain.shares
    )
    authors = np.arange(60) // 20  # three authors: a refit leaves out whole authors
    drawn = []

    class Spy(TemperedLDA):
        def fit(self, X, y=None, **options):
            drawn.append(sparse.csr_matrix(X).toarray())
            return super().fit(X, y, **options)

    refit(Spy(3, random_state=0).fit(X), X, 4, clusters=authors)
    by_author = [np.asarray(X[authors == a]) for a in range(3)]
    n_missing = 0
    for sample in drawn[1:]:
        assert len(sample) == 60
        n_times = [{(sample == row).all(axis=1).sum() for row in rows} for rows in by_author]
        assert all(len(times) == 1 for times in n_times)  # all documents of an author
        n_missing += {0} in n_times
    assert n_missing
    summary = describe(lda, X, refits=2, clusters=authors)
    assert_array_equal(summary.refits.shares, refit(lda, X, 2, clusters=authors).shares)
    refused("at least two clusters", refit, lda, X, 2, clusters=[0] * 60)
    refused(r"'clusters\[1\]'", refit, lda, X, 2, clusters=[0, None] * 30)
    refused("'clusters' .* None without refits", describe, lda, X, clusters=authors)


@pytest.mark.slow
def test_refits_do_not_depend_on_the_number_of_jobs():
    X, _, _ = planted(D=100)
    lda = TemperedLDA(3, random_state=0).fit(X)
    one, two = (refit(lda, X, 3, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_array_equal(one.shares, two.shares)
    assert_array_equal(one.similarity, two.similarity)
    assert one.shares.shape == (3, 100, 3)
    assert_allclose(one.shares.sum(axis=2), 1, rtol=1e-5)
    assert (one.found_again == 1).all()
    assert repr(one) == "<3 refits of 3 topics: on average a refit found 100% of the topics again>"
    assert not np.array_equal(refit(lda, X, 3, random_state=1).shares, one.shares)


def test_refits_are_of_a_model_and_its_documents(summary):
    X, _, _ = planted()
    other = TemperedLDA(3, random_state=1, max_iter=1)
    with warnings.catch_warnings(action="ignore"):
        other.fit(X)
    for model, documents in ((other, X), (TemperedLDA(3, random_state=0).fit(X), X[:50])):
        with pytest.raises(BadParameter, match="refits of this model and these documents"):
            describe(model, documents, refits=summary.refits)
    with pytest.raises(BadParameter, match=r"'refits' parameter of describe must be an int"):
        describe(other, X, refits=-1)
    message = "a fitted TemperedLDA or TopicModel"
    refused(message, describe, NMF(2).fit(X), X, refits=2, error=TypeError)


def test_texts_are_refitted_with_the_words_of_the_model():
    texts = ["stars and planets", "bread and butter"] * 10 + ["planets", "butter on stars"]
    model = TopicModel(n_topics=2, random_state=0).fit(texts)
    frame = pd.DataFrame({"text": texts, "kind": ["a", "b"] * 11}, index=range(100, 122))
    found = describe(model, frame.text, refits=3)
    assert found.refits.shares.shape == (3, 22, 2)
    effects = found.effects("~ kind", frame.sample(frac=1, random_state=0))
    assert effects.table.equals(found.effects("~ kind", {"kind": ["a", "b"] * 11}).table)
    # a Series in a dict too is read by its index
    shuffled = {"kind": frame.kind.sample(frac=1, random_state=0)}
    assert effects.table.equals(found.effects("~ kind", shuffled).table)
    with pytest.raises(BadParameter, match=r"data\['kind'\].* a Series with the index of the doc"):
        found.effects("~ kind", {"kind": frame.kind.reset_index(drop=True)})


def test_documents_without_words_are_left_out():
    X, group, _ = planted(D=80)
    X[:5] = 0
    lda = TemperedLDA(3, random_state=0).fit(X)
    effects = describe(lda, X).effects("~ group", {"group": group})
    assert effects.n_documents == 75
    assert repr(effects).endswith("2 terms on 3 topics in 75 documents, topics treated as known>")


@pytest.mark.slow
def test_errors_of_groups_are_those_of_many_draws(summary):
    _, group, _ = planted()
    names = np.array(["a", "b"])[group]
    errors = summary.by_group(names, value="std_error")
    gamma = summary.shares * summary.concentration[:, np.newaxis]
    rng = np.random.RandomState(0)
    n = summary.lengths[:, np.newaxis]
    for row in range(2):
        own = group == row
        m, words = own.sum(), n[own].sum()
        draws = [rng.standard_gamma(gamma[own]) for _ in range(2000)]
        draws = [theta / theta.sum(axis=1, keepdims=True) for theta in draws]
        of_draws = np.array([(n[own] * theta).sum(axis=0) / words for theta in draws])
        spreads = ((n[own] * (t - mean)) ** 2 for t, mean in zip(draws, of_draws, strict=True))
        within = m / (m - 1) * np.mean([one.sum(axis=0) for one in spreads], axis=0) / words**2
        of_refits = [(n[own] * s[own]).sum(axis=0) / words for s in summary.refits.shares]
        expected = within + of_draws.var(axis=0) + 1.25 * np.var(of_refits, axis=0, ddof=1)
        assert_allclose(errors.iloc[row, 1:].to_numpy(float), np.sqrt(expected), rtol=0.01)


def test_errors_of_periods_are_those_of_groups_and_one_document_has_none(summary):
    years = np.repeat([2000, 2001, 2003], 200)
    means = summary.over_time(years)
    errors = summary.over_time(years, value="std_error")
    of_groups = [summary.by_group(years, value=value) for value in ("share", "std_error")]
    assert_allclose(means.iloc[[0, 1, 3]], of_groups[0])
    assert_allclose(errors.iloc[[0, 1, 3]], of_groups[1])
    assert errors.iloc[2, 1:].isna().all()
    names = ["alone", *["together"] * 599]
    errors = summary.by_group(names, value="std_error")
    assert errors.loc["alone"].iloc[1:].isna().all() and errors.loc["together"].notna().all()
    refused("'value'", summary.by_group, names, value="error", error=BadParameter)


def test_covariances_of_what_was_found():
    estimates = np.array([[[1.0, 2], [5, 0]], [[3, 8], [7, 0]], [[9, 9], [9, 0]]])
    found = np.array([[True, False], [True, False], [False, True]])
    between = shares.covariance_of(estimates, found)
    assert_allclose(between[0], 1.5 * np.cov(estimates[:2, 0].T))
    assert np.isnan(between[1]).all()


RNG = np.random.default_rng(0)
PLAIN = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, 90).astype(float),
        "treated": RNG.random(90) < 0.5,
        "party": RNG.choice(["left", "right"], 90),
    }
)
FRAMES = {
    "nullable": lambda: PLAIN.convert_dtypes(),
    "category of strings": lambda: PLAIN.assign(
        party=PLAIN.party.astype("string").astype("category")
    ),
    "decimals": lambda: PLAIN.assign(age=[Decimal(str(age)) for age in PLAIN.age]),
    "objects": lambda: PLAIN.astype(object),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("formula", ["~ age + treated", "~ party * age"])
def test_columns_of_all_kinds_have_the_same_effects(formula, kind):
    shares = np.random.default_rng(1).dirichlet(np.ones(3), 90)
    expected = estimate_effects(shares, formula, PLAIN)
    found = estimate_effects(shares, formula, FRAMES[kind]())
    assert found.terms == expected.terms
    assert_allclose(found.table["estimate"], expected.table["estimate"])
    assert found.shares(found.covariates[-1]).shape == expected.shares(found.covariates[-1]).shape


def test_frames_of_polars_and_missing_flags():
    shares = np.random.default_rng(1).dirichlet(np.ones(3), 90)
    data = PLAIN.assign(treated=PLAIN.treated.astype("boolean").where(PLAIN.index != 7))
    found = estimate_effects(shares, "~ treated", data)
    assert found.n_documents == 89 and found.terms[1].startswith("treated")
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: PLAIN[name].tolist() for name in PLAIN})
    for given in (frame, {name: frame[name] for name in frame.columns}):
        assert estimate_effects(shares, "~ party + age", given).terms[1:] == [
            "party[T.right]",
            "age",
        ]


NUMBERS = {"NA": ["NA", "3", *map(str, range(88))], "comma": [f"{n},5" for n in range(90)]}
#: Numbers that are not read, but told.
WRITTEN = {
    "millions": [f"{n},190,000" for n in range(90)],
    "per cent": [f"{n}%" for n in range(90)],
    "dollars": [f"$ {n}.50" for n in range(90)],
    "apostrophes": [f"{n}'190'000" for n in range(90)],
    "minus": [f"\u2212{n}" for n in range(90)],
    "Arabic digits": [chr(0x661 + n // 9) + chr(0x661 + n % 9) for n in range(81)] + ["١٢٣"] * 9,
    "units now and then": [f"{n} years" if n % 5 else f"{n}" for n in range(20)] + ["7", "8"] * 35,
    "one unknown": ["unknown", *np.arange(89.0)],
    "years": [f"{n} years" for n in range(90)],
    "kilograms": [f"{n}kg" for n in range(90)],
    "currency": [f"USD {n}000" for n in range(90)],
    "thousands": [f"{n}.5k" for n in range(90)],
}


@pytest.mark.parametrize("kind", NUMBERS | WRITTEN)
def test_numbers_as_texts_are_told(kind):
    shares = np.random.default_rng(1).dirichlet(np.ones(3), 90)
    with (
        pytest.warns(UserWarning, match="'amount' contains numbers as texts"),
        suppress(ValueError),
    ):
        estimate_effects(shares, "~ amount", {"amount": (NUMBERS | WRITTEN)[kind]})


@pytest.mark.parametrize(
    "codes",
    [
        [f"E{n % 12}" for n in range(90)],
        [f"NY{n % 12:02}" for n in range(90)],
        pd.Categorical(np.arange(90) % 12),
        pd.cut(np.arange(90), 12),
        [time(n % 12) for n in range(90)],
    ],
    ids=str,
)
def test_codes_and_categories_that_are_no_texts_are_not_told(codes):
    shares = np.random.default_rng(1).dirichlet(np.ones(3), 90)
    assert len(estimate_effects(shares, "~ code", {"code": codes}).terms) == 12


SHARES = np.random.default_rng(1).dirichlet(np.ones(3), 90)


@pytest.mark.parametrize("values", [PLAIN[["age"]].to_numpy(), [[age] for age in PLAIN.age]])
def test_a_column_has_one_value_for_each_document(values):
    message = r"data\['age'\].* one number, text or date for each document"
    refused(message, estimate_effects, SHARES, "~ age", {"age": values})
    unused = PLAIN.assign(words=[["a", "b"]] * 90)
    assert estimate_effects(SHARES, "~ age", unused).n_documents == 90


def test_masked_numbers_are_missing():
    masked = np.ma.masked_array(np.arange(90), np.arange(90) < 5)
    assert estimate_effects(SHARES, "~ age", {"age": masked}).n_documents == 85
    matrix = np.ma.column_stack([np.ones(90), masked])
    assert estimate_effects(SHARES, matrix).n_documents == 85


@pytest.mark.parametrize("dtype", [int, float, bool])
def test_sparse_columns(dtype):
    table = pd.get_dummies(PLAIN.party, sparse=True, dtype=dtype)
    dense = pd.get_dummies(PLAIN.party, dtype=dtype)
    for arguments in (["~ left"], []):
        results = [estimate_effects(SHARES, *arguments, frame) for frame in (table, dense)]
        assert_array_equal(results[0].table.estimate, results[1].table.estimate)


def test_a_matrix_can_be_a_table_of_numbers_of_any_kind():
    table = pd.DataFrame({"one": 1, "age": PLAIN.age, "treated": PLAIN.treated})
    expected = estimate_effects(SHARES, table.astype(float))
    decimals = [Decimal(str(age)) for age in PLAIN.age]
    for frame in (table, table.convert_dtypes(), table.assign(age=decimals)):
        effects = estimate_effects(SHARES, frame)
        assert effects.terms == ["one", "age", "treated"]
        assert_allclose(effects.table.estimate, expected.table.estimate)
    missing = table.convert_dtypes()
    missing.loc[3, "age"] = pd.NA
    assert estimate_effects(SHARES, missing).n_documents == 89
    message = r"a matrix of numbers. Got \['party \(object\)'\] instead"
    refused(message, estimate_effects, SHARES, PLAIN)


def test_tables_of_arrow_and_lazy_tables_of_polars():
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    numbers = {"one": [1.0] * 90, "age": PLAIN.age.tolist()}
    for table in (pyarrow.table(numbers), polars.DataFrame(numbers), polars.LazyFrame(numbers)):
        assert estimate_effects(SHARES, table).terms == ["one", "age"]
        assert estimate_effects(SHARES, "~ age", table).terms == ["Intercept", "age"]


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_with_marks_and_commas_are_read(kind):
    numbers, is_odd = numbers_in(pd.Series(NUMBERS[kind], dtype=object), pd)
    assert is_odd and numbers.dtype == float and numbers.iloc[-1] in (87.0, 89.5)
    assert numbers_in(pd.Series(["1,234", "2,345"], dtype=object), pd)[0] is None
    assert numbers_in(pd.Series(["1", "b"], dtype=object), pd)[0] is None
