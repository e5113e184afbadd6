"""The lower bounds of pyproject.toml as constraints of pip: ``python tests/oldest.py``.

Those of the build and of all extras are among them.
"""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lower_bounds(pyproject):
    """Name and lower bound of each requirement of a parsed pyproject.toml."""
    project = pyproject["project"]
    texts = pyproject["build-system"]["requires"] + project["dependencies"]
    for extra in project["optional-dependencies"].values():
        texts = texts + extra
    bounds = {}
    for requirement in map(Requirement, texts):
        versions = [bound.version for bound in requirement.specifier if bound.operator == ">="]
        if len(versions) != 1:
            raise ValueError(f"{requirement} in pyproject.toml must have one lower bound, >=")
        if bounds.setdefault(requirement.name, versions[0]) != versions[0]:
            raise ValueError(f"{requirement.name} has several lower bounds in pyproject.toml")
    return bounds


if __name__ == "__main__":
    for name, version in lower_bounds(tomllib.loads(PYPROJECT.read_text("utf-8"))).items():
        print(f"{name}=={version}")
