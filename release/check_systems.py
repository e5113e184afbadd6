"""Try annealvi on systems that this machine is not, and write a table of what was seen.

    python release/check_systems.py [clang] [arm] [macos] [windows]

- ``clang``: gcc, Debian's clang and the clang of zig, on this machine.
- ``arm``: Linux on aarch64, cross-compiled by gcc and run by qemu; its times mean nothing.
- ``macos``: compiled and linked by zig for both processors, and not run.
- ``windows``: compiled by zig and run by Wine.  This proves the kernels, the choice of instruction
  set at run time and the Python code, but not clang-cl and Microsoft's C library.

Needs Debian 12 on x86-64 and root, for apt-get.  Everything else comes from Debian and PyPI and
lies in build/systems, as do the logs.  The modules are those of a wheel, for CPython's stable ABI.
The table is build/systems/table.md.  The exit status is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
WORK = CHECKOUT / "build" / "systems"
DEBIAN = {
    "clang": ["clang", "libomp-dev"],
    "arm": ["qemu-user-static", "mmdebstrap", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
    "macos": [],
    "windows": ["wine64", "binutils"],
}
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
LIBRARIES = PROJECT["project"]["dependencies"]
TESTING = ["pytest", "hypothesis", "mpmath"]
#: What the command `annealvi demo` imports, beside LIBRARIES.
REPORT = PROJECT["project"]["optional-dependencies"]["demo"]
MANYLINUX = [f"manylinux_2_{glibc}_aarch64" for glibc in (17, 27, 28, 34)]
COLUMNS = (
    *("system", "built with", "warnings", "tests of kernels", "golden fits identical", "threads"),
    *("instruction sets", "how tried"),
)
Row = dict[str, object]

#: The whole of a study: a fit, its file, the file again, and the model that was read.
STUDY = """
import os, time
from annealvi import TopicModel, _kernels, load, save
from annealvi.datasets import load_arxiv_abstracts
texts = load_arxiv_abstracts(texts=True).texts
began = time.process_time()
model = TopicModel({n_topics}).fit(texts)
seconds = time.process_time() - began
save(model, "study.safetensors")
again = load("study.safetensors")
assert (again.transform(texts) == model.transform(texts)).all()
save(again, "study.safetensors")
print(f"{n_topics} topics, {{_kernels.instruction_set()}}: {{seconds:.1f}} s of CPU; "
      "saved, loaded, transformed, saved over the loaded file")
"""

#: What Python's headers must know of Windows, for modules of the stable ABI.
PYCONFIG = """
#define MS_WINDOWS
#define MS_WIN64
#define HAVE_DECLSPEC_DLL
#define Py_ENABLE_SHARED
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_TIME_T 8
#define SIZEOF_WCHAR_T 2
#define ALIGNOF_MAX_ALIGN_T 8
#define HAVE_PY_SSIZE_T
typedef long long Py_ssize_t;
#define PY_SSIZE_T_MAX 9223372036854775807LL
"""
PYTHON_C = """
#include <wchar.h>
__declspec(dllimport) int Py_Main(int, wchar_t **);
int wmain(int n, wchar_t **words) { return Py_Main(n, words); }
"""
#: Functions of complex numbers that NumPy calls at import and Wine 8 lacks.
COMPLEX = {"creal": "double", "cimag": "double", "crealf": "float", "cimagf": "float"}
#: The random bytes that safetensors asks for, from a DLL that Wine 8 lacks.
RANDOM_C = """
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL ProcessPrng(unsigned char *bytes, SIZE_T n)
{
    return RtlGenRandom(bytes, n);
}
"""


def run(
    log: str, *command: object, folder: Path = WORK, may_fail: bool = False, **variables: str
) -> str:
    """Run a command, append what it prints to a log in WORK, and return that."""
    print("+", *(str(word).strip().split("\n")[0] for word in command), flush=True)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,  # Python under Wine cannot write to a file of ours
        stderr=subprocess.STDOUT,
        check=False,
    )
    printed = done.stdout.decode(errors="replace")
    with open(WORK / f"{log}.log", "a", encoding="utf-8") as stream:
        stream.write(printed)
    if done.returncode and not may_fail:
        raise SystemExit(f"{printed[-2000:]}\n{command[0]} failed; see {log}.log in {WORK}.")
    return printed


def install(packages: Sequence[str]) -> None:
    """Install packages of Debian that are not there yet."""
    if packages and subprocess.run(["dpkg", "-s", *packages], capture_output=True).returncode:
        run("apt", "apt-get", "update")
        words = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
        run("apt", *words, DEBIAN_FRONTEND="noninteractive")


def tools() -> Path:
    """The Python of an environment with what builds and tests annealvi here, and zig."""
    python = WORK / "tools" / "bin" / "python"
    if not python.exists():
        run("tools", sys.executable, "-m", "venv", WORK / "tools")
        needed = [*PROJECT["build-system"]["requires"], *LIBRARIES, *TESTING, "ziglang"]
        run("tools", python, "-m", "pip", "install", *needed)
    return python


def unpack_wheels(target: Path, platforms: Sequence[str], libraries: Sequence[str]) -> None:
    """Unpack wheels of another system for Python 3.11, and of what they need."""
    with_platforms = [word for name in platforms for word in ("--platform", name)]
    folder = WORK / f"wheels-{platforms[0]}"
    run(
        "wheels",
        *(tools(), "-m", "pip", "download", "--only-binary", ":all:", "--dest", folder),
        *("--python-version", "3.11", "--implementation", "cp", *with_platforms, *libraries),
    )
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)


def zig(target: str, processor: str = "") -> list[str]:
    """The C compiler of zig, which compiles for this machine's processor unless told another."""
    chosen = [f"-mcpu={processor}"] if processor else []
    return [str(tools()), "-m", "ziglang", "cc", "-target", target, *chosen]


