"""What the server of ``annealvi open`` answers, and what it refuses."""

import asyncio
import io
import re
import time
import zipfile

import docx
import numpy as np
import openpyxl
import pandas
import pytest

import annealvi
from annealvi.app import fitting, server
from annealvi.app.files import topic_model, write_state
from annealvi.app.study import Study
from annealvi.cli.inputs import read_columns
from tests.app.conftest import FORMULA, HOSTILE, SETTINGS, Client, settled


def error(answer):
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]


def edit(client, kind, topics=(), label="", version=None):
    version = client.post("study/state", json={}).json()["version"] if version is None else version
    values = dict(version=version, kind=kind, topics=list(topics), label=label)
    return client.post("study/edit", json=values)


def labels(client):
    return {
        topic["topic"]: topic["label"]
        for topic in client.post("study/state", json={}).json()["topics"]
    }


# ------------------------------------------------------------------------------- who may ask


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.example.org", "10.0.0.1", ""])
def test_another_host_is_refused(client, host):
    assert client.post("study/state", json={}, headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    "path", ["/", "/state", "/wrong/study/state", "/secretly/study/state", "//state", "/é/"]
)
def test_a_link_without_the_token_is_refused(client, path):
    answer = client.get(f"http://127.0.0.1:8000{path}")
    assert answer.status_code == 403
    assert "link" in answer.text and "topics" not in answer.text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_of_another_page_is_refused(client, site):
    assert client.post("study/state", json={}, headers={"sec-fetch-site": site}).status_code == 403


def test_only_the_script_of_the_server_runs(client):
    for path in ("", "page.js", "page.css", "documents/0", "results/report.html"):
        answer = client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "eval" not in policy and "frame-ancestors 'self'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert (
        "script-src 'self'; style-src 'self'" in client.get("").headers["content-security-policy"]
    )
    assert "script-src" not in client.get("documents/0").headers["content-security-policy"]


def test_the_page_loads_nothing_from_elsewhere(client):
    for path in ("", "page.js", "page.css"):
        assert not re.search(r"https?:|@import|url\(|src=\"//", client.get(path).text)


@pytest.mark.parametrize(
    "path",
    [
        "results/..%2Fstudy.json",
        "results/%2Fetc%2Fpasswd",
        "results/%2E%2E",
        "results/study.json",
        "page.html",
        "server.py",
        "..%2Fserver.py",
        "documents/99999",
        "documents/-1",
        "study/compare",
        "study/take",
    ],
)
def test_no_other_file_is_served(client, path):
    for method in ("get", "post"):
        answer = getattr(client, method)(path)
        assert answer.status_code in (400, 404, 405), answer.text


# ------------------------------------------------------------------------------ uploads


def names_in(folder):
    return {path.name for path in folder.rglob("*")}


@pytest.mark.parametrize("name", ["../../papers.csv", "/etc/papers.csv", "a\\..\\papers.csv"])
def test_a_path_in_the_name_of_a_file_has_no_effect(empty, tmp_path, table, name):
    answer = empty.post("upload", params={"name": name}, content=table.read_bytes())
    assert answer.status_code == 200
    assert names_in(tmp_path) == {"empty", "study.json", "documents.csv"}
    assert empty.post("study/state", json={}).json()["name"] == name.rpartition("/")[2]


def test_a_large_file_is_refused(empty, tmp_path, table, monkeypatch):
    monkeypatch.setattr(server, "LARGEST", 1 << 20)
    content = b"text\n" + b"word " * (1 << 18)
    assert "larger than 1 MB" in error(empty.post("upload?name=a.csv", content=content))

    async def blocks():  # of unknown length
        for _ in range(2000):
            yield content[:1000]

    assert "larger than 1 MB" in error(empty.post("upload?name=a.csv", content=blocks()))
    headers = {"content-length": str(1 << 30)}
    answer = empty.post("upload?name=a.csv", content=b"text", headers=headers)
    assert "larger than 1 MB" in error(answer)
    assert names_in(tmp_path) == {"empty"}
    assert empty.post("study/state", json={}).json()["largest"] == 500 << 20


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.exe", b"MZ", "must end in .csv"),
        ("a", b"", "must end in"),
        ("a.csv", b"", "a.csv' cannot be read as a .csv file"),
        ("a.csv", b"text\nonly one\n", "at least two documents"),
        ("a.csv", b'a,b\n1,2,3\n1,"2', "a.csv"),
        ("a.csv", b"text\n\0\0\0\n", "NUL"),
        ("a.tsv", b"PK\3\4\0\0", "a.tsv"),
        ("a.xlsx", b"no zip file", "cannot be read as a .xlsx file"),
        ("a.xlsx", zipped(a_txt="text"), "cannot be read as a .xlsx file"),
        ("a.docx", zipped(a_txt="text"), "cannot be read as a .docx file"),
        ("a.zip", b"", "cannot be read as a .zip file"),
        ("a.zip", zipped(a_txt="one", b_exe="two"), "only .txt and .docx files. Got 'b.exe'"),
        ("a.zip", zipped(a_txt="one", b_docx="two"), "cannot be read as a .zip file"),
        ("a.jsonl", b"{", "cannot be read as a .jsonl file"),
    ],
)
def test_a_broken_file_gets_an_error_that_names_it(empty, tmp_path, name, content, message):
    told = error(empty.post("upload", params={"name": name}, content=content))
    assert message in told and str(tmp_path) not in told
    assert names_in(tmp_path) == {"empty"}
    assert "documents" not in empty.post("study/state", json={}).json()


