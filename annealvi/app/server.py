"""The server of ``annealvi open``: for this machine only, and only with the token of the link."""

from __future__ import annotations

import secrets
import tempfile
import webbrowser
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from annealvi.app.study import ENDINGS, LARGEST, Study

#: The names by which a browser reaches the server; a request with another name may be an attack.
LOCAL = "127.0.0.1"
HOSTS = (LOCAL, "localhost")
#: What a browser may do with the page; with a document, in which nothing may run; and with the
#: report, whose own policy allows only its script.
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
OF_PAGE = f"{NOTHING}; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'"
OF_DOCUMENT = {"Content-Security-Policy": f"{NOTHING}; style-src 'unsafe-inline'"}
OF_REPORT = {"Content-Security-Policy": "frame-ancestors 'self'"}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
#: The media type of files that a browser saves, and does not show.
BYTES = "application/octet-stream"
#: Errors about the input of a person, whose message the page shows.
REFUSED = (ValueError, TypeError, LookupError, AttributeError, OSError, MemoryError)
#: The methods of the study that a request can call.
CALLS = ("state", "fit", "resume", "cancel", "edit", "compare", "documents")
#: Where a request may come from: this page, or the address bar.
ORIGINS = ("same-origin", "none")
#: The folder of a study.
FOLDER = "annealvi-study"
#: The files that make up each part of the page, and its media type.
PARTS = {
    "": ("text/html", ["app/page.html"]),
    "page.css": ("text/css", ["plot/report.css", "app/page.css"]),
    "page.js": ("text/javascript", ["app/page.js"]),
}


def make_app(study: Study, token: str) -> Any:
    """Return the server of a study as an ASGI application."""

    async def guard(request: Any, call_next: Callable) -> Any:
        """Refuse requests without the token or of other pages, and add headers to answers."""
        given_token = request.url.path.split("/")[1].encode()
        known = secrets.compare_digest(given_token, token.encode())
        # older browsers and other programs send no sec-fetch-site, and must know the token
        if known and request.headers.get("sec-fetch-site", "none") in ORIGINS:
            response = await call_next(request)
        else:
            response = Response("Open the link that annealvi open has printed.", 403)
        response.headers.update(HEADERS)
        response.headers.setdefault("Content-Security-Policy", OF_PAGE)
        return response

    def refused(request: Any, error: Exception) -> Any:
        return JSONResponse({"error": str(error)}, 400)

    def page(request: Any) -> Any:
        media_type, names = PARTS[request.path_params["part"]]
        return Response(
            "\n".join(files("annealvi").joinpath(name).read_text("utf-8") for name in names),
            media_type=media_type,
        )

    async def upload(request: Any) -> Any:
        name = Path(request.query_params["name"]).name
        ending = Path(name).suffix.lower()
        if ending not in ENDINGS:
            raise ValueError(
                f"The name of the file must end in {', '.join(ENDINGS)}. Got {name!r}."
            )
        size = int(request.headers.get("content-length", 0))
        with tempfile.TemporaryDirectory(dir=study.folder) as folder:
            path = Path(folder, f"upload{ending}")
            with path.open("wb") as file:
                async for block in request.stream():
                    file.write(block)
                    if max(size, file.tell()) > LARGEST:
                        raise ValueError(f"{name!r} is larger than {LARGEST >> 20} MB.")
            await run_in_threadpool(study.take, path, name)
        return JSONResponse({})

    async def call(request: Any) -> Any:
        """Call the method of the study that the link names."""
        name = request.path_params["name"]
        if name not in CALLS:
            raise ValueError(f"There is no {name!r}.")
        return JSONResponse(await run_in_threadpool(getattr(study, name), **await request.json()))

    def document(request: Any) -> Any:
        return Response(
            study.document(request.path_params["number"]),
            media_type="text/html",
            headers=OF_DOCUMENT,
        )

    def result(request: Any) -> Any:
        name = request.path_params["name"]
        return Response(
            study.result(name),
            media_type="text/html" if name == "report.html" else BYTES,
            headers=OF_REPORT,
        )

    routes = [
        Route("/upload", upload, methods=["POST"]),
        Route("/study/{name}", call, methods=["POST"]),
        Route("/documents/{number:int}", document),
        Route("/results/{name}", result),
        Route("/{part:path}", page),
    ]
    return Starlette(
        routes=[Mount(f"/{token}", routes=routes)],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS),
            Middleware(BaseHTTPMiddleware, dispatch=guard),
        ],
        exception_handlers=dict.fromkeys(REFUSED, refused),
    )


def serve(
    path: str | None,
    folder: str | None,
    read: Callable[[Path], Any],
    port: int = 0,
    browser: bool = True,
) -> None:
    """Open a study in a browser, and serve its page until the process is stopped.

    Parameters
    ----------
    path : str or None
        A file of documents.
    folder : str or None
        The folder of the study.  None means ``annealvi-study`` beside the file, or in the current
        folder.
    read : function
        Reads a file of documents, and returns its columns by their names.
    port : int, default=0
        The port of 127.0.0.1.  0 means a free port.
    browser : bool, default=True
        Whether to open a browser.
    """
    source = None if path is None else Path(path).resolve()
    place = Path.cwd() if source is None else source.parent
    study = Study(place / FOLDER if folder is None else Path(folder).resolve(), read)
    name = study.saved["name"]
    if source is not None and name != source.name:
        if name:
            raise ValueError(
                f"The folder {str(study.folder)!r} contains the study of {name!r}. Choose another "
                "folder with --folder."
            )
        study.take(source, source.name)
    token = secrets.token_urlsafe(16)
    config = uvicorn.Config(make_app(study, token), host=LOCAL, port=port, log_level="critical")
    listening = config.bind_socket()
    listening.listen()
    link = f"http://{LOCAL}:{listening.getsockname()[1]}/{token}/"
    print(
        f"The study is in {study.folder}\nOpen {link} (only this computer can; stop with Ctrl-C)",
        flush=True,
    )
    if browser:
        Thread(target=webbrowser.open, args=[link], daemon=True).start()
    uvicorn.Server(config).run(sockets=[listening])