def build(name: str, compiler: Sequence[str], link: Sequence[str] = ()) -> tuple[Path, Row]:
    """Compile a copy of the checkout; return it, and what the build said."""
    tree = WORK / name
    shutil.rmtree(tree, ignore_errors=True)
    (WORK / f"{name}.log").unlink(missing_ok=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for file in run("copy", *listed, folder=CHECKOUT).split("\0"):
        if (CHECKOUT / file).is_file():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / file, tree / file)
    said = run(
        name,
        *(tools(), "setup.py", "build_ext", "--inplace"),
        folder=tree,
        ANNEALVI_LIMITED_API="1",
        CC=" ".join(compiler),
        LDSHARED=" ".join([*compiler, "-shared", *link]),
    )
    kind = "clang of zig" if "ziglang" in compiler else compiler[0]
    version = re.findall(r"\d+\.\d+\.\d+", run(name, *compiler, "--version").splitlines()[0])[-1]
    (sets,) = re.findall(r"annealvi: kernels for (.+)", said)
    return tree, {
        "built with": f"{kind} {version}",
        "warnings": len(re.findall(r": warning: ", said)),
        "tests of kernels": "not run",
        "golden fits identical": "not run",
        "threads": "OpenMP" if "annealvi: building with OpenMP" in said else "one",
        "instruction sets": sets,
    }


def try_kernels(tree: Path, python: Sequence[object], **variables: str) -> Row:
    """Run the tests of the kernels and, at the same time, the golden fits."""
    variables |= {"OMP_NUM_THREADS": "1"}

    def start(*words: str) -> str:
        return run(tree.name, *python, *words, folder=tree, may_fail=True, **variables)

    golden = "tests/project/golden_fits.json"
    # The kernels for a GPU are the same C++ on all systems.
    kernels = ["tests/_kernels", "--ignore", "tests/_kernels/test_gpu.py"]
    with ThreadPoolExecutor(2) as pool:
        fits = pool.submit(start, "-m", "bench.speed.same_bits", "--against", golden)
        tests = start("-m", "pytest", "-q", "-p", "no:cacheprovider", *kernels)
    totals = re.findall(r"(\d+) fits are the same to the last bit, (\d+) differ", fits.result())
    same, different = map(int, totals[0]) if totals else (0, 0)
    summary = re.findall(r"^=* ?(\d+ .*) in [\d.]+s", tests, re.MULTILINE)
    return {
        "tests of kernels": summary[-1] if summary else "did not end",
        "golden fits identical": f"{same} of {same + different}",
    }


def clang() -> Iterator[Row]:
    """gcc, clang and zig on this machine."""
    compilers = {
        "gcc": (["gcc"], []),
        "clang": (["clang"], []),
        "zig": (zig("x86_64-linux-gnu", "x86_64"), []),
    }
    for name, (compiler, link) in compilers.items():
        tree, row = build(name, compiler, link)
        row |= try_kernels(tree, [tools()])
        yield {"system": "Linux x86-64", **row, "how tried": "run"}


