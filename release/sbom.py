"""Write a software bill of materials into wheels (PEP 770, CycloneDX).

    python release/sbom.py FOLDER

It lists what a wheel contains besides our own files: shared libraries that were copied into it,
and code that Cython and the C compiler have added to the kernels.  The versions are those that
the compiled kernels themselves name.  Each wheel in the folder is replaced by one with the file
``sboms/annealvi.cdx.json``.  SOURCE_DATE_EPOCH, if it is set, is the time in the file.

Needs the packages ``cyclonedx-python-lib[json-validation]`` and ``wheel``, and the Python that
the wheel is for.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from email import message_from_string
from pathlib import Path
from types import ModuleType

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

NAME = "annealvi.cdx.json"
GCC = "GPL-3.0-or-later WITH GCC-exception-3.1"
#: Libraries that may be copied into a wheel: the beginnings of their files' names.
LIBRARIES = {"libgomp": "GCC's OpenMP runtime", "libgcc_s": "GCC's runtime"}
#: Folders of the libraries that auditwheel, delvewheel and delocate copy into a wheel.
BUNDLES = ("*.libs", "*/.dylibs")


def component(
    name: str,
    version: str,
    licence: str,
    description: str,
    *,
    purl: PackageURL | None = None,
    path: Path | None = None,
) -> Component:
    """One entry of the bill; `path` is a file of the wheel, whose digest is added."""
    hashes = []
    if path is not None:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest)]
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        licenses=[LicenseFactory().make_from_string(licence)],
        description=description,
        purl=purl,
        scope=ComponentScope.REQUIRED,
        hashes=hashes,
        bom_ref=f"{name}@{version}",
    )


def built_with(folder: Path) -> dict[str, str]:
    """What the kernels in an unpacked wheel say of their build, without importing the package."""
    for name in ("annealvi", "annealvi._kernels"):  # their own __init__ would import libraries
        sys.modules[name] = package = ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")))]
    return importlib.import_module("annealvi._kernels._dispatch").built_with()


def components(folder: Path) -> Iterator[Component]:
    """What an unpacked wheel contains that is not ours, and what its kernels were built against."""
    versions = built_with(folder)
    yield component(
        "Cython",
        versions["Cython"],
        "Apache-2.0",
        "Translated the kernels to C; its own runtime code is part of each compiled module.",
        purl=PackageURL("pypi", name="cython", version=versions["Cython"]),
    )
    compiler, _, number = versions["compiler"].partition(" ")
    if compiler == "GCC":
        yield component(
            "libgcc", number.split()[0], GCC, "Parts of GCC's runtime, linked into the kernels."
        )
    packages = installed_packages(folder)
    for path in sorted(path for bundle in BUNDLES for path in folder.glob(f"{bundle}/*")):
        name = next((name for name in LIBRARIES if path.name.startswith(name)), None)
        if name is None:
            raise SystemExit(f"release/sbom.py does not know {path.name}: add it to LIBRARIES.")
        version, purl = packages.get(name, (number.split()[0], None))
        text = f"{LIBRARIES[name]}, a copy: {path.relative_to(folder).as_posix()}."
        yield component(name, version, GCC, text, purl=purl, path=path)


def installed_packages(folder: Path) -> dict[str, tuple[str, PackageURL]]:
    """Versions of the libraries that auditwheel has copied, as their packages have them."""
    found = {}
    for path in folder.glob("*.dist-info/sboms/auditwheel.cdx.json"):
        for part in json.loads(path.read_text(encoding="utf-8"))["components"]:
            for name in LIBRARIES:
                if part["name"].startswith(name):  # Debian has libgomp1, for example
                    found[name] = part["version"], PackageURL.from_string(part["purl"])
    return found


def bill(folder: Path, wheel: Path) -> str:
    """The bill of materials of an unpacked wheel, as JSON."""
    (metadata,) = folder.glob("annealvi-*.dist-info/METADATA")
    fields = message_from_string(metadata.read_text(encoding="utf-8"))
    ours = component(
        fields["Name"],
        fields["Version"],
        fields["License-Expression"],
        fields["Summary"],
        purl=PackageURL("pypi", name=fields["Name"], version=fields["Version"]),
    )
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, wheel.name))
    if "SOURCE_DATE_EPOCH" in os.environ:
        bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    bom.metadata.component = ours
    parts = list(components(folder))
    bom.components.update(parts)
    bom.register_dependency(ours, parts)
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        raise SystemExit(f"The bill of materials of {wheel.name} is not valid: {error}")
    return text


def add_bill(wheel: Path) -> None:
    """Replace a wheel by one with its bill of materials."""
    with tempfile.TemporaryDirectory() as temporary:
        run = [sys.executable, "-m", "wheel"]
        subprocess.run([*run, "unpack", "--dest", temporary, str(wheel)], check=True)
        (folder,) = Path(temporary).iterdir()
        text = bill(folder, wheel)
        (information,) = folder.glob("annealvi-*.dist-info")
        (information / "sboms").mkdir(exist_ok=True)
        (information / "sboms" / NAME).write_text(text + "\n", encoding="utf-8")
        subprocess.run([*run, "pack", "--dest-dir", str(wheel.parent), str(folder)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    wheels = sorted(folder.glob("annealvi-*.whl"))
    if not wheels:
        parser.error(f"no wheel of annealvi in {folder}")
    for wheel in wheels:
        add_bill(wheel)


if __name__ == "__main__":
    main()
