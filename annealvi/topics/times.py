"""Reading of dates in common formats; an ambiguous date or one without a year is an error."""

from __future__ import annotations

import re
from datetime import date, datetime
from numbers import Real
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from annealvi.exceptions import BadParameter

WANTED = (
    "a datetime, an ISO 8601 string such as '2020-01-31', or a year such as 2020; convert other "
    "dates with pandas.to_datetime and its parameter format"
)
_YEAR = re.compile(r"[1-9]\d{3}(?:\.0+)?")
#: A month without a day must exist, because "2010-14" is more likely a label of five years.
_ISO = re.compile(
    r"[1-9]\d{3}(?:-(?:0?[1-9]|1[0-2])|-\d\d?-\d\d?(?:[T ]\d.*)?|\d{4}(?:T\d.*)?|-W\d\d.*)?"
)
_YEAR_FIRST = re.compile(r"([1-9]\d{3})[/.](\d\d?)[/.](\d\d?)(.*)")
_YEAR_LAST = re.compile(r"(\d\d?)([/.-])(\d\d?)\2([1-9]\d{3})((?:[ T,]+\d.*)?)")
_NAMED = re.compile(
    r"(?=.*(?<!\d)[1-9]\d{3}(?!\d))(?=.*\b\d{0,2}(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)).*",
    re.I,
)


def read_times(times: list, pandas: Any, name: str = "times") -> Any:
    """Convert times to a DatetimeIndex in UTC; a period becomes its start, a missing time NaT."""
    values = pandas.Series([getattr(time, "start_time", time) for time in times], dtype=object)
    missing = values.isna().to_numpy()
    if missing.all():
        raise BadParameter(name, "a sequence with at least one time that is not missing", None)
    texts = [str(value).strip() if isinstance(value, str) else None for value in values]
    days_first = _days_first(texts, times, name)
    plain = [
        _plain(value) if text is None else _of_text(text, days_first)
        for value, text in zip(values, texts, strict=True)
    ]
    # equal times are converted once, because the conversion of texts in different forms is slow
    numbers, distinct = pandas.factorize(np.array(plain, dtype=object), use_na_sentinel=False)
    with catch_warnings():  # pandas warns about formats that it has to guess
        simplefilter("ignore")
        moments = pandas.to_datetime(distinct, format="mixed", errors="coerce", utc=True)[numbers]
    for place in np.flatnonzero(~missing & moments.isna()).tolist():
        raise BadParameter(f"{name}[{place}]", WANTED, times[place])
    return moments.tz_localize(None)


def _plain(value: Any) -> Any:
    """Return a time that is no text in a form that is clear to pandas; None if it is no time."""
    if isinstance(value, Real) and not isinstance(value, bool):
        year = float(value)
        return f"{year:.0f}" if year.is_integer() and 1000 <= year <= 9999 else None
    return value if isinstance(value, date | datetime | np.datetime64) else None


def are_dates(values: Any) -> bool:
    """Whether all values of a column are dates or texts of complete dates, not only years."""
    # a dtype of datetimes, of NumPy or with a time zone
    if getattr(values.dtype, "kind", "") == "M" or hasattr(values.dtype, "tz"):
        return True
    listed = values.dropna().tolist()
    if not listed or values.dtype.kind != "O":
        return False
    if all(isinstance(value, date | datetime) or hasattr(value, "start_time") for value in listed):
        return True
    texts = [value.strip() for value in listed if isinstance(value, str)]
    forms = (_ISO, _YEAR_FIRST, _YEAR_LAST, _NAMED)
    return len(texts) == len(listed) and all(
        not _YEAR.fullmatch(text) and any(form.fullmatch(text) for form in forms) for text in texts
    )


def _days_first(texts: list, times: list, name: str) -> bool:
    """Whether the day comes first in dates such as 03/04/2020, judging by the whole column."""
    # the two numbers before the year, and the year, of each text in this form
    matches = {place: _YEAR_LAST.fullmatch(text) for place, text in enumerate(texts) if text}
    written = {
        place: (int(match[1]), int(match[3]), match[4]) for place, match in matches.items() if match
    }
    # a number above 12 is a day
    day_first = [place for place, (a, b, year) in written.items() if a > 12]
    day_second = [place for place, (a, b, year) in written.items() if b > 12]
    unclear = [place for place, (a, b, year) in written.items() if a != b]
    if (day_first and day_second) or (unclear and not day_first and not day_second):
        place = day_first[0] if day_first else unclear[0]
        a, b, year = written[place]
        hint = f"This may mean {year}-{a:02}-{b:02} or {year}-{b:02}-{a:02}."
        if day_first:
            hint = f"The day comes first here, but second in {times[day_second[0]]!r}."
        raise BadParameter(f"{name}[{place}]", WANTED, times[place], hint)
    return bool(day_first)


def _of_text(text: str, days_first: bool) -> str | None:
    """Return a time in a form that is not ambiguous for pandas; None if it is not a date."""
    if _YEAR.fullmatch(text):
        return text[:4]
    # below, months and days are written with two digits
    if match := _YEAR_FIRST.fullmatch(text):
        return "{}-{:0>2}-{:0>2}{}".format(*match.groups())
    if match := _YEAR_LAST.fullmatch(text):
        a, _, b, year, rest = match.groups()
        day, month = (a, b) if days_first else (b, a)
        return f"{year}-{month:0>2}-{day:0>2}{rest.replace(',', '')}"
    return text if _ISO.fullmatch(text) or _NAMED.fullmatch(text) else None