def arm() -> Iterator[Row]:
    """Linux on aarch64: Debian's Python for it, run by qemu's emulation of one process."""
    root = WORK / "arm-root"
    site = WORK / "arm-site"
    python = WORK / "arm-python"
    if not root.exists():
        packages = "--include=python3,libgomp1,libstdc++6"
        for_arm = ["--architectures=arm64", "--variant=extract", packages]
        run("arm-root", "mmdebstrap", *for_arm, "bookworm", root, debian_mirror())
        unpack_wheels(site, MANYLINUX, [*LIBRARIES, *TESTING])
    # Processes that Python starts need a script, because Linux cannot run programs for ARM.
    emulated = f"qemu-aarch64-static -L {root} {root}/usr/bin/python3.11"
    python.write_text(f'#!/bin/sh\nexec {emulated} "$@"\n', "utf-8")
    python.chmod(0o755)
    (site / "sitecustomize.py").write_text(f"import sys\nsys.executable = {str(python)!r}\n")
    tree, row = build("arm", ["aarch64-linux-gnu-gcc"])
    # Without compilers, because those of this machine do not compile for ARM.
    row |= try_kernels(tree, [python], PYTHONPATH=str(site), PATH=only("sh", "qemu-aarch64-static"))
    yield {"system": "Linux aarch64", **row, "how tried": "in emulation (qemu)"}


def debian_mirror() -> str:
    """The address that this machine takes its packages from."""
    shown = ["--format", "$(REPO_URI)", "Codename: bookworm"]
    return run("apt", "apt-get", "indextargets", *shown).splitlines()[0]


def only(*programs: str) -> str:
    """A folder for PATH that has nothing but some programs."""
    folder = WORK / "path"
    folder.mkdir(exist_ok=True)
    for name in programs:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(shutil.which(name) or name)
    return str(folder)


def macos() -> Iterator[Row]:
    """The headers are this machine's, whose numbers have the sizes of macOS."""
    for system, target in {"arm64": "aarch64-macos", "x86-64": "x86_64-macos"}.items():
        compiler = zig(target, "x86_64" if system == "x86-64" else "")
        _, row = build(target, compiler, ["-undefined", "dynamic_lookup"])
        yield {"system": f"macOS {system}", **row, "how tried": "compiled and linked"}


def windows() -> Iterator[Row]:
    """Windows on x86-64 under Wine, with Microsoft's build of Python."""
    compiler = zig("x86_64-windows-gnu", "x86_64")
    place = WORK / "windows-python"
    if not (place / "python.exe").exists():
        make_windows_python(place, compiler)
    headers = [f"-I{place / 'include'}"]
    tree, row = build("windows", [*compiler, *headers], [f"-L{place}", "-lpython3"])
    for module in (tree / "annealvi" / "_kernels").glob("*.abi3.so"):
        module.rename(module.with_name(module.name.replace(".abi3.so", ".pyd")))
    wine = [shutil.which("wine64", path="/usr/lib/wine:/usr/bin"), place / "python.exe"]
    variables = {"WINEPREFIX": str(WORK / "wine"), "WINEDEBUG": "-all"}
    demo = ["-m", "annealvi", "demo", "--output", "demo.html"]
    run("windows", *wine, *demo, folder=tree, **variables)
    for instruction_set, n_topics in (("", 10), ("avx2", 50), ("baseline", 50)):
        variables["ANNEALVI_INSTRUCTION_SET"] = instruction_set
        study = STUDY.format(n_topics=n_topics)
        print(run("windows", *wine, "-c", study, folder=tree, **variables).splitlines()[-1])
    variables["ANNEALVI_INSTRUCTION_SET"] = ""
    row |= try_kernels(tree, wine, **variables)
    yield {"system": "Windows x86-64", **row, "how tried": "under Wine"}


