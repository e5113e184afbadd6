"""Files: trees of numbers, strings and arrays, written as safetensors and read with checks.

An object that is to be written has ``state_dict()``, which returns a tree, and
``load_state_dict(tree)``, which takes one and checks each value it uses; a
:class:`~annealvi.files.schema.Schema` does both from one list of fields.
"""

from annealvi.files.container import read, read_archive, replacing, write

__all__ = ["read", "read_archive", "replacing", "write"]
