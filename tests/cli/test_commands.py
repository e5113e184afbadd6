"""The command as a whole: its help, and how it fails."""

import os
import shlex
import subprocess
import sys
import warnings

import pytest

from annealvi.cli import commands, main
from annealvi.exceptions import BadParameter
from tests.marks import cases


def run(*arguments, **kwargs):
    command = [sys.executable, "-m", "annealvi", *arguments]
    return subprocess.run(command, capture_output=True, text=True, **kwargs)


def test_version():
    done = run("--version")
    assert done.stdout.startswith("annealvi 0.") and "kernels" in done.stdout


@pytest.mark.parametrize("command", ["fit", "label", "show", "compare", "demo"])
def test_help(call, command):
    done = call(command, "--help")
    assert done.status == 0 and done.out.startswith(f"usage: annealvi {command}")
    if command != "demo":
        assert "example" in done.out and f"annealvi {command} " in done.out.split("example")[1]


def test_examples_of_the_help_can_be_parsed():
    lines = "\n".join([commands.FIT, commands.LABEL, commands.SHOW])
    lines = (lines + commands.COMPARE).replace("\\\n", " ").splitlines()
    examples = [line.split("   ")[0].split(">")[0] for line in lines if " annealvi " in line[:12]]
    assert len(examples) >= 9
    for example in examples:
        commands.make_parser().parse_args(shlex.split(example)[1:])


@cases(
    "arguments, words",
    ([], "the following arguments are required: COMMAND (see annealvi --help)"),
    (["paint"], "invalid choice: 'paint' (choose from"),
    (["fit"], "the following arguments are required: PATH (see annealvi fit --help)"),
    (["fit", "x", "--colour", "red"], "unrecognized arguments: --colour red"),
)
def test_bad_arguments(call, arguments, words):
    done = call(*arguments)
    assert done.status == 2 and words in done.err and len(done.err.splitlines()) == 1


@pytest.mark.slow
def test_a_reader_who_stops(jsonl, tmp_path):
    """As in ``annealvi show MODEL | head``."""
    assert main(["fit", str(jsonl), "--n-topics", "3", "--model", str(tmp_path / "m")]) == 0
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        command = [sys.executable, "-m", "annealvi", "show", str(tmp_path / "m")]
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@cases("encoding, word", ("utf-8", "θάλασσα"), ("ascii", r"\u03b8\u03ac\u03bb\u03b1"))
def test_letters_that_the_output_lacks_are_written_as_numbers(tmp_path, encoding, word):
    """Also bytes in the name of a file that are no characters."""
    greek = tmp_path / "greek"
    greek.mkdir()
    for number in range(20):
        (greek / f"{number}.txt").write_text("θάλασσα καράβι λιμάνι", encoding="utf-8")
    (greek / os.fsdecode(b"caf\xe9.txt")).write_text("καράβι θάλασσα", encoding="utf-8")
    model = str(tmp_path / "m")
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    fit = run("fit", str(greek), "--n-topics", "1", "--model", model, env=environment)
    assert fit.returncode == 0 and word in fit.stdout
    label = ("label", model, str(greek), "--name", "name")
    assert rf'caf\udce9.txt,0,"{word}' in run(*label, env=environment).stdout
    table = tmp_path / "labels.csv"
    assert run(*label, "--output", str(table), env=environment).returncode == 0
    assert r'caf\udce9.txt,0,"θάλασσα' in table.read_text(encoding="utf-8")


@pytest.mark.parametrize("redirected", [">&-", "2>&-", ">&- 2>&-"])
def test_an_output_that_is_closed(jsonl, tmp_path, redirected):
    model = tmp_path / "m"
    command = [sys.executable, "-m", "annealvi", "fit", jsonl, "--n-topics", "3", "--model", model]
    done = subprocess.run(f"{shlex.join(map(str, command))} {redirected}", shell=True, check=False)
    assert done.returncode == 0 and model.exists()


def test_errors_are_one_line(monkeypatch, capsys):
    fit, wrong = "annealvi fit", "must be positive. Got 0 instead."
    for error, line in (
        (ValueError("one\n  two"), "one two"),
        (FileNotFoundError(2, "No such file or directory", "x"), "'x': No such file or directory"),
        (MemoryError(), "there is not enough memory."),
        (BadParameter("max_iter", "positive", 0), f"The '--passes' parameter of {fit} {wrong}"),
        (BadParameter("tau", "positive", 0), f"The 'tau' parameter {wrong}"),
    ):

        def fail(chosen, error=error):
            raise error

        monkeypatch.setitem(commands.COMMANDS, "fit", (fail, "x", ""))
        assert main(["fit", "x"]) == 2
        assert capsys.readouterr().err == f"annealvi fit: {line}\n"


def test_warnings_are_one_line(monkeypatch, capsys):
    def warn(chosen):
        warnings.warn("one\n  two", UserWarning, stacklevel=1)
        warnings.warn("of a library", DeprecationWarning, stacklevel=1)

    monkeypatch.setitem(commands.COMMANDS, "fit", (warn, "x", ""))
    assert main(["fit", "x"]) == 0 == main(["fit", "x", "--quiet"])
    assert capsys.readouterr().err == "annealvi fit: warning: one two\n"


@pytest.mark.slow
def test_demo(call):
    pytest.importorskip("plotly")
    done = call("demo")
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("topic  share"))
    assert "2004 to 2019" in lines[head] and "mostly in" in lines[head]
    topics = lines[head + 1 : head + 31]
    assert all(line.split()[1].endswith("%") and "." in line.split()[3] for line in topics)
    assert any(" robot " in line and "cs.RO" in line for line in topics)
    page = (done.place / "annealvi_demo.html").read_text(encoding="utf-8")
    assert "cs.RO" in page and 'id="time"' in page
    assert "The report is annealvi_demo.html" in done.out


def test_a_demo_in_another_file(refused):
    pytest.importorskip("plotly")
    assert "must be a file in a folder that you can" in refused("demo", "--output", "no/x.html")