def make_windows_python(place: Path, compiler: Sequence[str]) -> None:
    """Put Python for Windows together: panda3d's wheel has it, Debian what is written in Python."""
    unpacked = WORK / "windows-wheels"
    unpack_wheels(unpacked, ["win_amd64"], [*LIBRARIES, *TESTING, *REPORT, "colorama", "panda3d"])
    place.mkdir(parents=True, exist_ok=True)
    for file in (unpacked / "deploy_libs").iterdir():
        if not file.name.startswith("api-ms"):  # Wine has these
            shutil.copy(file, place)
    for name in ("panda3d", "deploy_libs"):
        shutil.rmtree(unpacked / name)
    run("windows-python", "apt-get", "download", "libpython3.11-stdlib", "libpython3.11-minimal")
    for package in WORK.glob("libpython3.11-*.deb"):
        run("windows-python", "dpkg", "-x", package, WORK / "windows-library")
    shutil.copytree(WORK / "windows-library/usr/lib/python3.11", place / "Lib", dirs_exist_ok=True)
    shutil.copytree(unpacked, place / "Lib" / "site-packages", dirs_exist_ok=True)
    copy_headers(place / "include")

    def link(output: str, source: str, *options: str) -> None:
        file = place / f"{Path(output).stem}.c"
        file.write_text(source, "utf-8")
        run("windows-python", *compiler, file, *options, "-o", output, folder=place)

    def define(library: str, names: Sequence[str]) -> str:
        """What a library exports; a name with "=" is that of another library."""
        file = place / f"{library}.def"
        file.write_text("\n".join([f"LIBRARY {library}", "EXPORTS", *names, ""]), "utf-8")
        return file.name

    # python3.dll, which modules of the stable ABI are linked with, leads to python311.dll.
    names = exports(place / "python311.dll")
    define("python3.dll", names)
    dlltool = [*compiler[:3], "dlltool", "-m", "i386:x86-64", "-d", "python3.dll.def"]
    run("windows-python", *dlltool, "-l", "libpython3.a", folder=place)
    forwards = define("python3", [f"{name}=python311.{name}" for name in names])
    link("python3.dll", "int started;\n", "-shared", forwards)
    link("python.exe", PYTHON_C, "-municode", "-L.", "-lpython3")
    link("bcryptprimitives.dll", RANDOM_C, "-shared", "-ladvapi32")
    # Modules that call a complex function which Wine lacks get a library of the same functions.
    old = "api-ms-win-crt-math-l1-1-0.dll"
    imported = {file: imports(file, old) for file in place.rglob("*.pyd")}
    users = {file: names for file, names in imported.items() if names & COMPLEX.keys()}
    functions = sorted(set().union(*users.values()))
    exported = [f"{n}=own_{n}" if n in COMPLEX else f"{n}=ucrtbase.{n}" for n in functions]
    source = "".join(
        f"{real} own_{name}({real} _Complex z) {{ return __{name[1:5]}__ z; }}\n"
        for name, real in COMPLEX.items()
    )
    link("crt-math.dll", source, "-shared", define("crt-math.dll", exported))
    for file in users:
        new = b"crt-math.dll".ljust(len(old), b"\0")
        file.write_bytes(file.read_bytes().replace(old.encode(), new))


def copy_headers(target: Path) -> None:
    """Python's headers with the sizes of Windows."""
    print_place = "import sysconfig; print(sysconfig.get_path('include'))"
    headers = run("windows-python", tools(), "-c", print_place).strip()
    shutil.copytree(headers, target, dirs_exist_ok=True)
    (target / "pyconfig.h").write_text(PYCONFIG, "utf-8")


def exports(library: Path) -> list[str]:
    """The names that a library for Windows exports."""
    shown = run("windows-python", "objdump", "-p", library)
    names = shown.partition("[Ordinal/Name Pointer] Table")[2].partition("\n\n")[0]
    return re.findall(r"\] (\w+)$", names, re.MULTILINE)


def imports(module: Path, library: str) -> set[str]:
    """The names that a module for Windows imports from a library."""
    shown = run("windows-python", "objdump", "-p", module)
    names = shown.partition(f"DLL Name: {library}")[2].partition("\n\n")[0]
    return set(re.findall(r"^\t\w+\t +\d+ +(\w+)$", names, re.MULTILINE))


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "clang": clang,
    "arm": arm,
    "macos": macos,
    "windows": windows,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}, only {', '.join(PARTS)}")
    WORK.mkdir(parents=True, exist_ok=True)
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    minutes = []
    for part in arguments.parts:
        began = time.monotonic()
        install(DEBIAN[part])
        for row in PARTS[part]():
            lines.append(f"| {' | '.join(str(row[name]) for name in COLUMNS)} |")
            print(lines[-1], flush=True)
        minutes.append(f"{part} {(time.monotonic() - began) / 60:.0f}")
    table = "\n".join(lines) + "\n"
    (WORK / "table.md").write_text(table, "utf-8")
    print(table, f"Minutes: {', '.join(minutes)}.", sep="\n")
    return int("failed" in table or "did not end" in table)


if __name__ == "__main__":
    sys.exit(main())
