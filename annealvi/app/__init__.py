"""The page of ``annealvi open``: topics without code, in a browser, served to this machine only."""

from annealvi.app.server import serve

__all__ = ["serve"]
