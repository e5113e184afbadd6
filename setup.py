"""Build the compiled kernels; everything else is in pyproject.toml.

Environment variables:

- ``ANNEALVI_DEBUG=1``: bounds checks in Cython, little optimisation in C.
- ``ANNEALVI_NO_OPENMP=1``: build for one thread even if OpenMP is found.
- ``ANNEALVI_SANITIZE=1``: AddressSanitizer and UndefinedBehaviorSanitizer, see
  ``tests/sanitize.py``; ``ANNEALVI_SANITIZE=thread``: ThreadSanitizer, see
  ``tests/sanitize_threads.py``.
- ``ANNEALVI_LIMITED_API=1``: build for CPython 3.11 and all later versions, for a wheel.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError, PlatformError
from setuptools.modified import newer_group

KERNELS = "annealvi/_kernels"
DEPENDS = ["setup.py", *map(str, Path(KERNELS).glob("*.[ch]"))]
WINDOWS = sys.platform == "win32"
DEBUG = os.environ.get("ANNEALVI_DEBUG", "") not in ("", "0")
SANITIZE = os.environ.get("ANNEALVI_SANITIZE", "")
SANITIZE = {"0": "", "1": "address,undefined"}.get(SANITIZE, SANITIZE)

# Never -ffast-math (it reorders sums and, at link time, switches the whole
# process to flush-to-zero) and never -march=native (the result would only run
# on this machine).  The first two flags below are enough for the vectoriser.  What is fused is
# written so: a compiler that chose would give each instruction set its own bits.
FLAGS = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-Wno-psabi"]
# The loops that matter are in kernels.c.  The modules are mostly Cython's own code.  Python's own
# flags may ask for symbols of a debugger, which take a third of the time to compile.
OPTIMISED = ["-O3", "-g0"]
PLAIN = ["-O1", "-g0"]
if DEBUG or SANITIZE:
    OPTIMISED = ["-O1", "-g"]
    PLAIN = OPTIMISED
# The runtime comes with the C compiler, and is loaded before Python.
SANITIZERS = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
if SANITIZE:
    FLAGS += [*SANITIZERS, "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]

# Builds of different kinds have separate intermediate files, so that none is mistaken for
# that of another kind.
SERIAL = os.environ.get("ANNEALVI_NO_OPENMP", "") not in ("", "0")
# Free-threaded Python has no stable ABI, so there the variable has no effect.
LIMITED = os.environ.get("ANNEALVI_LIMITED_API", "") not in ("", "0") and not (
    sysconfig.get_config_var("Py_GIL_DISABLED")
)
BUILD = "build"
if DEBUG:
    BUILD += "/debug"
if SANITIZE:
    BUILD += f"/sanitize-{SANITIZE[:7]}"
if SERIAL:
    BUILD += "/serial"
if LIMITED:
    BUILD += "/limited"
# What Cython needs for typed memoryviews, compiled once instead of in each module.
SHARED = "annealvi._kernels._cyutility"
SHARED_C = f"{BUILD}/cython/_cyutility.c"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    # No module has a state that is written after its import, but for use_instruction_set, which
    # tests call.
    "freethreading_compatible": True,
}

MACROS = [
    ("ANNEALVI_DEBUG", str(int(DEBUG))),
    ("ANNEALVI_SANITIZE", str(int(bool(SANITIZE)))),
]
if LIMITED:
    MACROS += [("Py_LIMITED_API", "0x030B0000")]  # 3.11, which has the buffer protocol

# The builds of kernels.c; dispatch.c chooses one at run time.
X86_BUILDS = {
    "avx2": ["-mavx2", "-mfma"],
    "avx512": [
        "-mavx512f",
        "-mavx512dq",
        "-mavx512bw",
        "-mavx512vl",
        "-mfma",
        "-mprefer-vector-width=512",
    ],
}
OPENMP = ["-fopenmp"]
OPENMP_LINK = OPENMP
if WINDOWS:  # Microsoft's compiler does not know GCC's vectors; clang-cl does

    def for_clang_cl(flags: Sequence[str]) -> list[str]:
        return [f"/clang:{flag}" for flag in flags]

    FLAGS, OPTIMISED, PLAIN, OPENMP = map(for_clang_cl, (FLAGS, OPTIMISED, PLAIN, OPENMP))
    X86_BUILDS = {name: for_clang_cl(flags) for name, flags in X86_BUILDS.items()}
    # Microsoft's linker does not know where the runtime of clang-cl is.
    LLVM = Path(shutil.which("clang-cl") or "bin/clang-cl").parents[1]
    OPENMP_LINK = [f"/LIBPATH:{LLVM / 'lib'}", "libomp.lib"]

PLAIN_PROBE = "int main(void) { return 0; }\n"
OPENMP_PROBE = """
#include <omp.h>
int main(void) {
    int n = 0;
    #pragma omp parallel reduction(+:n)
    n += 1;
    return n < 1 || omp_pause_resource_all(omp_pause_soft) != 0; /* for openmp.py: GCC 9 */
}
"""
X86_PROBE = """
#ifndef __x86_64__
#error another processor
#endif
int main(void) { return 0; }
"""
# The baseline calls the C library's fma.  That of mingw-w64 10 rounds twice.
FMA_PROBE = """
#include <math.h>
int main(void) {
    volatile double x = 1 + 0x1p-52, y = -(1 + 0x1p-51);
    volatile float z = 1 + 0x1p-23f, w = -(1 + 0x1p-22f);
    return fma(x, x, y) != 0x1p-104 || fmaf(z, z, w) != 0x1p-46f;
}
"""

STRUCT = r"typedef struct \{([^{}]*)\} (annealvi_\w+);"


class BuildKernels(build_ext):
    """build_ext that probes for OpenMP and compiles the kernels for each instruction set."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.editable_mode:  # share with a later `pip install .` what is compiled
            tag = f"{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
            self.build_lib = f"{BUILD}/lib.{tag}"
            self.build_temp = f"{BUILD}/temp.{tag}"

    def compiles(
        self,
        source: str,
        flags: Sequence[str] = (),
        link: Sequence[str] | None = None,
        run: bool = False,
    ) -> bool:
        """Return whether a program compiles, links with the flags `link`, and runs.

        The build stops if the compiler accepts no program at all.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "probe.c")
            path.write_text(source)
            try:
                objects = self.compiler.compile(
                    [str(path)], output_dir=folder, extra_postargs=[*flags]
                )
                program = str(Path(folder, "probe"))
                if link is not None:
                    self.compiler.link_executable(objects, program, extra_postargs=[*link])
                if run:
                    return subprocess.run([program], check=False).returncode == 0
            except (CompileError, LinkError) as error:
                if source == PLAIN_PROBE:
                    raise PlatformError(
                        "annealvi: the C compiler cannot build a program of one line "
                        f"({error}). Install a C compiler, for example by `apt install gcc` or "
                        "`xcode-select --install`, or name yours in the variable CC, and build "
                        "again. Windows needs clang-cl of LLVM and Microsoft's build tools. "
                        "Without a compiler, `pip install` needs a wheel for this system."
                    ) from None
                # a compiler that cannot run must not look like a compiler without a feature
                self.compiles(PLAIN_PROBE, link=None if link is None else ())
                return False
        return True

    def openmp_flags(self) -> list[str]:
        """Return the flags of OpenMP, and say whether the build has it."""
        if SERIAL:
            self.warn("annealvi: ANNEALVI_NO_OPENMP is set; building for one thread")
            return []
        if not self.compiles(OPENMP_PROBE, OPENMP, link=OPENMP_LINK):
            self.warn(
                "annealvi: no OpenMP (GCC 9's or later); building for one thread, n_jobs idle"
            )
            return []
        print("annealvi: building with OpenMP")
        return OPENMP

    def x86_builds(self) -> dict[str, list[str]]:
        """Return the flags of the kernels for newer x86-64 processors, and say what is left out."""
        if not self.compiles(X86_PROBE):
            return {}  # another processor, whose baseline is fast
        lacking = [
            name for name, flags in X86_BUILDS.items() if not self.compiles(X86_PROBE, flags)
        ]
        if lacking:
            self.warn(
                f"annealvi: the C compiler does not know the flags for {' and '.join(lacking)}; "
                "building without AVX2 and AVX-512, and fits take about ten times as long"
            )
            return {}
        return X86_BUILDS

    def build_extensions(self) -> None:
        if WINDOWS:
            self.compiler.initialize()
            self.compiler.cc = "clang-cl"
            if not self.compiles(FMA_PROBE, link=[], run=True):
                raise PlatformError(
                    "annealvi: fma of this C library does not round once, so results would differ "
                    "from other machines. Install clang-cl and Microsoft's C library."
                )
        openmp = self.openmp_flags()
        builds = {"baseline": OPTIMISED}
        macros = [*MACROS]
        x86_builds = self.x86_builds()
        if x86_builds:
            # The baseline is then for processors from before 2013.
            builds = {"baseline": PLAIN}
            builds |= {name: OPTIMISED + flags for name, flags in x86_builds.items()}
            macros += [("ANNEALVI_X86", "1")]
        print(f"annealvi: kernels for {', '.join(builds)}")
        for extension in self.extensions:
            extension.extra_compile_args += FLAGS + PLAIN + openmp
            extension.extra_link_args += (OPENMP_LINK if openmp else []) + SANITIZERS
            extension.define_macros += macros
        self.builds = builds
        self.macros = macros
        self.openmp = openmp
        dispatch, *modules = self.extensions
        with ThreadPoolExecutor(self.parallel or os.cpu_count()) as pool:
            kernels = [pool.submit(self.kernels, name) for name in builds]  # the long ones first
            self.translate()
            for module in [pool.submit(self.build_extension, each) for each in modules]:
                module.result()
        dispatch.extra_objects = [each.result() for each in kernels]
        self.build_extension(dispatch)

    def translate(self) -> None:
        """Make C of the modules, where that is not done yet."""
        declarations = Path(KERNELS, "kernels.pxd")
        written = declare(Path(KERNELS, "kernels.h"))
        if not declarations.exists() or declarations.read_text() != written:
            declarations.write_text(written)
        modules = [each for each in self.extensions if each.name != SHARED]
        made = [f"{BUILD}/cython/{each.sources[0][:-4]}.c" for each in modules]
        sources = ["setup.py", *map(str, Path(KERNELS).glob("*.p[yx]*"))]
        if any(newer_group(sources, path) for path in [SHARED_C, *made]):
            Path(SHARED_C).parent.mkdir(parents=True, exist_ok=True)
            cython = [sys.executable, "-m", "cython", f"--generate-shared={SHARED_C}"]
            subprocess.run(cython, check=True)
            cythonize(
                modules,
                force=True,
                compiler_directives=DIRECTIVES,
                build_dir=f"{BUILD}/cython",
                shared_utility_qualified_name=SHARED,
                quiet=True,
            )
        for each, path in zip(modules, made, strict=True):
            each.sources[0] = path

    def kernels(self, name: str) -> str:
        """kernels.c for an instruction set, compiled where that is not done yet."""
        source = f"{KERNELS}/kernels.c"
        folder = str(Path(self.build_temp, name))
        (compiled,) = self.compiler.object_filenames([source], output_dir=folder)
        if newer_group([source, *DEPENDS], compiled):
            self.compiler.compile(
                [source],
                output_dir=folder,
                macros=[*self.macros, ("KERNELS_NAME", name)],
                include_dirs=[KERNELS],
                extra_postargs=FLAGS + self.builds[name] + self.openmp,
            )
        return compiled


def declare(header: Path) -> str:
    """Cython's declarations of the structs and tables in kernels.h."""
    text = re.sub(r"/\*.*?\*/|\\\n", "", header.read_text(), flags=re.DOTALL)
    before, of_real, shared = re.split(r"#define ANNEALVI_\w*KERNELS\(", text)
    lines = ["from libc.stdint cimport int32_t, int64_t, uint64_t", ""]
    lines.append('cdef extern from "kernels.h" nogil:')
    structs = [(name, body.split(";")[:-1], "") for body, name in re.findall(STRUCT, before)]
    named_tables = ["const char *name", "annealvi_table real[2]"]
    tables = [("annealvi_table", [], of_real), ("annealvi_kernels", named_tables, shared)]
    for name, fields, kernels in structs + tables:
        for result, kernel, arguments in re.findall(
            r"KERNEL\((\w+), (\w+), \(([^()]+)\)\)", kernels
        ):
            types = " ".join(arguments.split()).replace("*const *", "**")
            fields.append(f"{result} (*{kernel})({types}) noexcept nogil")
        lines += [f"    ctypedef struct {name}:", *(f"        {each.strip()}" for each in fields)]
    return "\n".join(lines) + "\n"


def extension(name: str, *sources: str) -> Extension:
    return Extension(
        f"annealvi._kernels.{name}",
        [f"{KERNELS}/{name}.pyx", *sources],
        include_dirs=[KERNELS],
        py_limited_api=LIMITED,
        depends=DEPENDS,
    )


MODULES = (
    *("lda", "lda_topics", "lda_collapsed", "mmm", "gemm", "fmm", "partition"),
    *("special", "lda_seeds"),
)
setup(
    ext_modules=[
        extension("_dispatch", f"{KERNELS}/dispatch.c"),
        Extension(SHARED, [SHARED_C], py_limited_api=LIMITED),
        *map(extension, MODULES),  # long ones first
    ],
    cmdclass={"build_ext": BuildKernels},
    options={
        "build": {"build_base": BUILD},
        "bdist_wheel": {"py_limited_api": "cp311"} if LIMITED else {},
    },
)