def test_a_zip_file_that_unpacks_to_very_much_is_refused(empty, monkeypatch):
    monkeypatch.setattr("annealvi.corpus.office.LARGEST_UNPACKED", 1 << 20)
    content = zipped(a_txt="word " * (1 << 19))
    assert "more than" in error(empty.post("upload?name=a.zip", content=content))


def docx_of(*paragraphs):
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    document.add_table(1, 1).cell(0, 0).text = "in a table"
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def xlsx_of(frame):
    stream = io.BytesIO()
    frame.to_excel(stream, index=False)
    return stream.getvalue()


FRAME = pandas.DataFrame({"text": ["one", "naïve"], "year": [2000, 2001], "note": [None, "x"]})


@pytest.mark.parametrize(
    "name, content, columns, first",
    [
        ("a.xlsx", xlsx_of(FRAME), ["text", "year", "note"], ["one", "2000", ""]),
        ("a.csv", FRAME.to_csv(index=False).encode("cp1252"), list(FRAME), ["one", "2000", ""]),
        ("a.csv", FRAME.to_csv(index=False).encode("utf-16"), list(FRAME), ["one", "2000", ""]),
        ("a.tsv", FRAME.to_csv(index=False, sep="\t").encode(), list(FRAME), ["one", "2000", ""]),
        ("A.JSONL", b'{"text": "a", "n": 1}\n{"text": "b\\u0000"}\n', ["text", "n"], ["a", "1"]),
        ("a.txt", b"one\ntwo\n", ["text"], ["one"]),
        ("a.docx", docx_of("one", "", "two"), ["text"], ["one"]),
        (
            "a.zip",
            zipped(a_txt="one", b_docx=docx_of("two"), __MACOSX="no", x_hidden_txt=""),
            ["text", "name", "folder"],
            ["one", "a.txt", "."],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:A file that is not in the encoding utf-8 is read in cp1252")
def test_files_of_each_kind_are_read(empty, name, content, columns, first):
    answer = empty.post("upload", params={"name": name}, content=content)
    assert answer.status_code == 200, answer.text
    state = empty.post("study/state", json={}).json()
    assert (state["columns"], state["first"][0], state["name"]) == (columns, first, name)


def test_wrong_settings_are_refused_before_the_fit(empty, table):
    assert empty.post("study/fit", json=SETTINGS | dict(n_topics=4)).status_code == 400
    empty.post("upload?name=papers.csv", content=table.read_bytes())
    for wrong in (dict(text=""), dict(text="x"), dict(group="x"), dict(time="title")):
        values = SETTINGS | dict(n_topics=4) | wrong
        assert repr(*wrong.values()) in error(empty.post("study/fit", json=values))
    assert empty.post("study/fit", content=b"{").status_code == 400
    assert empty.post("study/fit", json={}).status_code == 400
    assert empty.post("study/state", json={}).json()["line"] is None


# ------------------------------------------------------------------------------- topics


def test_topics_are_labelled_merged_and_dropped_and_changes_are_undone(client, study):
    before = labels(client)
    assert len(before) == 4
    assert edit(client, "label", [0], "the first").status_code == 200
    assert edit(client, "merge", [1, 3]).status_code == 200
    assert labels(client)[0] == "the first" and len(labels(client)) == 3
    assert edit(client, "drop", [2]).status_code == 200
    again = settled(Study(study.folder, read_columns))  # as after the server was killed
    assert again.summary.checksum == study.summary.checksum
    assert list(again.summary.labels) == list(study.summary.labels)
    for _ in range(3):
        assert edit(client, "undo").status_code == 200
    assert labels(client) == before


@pytest.mark.parametrize(
    "kind, topics, label",
    [
        ("label", [0], ""),
        ("label", [9], "x"),
        ("label", [], "x"),
        ("merge", [0], ""),
        ("merge", [0, 9], ""),
        ("merge", [0, "1"], ""),
        ("drop", [0, 1, 2, 3], ""),
        ("drop", [-1], ""),
        ("other", [1], ""),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(client, study, kind, topics, label):
    before = labels(client), (study.folder / "study.json").read_text()
    error(edit(client, kind, topics, label))
    assert (labels(client), (study.folder / "study.json").read_text()) == before


def test_a_change_in_a_second_tab_is_seen_in_the_first(client):
    version = client.post("study/state", json={}).json()["version"]
    assert edit(client, "merge", [0, 1], version=version).status_code == 200
    assert "another tab" in error(edit(client, "merge", [0, 1], version=version))
    assert len(labels(client)) == 3


def test_documents_are_found(client, study):
    def find(query="", topic=None, group="", start=0):
        asked = dict(query=query, topic=topic, group=group, start=start)
        return client.post("study/documents", json=asked).json()

    assert find()["n"] == 80 and len(find()["rows"]) == 25
    assert len(find(start=75)["rows"]) == 5
    assert find("PLANET")["n"] == study.table["text"].str.contains("planet").sum()
    assert find("[")["n"] == 0
    assert find(HOSTILE)["rows"][0]["title"] == HOSTILE
    assert find(group=HOSTILE)["n"] == 2
    label = study.summary.labels[2]
    assert find(label)["n"] >= (study.summary.document_topics == 2).sum()
    ranked = find(topic=2)["rows"]
    assert [row["label"] for row in ranked] == [label] * 25
    shares = [row["share"] for row in ranked]
    np.testing.assert_array_equal(shares, np.sort(study.summary.shares[:, 2])[::-1][:25])


@pytest.mark.parametrize("role, method", [("group", "by_group"), ("time", "over_time")])
def test_groups_and_years_are_compared(client, study, role, method):
    shares, errors = client.post("study/compare", json=dict(role=role)).json()
    column = study.table["kind" if role == "group" else "date"].tolist()
    wanted = getattr(study.summary, method)(column)
    spread = getattr(study.summary, method)(column, value="std_error")
    assert shares["columns"] == errors["columns"] == list(wanted)
    np.testing.assert_allclose(shares["data"], wanted.to_numpy(), rtol=1e-9)
    np.testing.assert_allclose(errors["data"], spread.to_numpy(), rtol=1e-9)


def test_html_is_shown_as_text(client):
    assert edit(client, "label", [0], HOSTILE).status_code == 200
    assert labels(client)[0] == HOSTILE
    assert client.post("study/state", json={}).headers["content-type"] == "application/json"
    for path in ("documents/0", "results/report.html"):
        text = client.get(path).text
        assert "<script>alert" not in text and "<img src=x" not in text
    assert "&lt;script&gt;" in client.get("documents/0").text


# ---------------------------------------------------------------------------- downloads

TABLES = ["topics.csv", "trust.csv", "document_topics.csv", "by_group.csv", "by_time.csv"]


def test_tables_can_be_downloaded(client, study):
    for name in TABLES:
        frame = pandas.read_csv(io.BytesIO(client.get(f"results/{name}").content))
        assert len(frame) == {"document_topics.csv": 80, "by_group.csv": 5}.get(name, 4)
        assert (study.folder / "results" / name).is_file()
    book = openpyxl.load_workbook(io.BytesIO(client.get("results/tables.xlsx").content))
    assert {"topics", "trust", "document_topics", "by_group", "by_time"} <= set(book.sheetnames)


def test_an_excel_file_contains_no_formula(client):
    edit(client, "label", [0], FORMULA)
    book = openpyxl.load_workbook(io.BytesIO(client.get("results/tables.xlsx").content))
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert any(cell.value == FORMULA for cell in cells)
    assert all(cell.data_type != "f" for cell in cells)


def test_the_program_repeats_the_topics_bit_for_bit(client, study, monkeypatch, capsys):
    edit(client, "merge", [1, 3])
    edit(client, "label", [1], "it's {both}")
    edit(client, "drop", [2])
    for name in ("study.py", "documents.csv", "topics.safetensors", "report.html"):
        answer = client.get(f"results/{name}")
        assert answer.status_code == 200, answer.text
    results = study.folder / "results"
    saved = (results / "topics.safetensors").read_bytes()
    report = (results / "report.html").read_bytes()
    monkeypatch.chdir(results)
    exec(compile((results / "study.py").read_text(), "study.py", "exec"), {})
    assert study.summary.checksum in capsys.readouterr().out
    repeated = annealvi.load(results / "topics.safetensors")
    assert repeated.topic_labels_ == {1: "it's {both}"}
    (results / "saved.safetensors").write_bytes(saved)
    model = annealvi.load(results / "saved.safetensors")
    np.testing.assert_array_equal(repeated.components_, model.components_)
    assert (results / "report.html").read_bytes() == report


@pytest.mark.parametrize("name", ["a\nimport os", "'''", '"""', "{text}", HOSTILE])
def test_the_program_contains_names_only_as_strings(client, study, name):
    study.saved |= dict(name=f"{name}.csv")
    program = client.get("results/study.py").text
    compile(program, "study.py", "exec")
    assert repr(f"Topics of {name}.csv") in program
    assert "\nimport os" not in program.replace("import pandas", "")


# -------------------------------------------------------------------------------- several


def test_many_requests_at_once(client):
    found = dict(query="star", topic=None, group="", start=0)
    asked = [
        ("POST", "study/state", dict(json={})),
        ("POST", "study/documents", dict(json=found)),
        ("POST", "study/compare", dict(json=dict(role="group"))),
        ("GET", "documents/1", {}),
    ]
    answers = asyncio.run(client.ask(*(asked[n % 4] for n in range(200))))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 4


@pytest.fixture
def fit_here(monkeypatch):
    """Fits the study in a folder as its own process would, and returns the exit status."""
    monkeypatch.setattr(fitting, "end_with_server", lambda: None)
    return lambda folder: fitting.main([str(folder)])


def test_an_error_of_the_fit_is_its_last_line(tmp_path, fit_here, capsys):
    study = Study(tmp_path / "study", read_columns)
    (tmp_path / "a.csv").write_text("text\n1\n2\n3\n")
    study.take(tmp_path / "a.csv", "a.csv")
    write_state(study.folder, study.saved | dict(next=dict(SETTINGS, n_topics=2)))
    assert fit_here(study.folder) == 2
    assert "word" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.slow
def test_an_error_of_the_fit_is_shown(empty, tmp_path):
    empty.post("upload?name=a.csv", content=b"text\n1\n2\n3\n4\n")
    values = dict(SETTINGS, title="", time="", group="", n_topics=2)
    assert empty.post("study/fit", json=values).status_code == 200
    again = Study(tmp_path / "empty", read_columns)
    assert again.saved["next"] == values
    state = empty.post("study/state", json={}).json()
    while state["line"] is not None:
        state = empty.post("study/state", json={}).json()
    assert "word" in state["problem"] and state["next"] and "topics" not in state


@pytest.mark.slow
def test_a_fit_that_was_cancelled_continues_with_the_same_result(tmp_path):
    """The same happens if the server is killed, because its end closes the input of the fit."""
    abstracts = annealvi.datasets.load_arxiv_abstracts(texts=True)
    path = tmp_path / "abstracts.csv"
    pandas.DataFrame({"text": abstracts.texts}).to_csv(path, index=False)
    study = Study(tmp_path / "study", read_columns)
    study.take(path, path.name)
    study.fit(**SETTINGS | dict(title="", time="", group="", n_topics=50))
    while not re.search(r"[1-9]\d%.* T ", study.state()["line"]):  # of the fit, not of the counting
        time.sleep(0.02)
    study.cancel()
    settled(study)
    assert study.summary is None and (study.folder / "checkpoint.safetensors").exists()
    study.resume()
    settled(study)
    assert "error" not in study.problem and study.summary is not None
    wanted = topic_model(study.saved["settings"]).fit([str(text) for text in abstracts.texts])
    np.testing.assert_array_equal(study.fitted.components_, wanted.components_)


def test_the_number_of_topics_can_be_chosen(tmp_path, table, fit_here):
    study = Study(tmp_path / "study", read_columns)
    study.take(table, "papers.csv")
    write_state(study.folder, study.saved | dict(next=dict(SETTINGS, n_topics="auto")))
    assert fit_here(study.folder) == 0
    assert len(list((study.folder / "comparison").iterdir())) == 2  # of two runs with 2 topics
    again = settled(Study(study.folder, read_columns))
    assert again.saved["settings"]["n_topics"] == "auto"
    assert again.summary.shares.shape == (80, 2)
    assert not (study.folder / "comparison").exists()
    assert "choose_n_topics(texts, [2], n_runs=2" in Client(again).get("results/study.py").text
