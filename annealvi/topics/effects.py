"""Effects: how the shares of topics depend on covariates of the documents, with intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import product
from numbers import Real
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.linalg import solve_triangular
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state

from annealvi._optional import import_optional
from annealvi.checks import as_array, check_count, checked
from annealvi.exceptions import BadParameter, warn_user
from annealvi.topics.described import DescribedDocuments
from annealvi.topics.shares import cluster_numbers, covariance_of, in_order
from annealvi.topics.times import are_dates, read_times
from annealvi.topics.vectorizer import column_of, is_list
from annealvi.topics.words import Labels

#: `Effects.shares` uses at most this number of values of a numeric covariate.
POINTS = 25
#: It uses all values of a covariate that has at most this number of distinct values.
FEW_VALUES = 10
#: A column depends on other columns if the relative length of its orthogonal part is smaller.
_DEPENDENT = 1e-9
#: Standard deviation that is assumed for shares that are the same in all documents.
_ROUNDING = 1e-12
#: Texts that mean a missing number, in lower case, and numbers whose commas may separate thousands.
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", ".", "-")
THOUSANDS = r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?"
#: Numbers with signs or a unit, such as 1,190,000, 5%, 3.5k, 12 years or USD 120.
_LIKE_A_NUMBER = r"(?:[A-Z]{3})?[\W\d_]*\d\D{0,15}"
#: Columns of tables of effects; covariates must have other names.
_COLUMNS = {
    "topic",
    "label",
    "share",
    "std_error",
    "low",
    "high",
    "p_value",
    "found_again",
    "reason",
}
#: Says that most of a squared error comes from differences between refits.
DIFFERENT = "{:.0%} of the squared error is the difference between refits"
#: What stands before the name of a covariate that a formula treats as a category.
CATEGORY = r"\bC\(\s*"
_FORMULA = "a formula such as '~ party + bs(day, df=5)', or a matrix of numbers"


class Design(NamedTuple):
    """The matrix of a regression, and what is needed to compute its rows for other data."""

    matrix: NDArray  # (n_kept, n_terms)
    terms: list[str]
    kept: NDArray  # the documents in the regression
    data: Any  # a DataFrame of the covariates of these documents
    spec: Any  # the ModelSpec of formulaic, or None if the covariates are the columns themselves

    def of(self, data: Any) -> NDArray:
        """Return the matrix of the same terms for other values of the covariates."""
        # without a formula, the covariates are the columns of the matrix
        if self.spec is None:
            return data.to_numpy(float)
        formulaic = import_optional("formulaic", "A formula")
        try:
            with catch_warnings():
                # an unknown level is an error: it would be treated as the first level
                simplefilter("error", formulaic.errors.DataMismatchWarning)
                return self.spec.get_model_matrix(data).to_numpy(float)
        except (formulaic.errors.FormulaicError, formulaic.errors.DataMismatchWarning) as error:
            raise BadParameter(
                "at", "values that the covariates have in the data", str(error)
            ) from None


class ErrorSource(NamedTuple):
    """A source of error: covariances of the estimates, and their degrees of freedom."""

    covariance: NDArray  # (K, n_terms, n_terms)
    freedom: NDArray  # (K,)

    @classmethod
    def between(cls, estimates: NDArray, is_valid: NDArray) -> ErrorSource:
        """Compute the covariances of estimates of shape (m, K, n_terms); see `covariance_of`.

        `is_valid`, of shape (m, K), tells which estimates are used.
        """
        return cls(covariance_of(estimates, is_valid), is_valid.sum(axis=0) - 1.0)


class Effects:
    """Effects of covariates on topic shares, from `TopicSummary.effects` or `estimate_effects`.

    Parameters
    ----------
    design : Design
    estimate : ndarray of shape (K, n_terms)
    errors : list of ErrorSource
        The covariances of the estimates, one for each source of error.
    labels : dict of int to str
        The numbers and labels of the K topics.
    found_again : ndarray of shape (K,) or None
        For each topic, the share of refits (further fits of the model) that found a similar topic.
    missing : list of str or None
        With refits, for each topic, why there is no interval, or an empty text.

    Attributes
    ----------
    terms, covariates : list of str
        The terms of the formula, and the covariates that it uses.
    n_documents : int
        Number of documents in the regression.
    table : pandas.DataFrame
        A row for each topic and term.  The columns are ``topic``, ``label``, ``term``,
        ``estimate``, ``std_error``, the limits ``low`` and ``high`` of the 95% interval and the
        two-sided ``p_value``.  With refits there are two more columns: ``found_again`` is the share
        of refits that found a similar topic, and ``reason`` says why there is no interval, or that
        most of the error comes from differences between refits.
    """

    def __init__(
        self,
        design: Design,
        estimate: NDArray,
        errors: list[ErrorSource],
        labels: dict[int, str],
        found_again: NDArray | None = None,
        missing: list[str] | None = None,
    ) -> None:
        """Store the estimates; see the class for the arguments."""
        self._design = design
        self._estimate = estimate
        self._errors = errors
        self._labels = labels
        self._found_again = found_again
        self._missing = missing
        self.terms = design.terms
        self.covariates = list(map(str, design.data))
        self.n_documents = len(design.matrix)
        # each term alone: the rows of the identity matrix select them
        self.table = self._frame(np.eye(len(self.terms)), {"term": self.terms})

    def __repr__(self) -> str:
        uncertainty = "topics treated as known" if self._found_again is None else "with refits"
        return (
            f"<Effects of {len(self.terms)} terms on {len(self._labels)} topics in "
            f"{self.n_documents} documents, {uncertainty}>"
        )

    def _repr_html_(self) -> str:
        from annealvi.plot.notebook import effects_html

        return effects_html(self)

    @checked
    def contrast(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> Any:
        """Compare the mean shares of topics for two values of covariates.

        Parameters
        ----------
        first, second : dict of str to object
            Values of some covariates, such as ``{"party": "left"}``.  The mean shares are computed
            as if all documents had these values, with their other covariates unchanged.

        Returns
        -------
        pandas.DataFrame
            A row for each topic, with the columns of `table` except ``term``.  ``estimate`` is the
            mean share with the values `first` minus the mean share with the values `second`.

        Raises
        ------
        ValueError
            If a covariate or a value does not exist.
        """
        difference = self._mean_row(first, "first") - self._mean_row(second, "second")
        return self._frame(difference[None], columns={})

    @checked
    def shares(self, at: str | Mapping[str, Any]) -> Any:
        """Compute the mean shares of topics for values of covariates.

        Parameters
        ----------
        at : str or dict of str to object
            The name of a covariate, or a dict from names of covariates to a value, a list of values
            or None.  A name alone, or None, means all values of the covariate.  If these are more
            than ten numbers, at most 25 of them are used, spaced about evenly.  The mean shares are
            computed as in `contrast`.

        Returns
        -------
        pandas.DataFrame
            A row for each topic and combination of values.  The columns are the covariates and the
            columns of `table` without ``term`` and ``p_value``, with ``share`` for ``estimate``.

        Raises
        ------
        ValueError
            If a covariate or a value does not exist.
        """
        grid = self._checked({at: None} if isinstance(at, str) else at, "at")
        for name, values in grid.items():
            if values is None:
                grid[name] = self.values(name)
            elif not isinstance(values, list | tuple | np.ndarray):
                grid[name] = [values]
            elif not len(values):
                raise BadParameter(f"at[{name!r}]", "a value or a list of values", values)
        # all combinations of the values of the covariates
        points = [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]
        rows = np.array([self._mean_row(point, "at") for point in points])
        columns = {name: [point[name] for point in points] for name in grid}
        frame = self._frame(rows, columns).drop(columns="p_value")
        return frame.rename(columns={"estimate": "share"})

    @checked
    def values(self, covariate: str) -> list:
        """Return the values of a covariate that `shares` uses."""
        if not isinstance(covariate, str) or covariate not in self._design.data:
            raise BadParameter("covariate", f"one of {self.covariates}", covariate)
        column = self._design.data[covariate]
        is_category = hasattr(column, "cat")
        unique = column.cat.categories if is_category else column.unique()
        # as values of Python
        levels = [level.item() if isinstance(level, np.generic) else level for level in unique]
        if is_category:
            return levels
        try:
            levels.sort()
        except TypeError:  # the values have different types
            levels.sort(key=str)
        if column.dtype.kind in "iuf" and len(levels) > FEW_VALUES:
            # only values in the data, because a value between them is not a level of C(year)
            points = np.linspace(levels[0], levels[-1], POINTS)
            # the number of the level that is nearest to each point
            nearest = np.abs(np.subtract.outer(levels, points)).argmin(axis=0)
            return [levels[number] for number in np.unique(nearest)]
        return levels

    def _checked(self, at: Any, name: str) -> dict[str, Any]:
        """Return values of covariates as a new dict; `name` is the name of the parameter `at`."""
        if not isinstance(at, Mapping) or not at or not set(self.covariates).issuperset(at):
            raise BadParameter(
                name, f"a dict with values of some of the covariates {self.covariates}", at
            )
        return dict(at)

    def _mean_row(self, at: Any, name: str) -> NDArray:
        """Return the mean row of the matrix if all documents have the values in the dict `at`.

        `name` is the name of the parameter in messages.
        """
        data = self._design.data.copy()
        for covariate, value in self._checked(at, name).items():
            dtype = data[covariate].dtype
            if dtype.kind in "iuf":
                number = as_array(value)
                if number.ndim or number.dtype.kind not in "iuf" or not np.isfinite(number):
                    raise BadParameter(f"{name}[{covariate!r}]", "a finite number", value)
            elif value not in self.values(covariate):
                raise BadParameter(
                    f"{name}[{covariate!r}]", f"one of {self.values(covariate)}", value
                )
            # a column of dtype object keeps it, so that texts such as "1" do not become numbers
            data[covariate] = np.full(len(data), value, object) if dtype.kind == "O" else value
        return self._design.of(data).mean(axis=0)

    def _frame(self, rows: NDArray, columns: Mapping[str, list]) -> Any:
        """Make a table of linear combinations of the estimates, for each topic.

        `rows`, of shape (n_rows, n_terms), are their coefficients.  `columns` are further columns,
        with a value for each of these rows.
        """
        pandas = import_optional("pandas", "Effects")
        estimate = self._estimate @ rows.T  # (K, n_rows)
        # the variance of each combination, from each source of error
        variances = [
            np.maximum(np.einsum("np,kpq,nq->kn", rows, source.covariance, rows), 0.0)
            for source in self._errors
        ]
        total = np.sum(variances, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Satterthwaite's formula generalises Rubin's degrees of freedom to more sources
            divisor = sum(
                variance**2 / source.freedom[:, None]
                for variance, source in zip(variances, self._errors, strict=True)
            )
            freedom = total**2 / divisor
            error = np.sqrt(total)
            p_value = 2 * stats.t.sf(np.abs(estimate) / error, freedom)
            # half the width of the interval; without error it is 0, and NaN remains NaN
            half = np.where(error > 0, stats.t.ppf(0.975, freedom) * error, error)
            between = variances[-1] / total  # with refits: NaN where an interval is missing
        n_topics, n_rows = estimate.shape
        frame = {
            "topic": np.repeat(list(self._labels), n_rows),
            "label": np.repeat(list(self._labels.values()), n_rows),
            # lists, which are repeated for each topic
            **{name: values * n_topics for name, values in columns.items()},
            "estimate": estimate.ravel(),
            "std_error": error.ravel(),
            "low": (estimate - half).ravel(),
            "high": (estimate + half).ravel(),
            "p_value": p_value.ravel(),
        }
        if self._found_again is not None:
            frame["found_again"] = np.repeat(self._found_again, n_rows)
            frame["reason"] = [
                reason or (DIFFERENT.format(share) if share > 0.5 else "")
                for reason, of_topic in zip(self._missing or (), between, strict=True)
                for share in of_topic.tolist()
            ]
        return pandas.DataFrame(frame)


# ----------------------------------------------------------------------------- designs


def design_of(formula: Any, data: Any, known: NDArray, index: Any = None) -> Design:
    """Make the matrix of a regression, without documents with missing values, and check it.

    `known` tells which documents contain words; only these are used.  `index` is the pandas index
    of the documents, if they have one.
    """
    if isinstance(formula, str):
        return _solvable(_of_formula(formula, data, known, index))
    if data is not None:
        raise BadParameter("data", "None if 'formula' is a matrix of numbers", type(data))
    pandas = import_optional("pandas", "An effect")
    if hasattr(formula, "collect") or hasattr(formula, "columns"):  # a table, which may be lazy
        frame = _table(formula, known, index, "formula")
        frame.columns = list(map(str, frame))
    else:
        values = as_array(formula)
        if values.ndim != 2:
            raise BadParameter("formula", _FORMULA, values if values.ndim else formula)
        names = [f"x{number}" for number in range(values.shape[1])]
        frame = _of_documents(pandas.DataFrame(values, columns=names), known, "formula")
    # truth values, ints or floats
    odd = [f"{name} ({dtype})" for name, dtype in frame.dtypes.items() if dtype.kind not in "biuf"]
    if odd:
        raise BadParameter("formula", _FORMULA, odd[:5])
    frame = frame.astype(float)
    # NaN is a missing value
    frame = frame[np.isfinite(frame).all(axis=1)]
    return _solvable(
        Design(
            matrix=frame.to_numpy(),
            terms=list(frame),
            kept=frame.index.to_numpy(),
            data=frame,
            spec=None,
        )
    )


def _of_formula(formula: str, data: Any, known: NDArray, index: Any) -> Design:
    """Make the matrix of a formula of the columns of `data`; see `design_of`."""
    pandas = import_optional("pandas", "An effect", "formulaic")
    formulaic = import_optional("formulaic", "A formula")
    if data is None:
        raise BadParameter("data", "a DataFrame or a dict, with a value for each document", data)
    frame = _table(data, known, index, "data")
    columns = list(map(str, frame))
    frame = frame.assign(**_numbers_of_times(formula, frame, pandas))

    def read(frame: Any) -> Any:
        """Return the matrix of the formula; an error becomes a BadParameter."""
        try:
            with np.errstate(invalid="ignore", divide="ignore"):  # for scale() of a constant
                return formulaic.model_matrix(formula, frame, context={})
        except Exception as error:  # a formula is code, so it can raise any error
            # without the colour codes of a terminal
            message = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
            raise BadParameter(
                "formula",
                _FORMULA,
                f"{formula!r}: {message}",
                f"The columns of 'data' are {columns}.",
            ) from None

    first = read(frame)
    if not hasattr(first, "columns"):
        raise BadParameter("formula", "a formula without a left side, such as '~ party'", formula)
    # again, without rows with missing values: one of them makes all rows of scale and cr NaN
    frame = frame[[name for name in frame if str(name) in first.model_spec.required_variables]]
    frame = frame.dropna().copy()
    for name in frame.select_dtypes(object):
        if all(isinstance(value, bool | np.bool_) for value in frame[name]):
            frame[name] = frame[name].astype(bool)
    for name in frame.select_dtypes("category"):
        frame[name] = frame[name].cat.remove_unused_categories()
    constant = [name for name in frame if len(frame) > 1 and _is_constant(frame[name])]
    if constant:
        raise BadParameter(
            "formula",
            "a formula of covariates that differ between documents",
            constant,
            "These covariates are constant. Remove them.",
        )
    matrix = read(frame)
    kept = matrix.index.to_numpy()  # the numbers of the documents in the regression
    return Design(
        matrix=matrix.to_numpy(float),
        terms=list(matrix),
        kept=kept,
        data=frame.loc[kept],
        spec=matrix.model_spec,
    )


def _table(data: Any, known: NDArray, index: Any, name: str) -> Any:
    """Return a table as a DataFrame of plain columns, with the rows of the `known` documents.

    The index of the result contains the numbers of documents.
    """
    pandas = import_optional("pandas", "An effect")
    if hasattr(data, "collect"):  # a lazy table of polars
        data = data.collect()
    if hasattr(data, "columns") and not hasattr(data, "iloc"):  # of polars or Arrow
        names = getattr(data, "column_names", data.columns)
        data = {column: data[column] for column in names}
    if isinstance(data, Mapping):
        columns = {
            key: column_of(in_order(column, index, f"{name}[{key!r}]"))
            for key, column in data.items()
        }
        # a list would lose masks and categories
        kinds = (np.ma.MaskedArray, pandas.Categorical, pandas.CategoricalIndex)
        data = {
            key: column
            if hasattr(column, "iloc") or isinstance(column, kinds) or not is_list(column)
            else list(column)
            for key, column in columns.items()
        }
    data = in_order(data, index, name)
    try:
        with catch_warnings():
            simplefilter("error")  # pandas may only warn of rows of different lengths
            frame = pandas.DataFrame(data).reset_index(drop=True)
    except (ValueError, TypeError, Warning) as error:
        raise BadParameter(name, "a DataFrame, or a dict of columns", str(error)) from None
    return _of_documents(frame, known, name).apply(plain_column, args=(pandas,))


def plain_column(column: Any, pandas: Any) -> Any:
    """Return a column in a dtype of NumPy, or as a category of objects, for formulaic."""
    dtype = column.dtype
    is_of_numpy = isinstance(dtype, np.dtype)
    if isinstance(dtype, pandas.CategoricalDtype):
        # values of Python as objects
        return column.cat.rename_categories(dtype.categories.astype(object))
    # numbers of pandas, which can be missing or sparse, and truth values
    if not is_of_numpy and dtype.kind in "biuf":
        if column.notna().all():
            return pandas.Series(column.tolist(), column.index)
        if dtype.kind != "b":
            return column.astype(float)
    if dtype.kind == "m" and not is_of_numpy:  # durations of Arrow
        return column.astype("timedelta64[ns]")
    if dtype.kind == "O" or not (is_of_numpy or isinstance(dtype, pandas.DatetimeTZDtype)):
        column = column.astype(object).where(column.notna(), None)
        known = column.dropna()
        # a column of objects that are all numbers
        if len(known) and all(
            isinstance(value, Real | Decimal) and not isinstance(value, bool) for value in known
        ):
            return column.astype(float)
    return column


def numbers_in(column: Any, pandas: Any) -> tuple[Any, bool]:
    """Read a column of texts as numbers, and say whether some were no plain numbers.

    Marks of missing values become NaN.  A comma is read as that of decimal fractions, unless it may
    separate thousands.  The result is None if a text is no number.
    """
    texts = column.dropna().astype(str).str.strip()
    is_missing = texts.str.lower().isin(MISSING)
    known = texts[~is_missing]
    commas = known.str.contains(",").any()
    # if all numbers are like 1,234, their commas may separate thousands: pandas cannot read them
    if not known.str.fullmatch(THOUSANDS).all():
        known = known.str.replace(",", ".")
    numbers = pandas.to_numeric(known, errors="coerce")
    if not len(known) or numbers.isna().any():
        return None, False
    is_odd = commas or (is_missing & (texts != "")).any()
    return numbers.reindex(column.index), is_odd  # NaN for missing values


def _in_formula(name: str, formula: str, before: str = "") -> Any:
    """Find the name of a column as a whole word in a formula, after the pattern `before`."""
    return re.search(rf"{before}(?<![\w.]){re.escape(str(name))}(?![\w.])", formula)


def _warn_of_numbers(name: Any, column: Any, pandas: Any) -> None:
    """Warn about a covariate of numbers written as texts, which are categories."""
    known = column.dropna()
    for value in known[~known.map(pandas.api.types.is_hashable).astype(bool)]:
        raise BadParameter(f"data[{name!r}]", "one number, text or date for each document", value)
    # few different texts are probably codes of categories; other objects are no texts
    if known.nunique() <= FEW_VALUES or not any(isinstance(value, str) for value in known):
        return
    share = known.astype(str).str.fullmatch(_LIKE_A_NUMBER).mean()
    if share >= 0.5 or numbers_in(column, pandas)[0] is not None:
        warn_user(
            f"The covariate {name!r} contains numbers as texts, such as {known.iloc[0]!r}. "
            "Each of them is a category. Remove units and convert them with "
            f"pandas.to_numeric, or write C({name})."
        )


def _numbers_of_times(formula: str, frame: Any, pandas: Any) -> dict[str, Any]:
    """Convert dates in a formula to numbers of years, or to texts in C(), and durations to days.

    Numbers that are written as texts are not converted; a warning tells this.
    """
    columns = {}
    for name in frame:
        if not _in_formula(name, formula):
            continue
        is_category = _in_formula(name, formula, before=CATEGORY)
        column = frame[name]
        if column.dtype.kind == "m" and not is_category:
            columns[name] = column / pandas.Timedelta(days=1)
            warn_user(
                f"The covariate {name!r} contains durations, which are converted to days. "
                f"Effects are per day. Use C({name}) to treat durations as categories."
            )
        marks = column[column.astype(str).str.strip().str.lower().isin(MISSING)].dropna()
        if not is_category:  # where a mark such as "NA" is a category
            column = column.drop(marks.index).reindex(column.index)
        if not are_dates(column):
            if not is_category and column.dtype.kind == "O":
                _warn_of_numbers(name, frame[name], pandas)
            continue
        dates = read_times(column.tolist(), pandas, f"data[{name!r}]")
        times = pandas.Series(dates, frame.index)
        if is_category:
            columns[name] = times.dt.strftime("%Y-%m-%d").astype(object)
        else:
            days = (times - pandas.Timestamp(1970, 1, 1)) / pandas.Timedelta(days=1)
            columns[name] = 1970 + days / 365.2425  # the mean length of a year in days
            warn_user(
                f"The covariate {name!r} contains dates, which are converted to years: 2020-07-01 "
                f"becomes 2020.5. Effects are per year. Use C({name}) to treat dates as categories."
                + "".join(f" {mark!r} is a missing date." for mark in marks.unique())
            )
    return columns


def _is_constant(column: Any) -> bool:
    """Whether all values are equal; numbers may differ by rounding errors."""
    if column.dtype.kind in "iuf":
        values = column.to_numpy(float)
        rounding = 8 * np.finfo(np.float64).eps * np.abs(values).max()
        return np.isfinite(values).all() and np.ptp(values) <= rounding
    return column.nunique() == 1


def _of_documents(frame: Any, known: NDArray, name: str) -> Any:
    """Return the rows of documents that contain words, for which `known` is True.

    `name` is the name of the parameter in messages.
    """
    if len(frame) != len(known):
        raise BadParameter(
            name,
            f"a table with one row for each of the {len(known)} documents",
            f"{len(frame)} rows",
        )
    return frame[known]


def _solvable(design: Design) -> Design:
    """Check that the terms can be estimated, and that covariates have allowed names."""
    matrix = design.matrix
    n, n_terms = matrix.shape
    taken = sorted(_COLUMNS.intersection(design.data))
    if taken:
        raise BadParameter(
            "formula",
            f"a formula of covariates whose names are not in {sorted(_COLUMNS)}",
            taken,
            "Tables of effects have columns with these names. Rename the covariates.",
        )
    if not 0 < n_terms < n:
        raise BadParameter(
            "formula",
            f"a formula with fewer terms than the {n} documents with words and all covariates",
            f"{n_terms} terms",
        )
    terms = np.array(design.terms)
    finite = np.isfinite(matrix).all(axis=0)
    if not finite.all():
        raise BadParameter("formula", "a formula whose terms are finite", terms[~finite].tolist())
    lengths = np.linalg.norm(matrix, axis=0)
    # of the component of each column that is orthogonal to the columns before it
    orthogonal_lengths = np.abs(np.diagonal(np.linalg.qr(matrix, mode="r")))
    dependent = terms[orthogonal_lengths <= _DEPENDENT * lengths].tolist()
    if dependent:
        raise BadParameter(
            "formula",
            "a formula whose terms are linearly independent",
            dependent,
            "These terms depend on the other terms. Remove them.",
        )
    return design


# -------------------------------------------------------------------------- regression


def _pooled(
    draws: Iterable[NDArray], design: Design, clusters: Any, n_documents: int
) -> tuple[NDArray, list[ErrorSource]]:
    """Fit least squares to each draw of the shares, and pool the results by Rubin's rules.

    A draw has the shape (n_kept, K).  `clusters` contains the cluster of each of `n_documents`, or
    is None.  Returned are the estimates, of shape (K, n_terms), and their sources of error.
    """
    matrix = design.matrix
    n, n_terms = matrix.shape
    q, r = np.linalg.qr(matrix)
    inverse = solve_triangular(r, np.eye(n_terms))  # of r
    # the covariance of least squares is bread times the variance of the errors, or the sandwich
    # bread @ meat @ bread, with which errors in the same cluster may depend on each other
    bread = inverse @ inverse.T
    membership = None
    freedom = float(n - n_terms)
    if clusters is not None:
        different, numbers = np.unique(
            cluster_numbers(clusters, n_documents, design.kept), return_inverse=True
        )
        n_clusters = len(different)
        if n_clusters < 2:
            raise BadParameter("clusters", "at least two clusters of documents", n_clusters)
        # (n_clusters, n): products with it are sums over the documents of each cluster
        membership = csr_matrix((np.ones(n), (numbers, np.arange(n, dtype=np.int64))))
        # for few clusters, as in other software
        correction = n_clusters / (n_clusters - 1) * (n - 1) / (n - n_terms)
        freedom = n_clusters - 1.0
    estimates: list[NDArray] = []
    sum_of_covariances: Any = 0.0  # a covariance for each draw would need much memory
    for shares in draws:
        estimate = inverse @ (q.T @ shares)  # (n_terms, K)
        residuals = shares - matrix @ estimate
        if membership is None:
            variances = (residuals**2).sum(axis=0) / freedom
            covariance = variances[:, None, None] * bread
        else:
            # of each term's column times the residuals, in each cluster: (n_terms, n_clusters, K)
            sums = np.stack([membership @ (residuals * column[:, None]) for column in matrix.T])
            meat = correction * np.einsum("pgk,qgk->kpq", sums, sums)
            covariance = bread @ meat @ bread
        # not 0, so that no interval of shares that are the same in all documents divides by 0
        covariance += _ROUNDING**2 * bread
        estimates.append(estimate.T)
        sum_of_covariances += covariance
    n_draws = len(estimates)
    n_topics = len(estimates[0])
    errors = [ErrorSource(sum_of_covariances / n_draws, np.full(n_topics, freedom))]
    if n_draws > 1:
        is_valid = np.ones((n_draws, n_topics), bool)
        errors.append(ErrorSource.between(np.array(estimates), is_valid))
    return np.mean(estimates, axis=0), errors


@checked
def estimate_effects(
    shares: ArrayLike, formula: Any, data: Any = None, *, clusters: Any = None
) -> Effects:
    r"""Estimate effects of covariates on topic shares, for any topic model.

    Topics are treated as known: the intervals do not allow for the uncertainty of the topics.  For
    models of annealvi, use :meth:`TopicSummary.effects`, whose intervals allow for it.

    Parameters
    ----------
    shares : array-like of shape (D, K) or (n_draws, D, K)
        Shares of topics in documents, or draws from the posterior of the shares.  With draws, the
        intervals allow for the uncertainty of the shares of each document.
    formula, data, clusters
        See :meth:`TopicSummary.effects`.

    Returns
    -------
    Effects

    Raises
    ------
    ValueError
        As in :meth:`TopicSummary.effects`, or if `shares` has a wrong shape or is not finite.

    Notes
    -----
    Each draw of the shares of a topic is regressed on the covariates by least squares.  For draw s
    of S, the estimate is :math:`\hat b_s` with the covariance :math:`V_s`.  The pooled estimate is
    the mean of :math:`\hat b_s`, and its covariance is

    .. math::
        \frac{1}{S} \sum_s V_s + \Big(1 + \frac{1}{S}\Big) \mathrm{Cov}_s(\hat b_s)

    by Rubin's rules, as in the method of composition (Treier and Jackman, "Democracy as a latent
    variable", AJPS 2008).  Intervals use Student's t distribution with Satterthwaite's degrees of
    freedom.

    Examples
    --------
    >>> import numpy as np
    >>> from annealvi.topics import estimate_effects
    >>> shares = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> effects = estimate_effects(shares, "~ party", {"party": ["a", "a", "b", "b"]})
    >>> print(effects.table[["topic", "term", "estimate"]].round(2).to_string(index=False))
     topic       term  estimate
         0  Intercept      0.85
         0 party[T.b]     -0.50
         1  Intercept      0.15
         1 party[T.b]      0.50
    """
    draws = as_array(shares)
    if draws.dtype.kind not in "biuf" or draws.ndim not in (2, 3) or 0 in draws.shape:
        raise BadParameter(
            "shares",
            "an array of shape (n_documents, n_topics) or (n_draws, n_documents, n_topics)",
            draws.shape if draws.size else shares,
        )
    draws = draws.astype(float).reshape(-1, *draws.shape[-2:])  # one draw has a first axis too
    if not np.isfinite(draws).all():
        raise BadParameter("shares", "finite numbers", "NaN or infinity")
    _, n_documents, n_topics = draws.shape
    # all documents are used, and they have no index
    design = design_of(formula, data, known=np.ones(n_documents, bool))
    estimate, errors = _pooled((draw[design.kept] for draw in draws), design, clusters, n_documents)
    # topics have no labels but their numbers
    return Effects(design, estimate, errors, {k: str(k) for k in range(n_topics)})


def of_documents(
    documents: DescribedDocuments,
    labels: Labels,
    formula: Any,
    data: Any,
    *,
    topics: Any,
    clusters: Any,
    n_draws: int,
    random_state: Any,
) -> Effects:
    """Estimate how shares depend on covariates; see `TopicSummary.effects`."""
    n_draws = check_count(n_draws, "n_draws")
    numbers = labels.numbers(range(len(labels)) if topics is None else topics)
    if len(set(numbers)) < len(numbers):
        raise BadParameter("topics", "a list of different topics", topics)
    index = documents.index
    design = design_of(formula, data, known=documents.lengths > 0, index=index)
    clusters = in_order(clusters, index, "clusters")
    kept = design.kept
    # the parameters of the Dirichlet posterior of each document's shares
    gamma = documents.shares[kept] * documents.concentration[kept, None]
    rng = check_random_state(random_state)

    def draw() -> NDArray:
        """Draw shares of topics from the posterior of each document."""
        # gamma variables divided by their sum have a Dirichlet distribution
        sizes = rng.standard_gamma(gamma)
        return (sizes / sizes.sum(axis=1, keepdims=True))[:, numbers]

    estimate, errors = _pooled(
        (draw() for _ in range(n_draws)), design, clusters, len(documents.lengths)
    )
    refits = documents.refits
    found_again = None
    missing = None
    if refits is not None:
        found_again = refits.found_again[numbers]
        # the estimates of each refit, by least squares
        inverse = np.linalg.pinv(design.matrix)
        of_refits = [(inverse @ shares[kept][:, numbers]).T for shares in refits.shares]
        errors.append(ErrorSource.between(np.array(of_refits), refits.compared[:, numbers]))
        missing = [refits.missing[k] for k in numbers]
    return Effects(design, estimate, errors, {k: labels[k] for k in numbers}, found_again, missing)
