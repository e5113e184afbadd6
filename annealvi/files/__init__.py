"""Files: trees of numbers, strings and arrays, written as safetensors and read with checks.

An object that is to be written has ``state_dict()``, which returns a tree, and
``load_state_dict(node)``, which takes one and checks each value it uses; a
:class:`~annealvi.files.schema.Schema` does both from one list of fields.
"""

from annealvi.files.container import read, read_archive, replacing, write
from annealvi.files.node import Node, generator_state, restore_generator

__all__ = [
    "Node",
    "generator_state",
    "read",
    "read_archive",
    "replacing",
    "restore_generator",
    "write",
]
