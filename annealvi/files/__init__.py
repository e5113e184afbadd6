"""Files: trees of numbers, strings and arrays, written as safetensors and read with checks.

An object that can be written has the method ``state_dict()``, which returns nested dicts and lists
(a tree), and ``load_state_dict(tree)``, which checks each value before it is used.  A
:class:`~annealvi.files.schema.Schema` implements both methods from one list of fields.
"""

from annealvi.files.container import flush, read, read_archive, replacing, write

__all__ = ["flush", "read", "read_archive", "replacing", "write"]
