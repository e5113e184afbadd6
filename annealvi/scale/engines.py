"""Engines, which compute the shards of a fit in this process or on workers of Dask."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
import uuid
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, wait
from typing import Any

from annealvi._optional import import_optional
from annealvi._version import __version__
from annealvi.exceptions import BadParameter

#: An object for a result, which is kept where it was computed as long as this object exists.
Handle = Any


class WorkersLostError(Exception):
    """Results were lost because workers have died; the step must be computed again."""


class SerialEngine:
    """Computes functions in this process.  Other engines compute and keep results elsewhere."""

    #: Number of workers at present.
    n_workers = 1

    def __init__(self, n_threads: int = 1) -> None:
        self._n_threads = n_threads
        #: How often the engine has found that workers have died.
        self.n_losses = 0

    def threads(self) -> int:
        """Return the number of threads that a task should use."""
        return self._n_threads

    def put(self, value: Any) -> Handle:
        """Send a value to the workers, which the tasks of a step need."""
        return value

    def submit(
        self, function: Callable[..., Any], *arguments: Any, slot: int | None = None
    ) -> Handle:
        """Compute a function, whose arguments are values or handles of other results."""
        return function(*arguments)

    def is_lost(self, handle: Handle) -> bool:
        """Return whether a result was lost with its worker, and must be submitted again."""
        return False

    def gather(self, handles: Sequence[Handle]) -> list[Any]:
        """Wait for results, and return them."""
        return list(handles)


PURPOSE = "annealvi.dask"
DELAYED = ("dask.delayed", "dask._delayed")
#: Seconds between two checks that the workers still exist.
INTERVAL = 1.0
#: Seconds after which a value is sent again for the first time, because a worker that dies may
#: never confirm that it has received the value.
LONGEST_PUT = 5.0


class _NotThereError(Exception):
    """A value that was sent to the workers has been lost."""


#: The errors that sending a value may raise if a worker dies or cannot be reached.
SENDING_FAILED = OSError, TimeoutError, CancelledError, RuntimeError, KeyError, _NotThereError


class DaskEngine(SerialEngine):
    """Computes functions on the workers of a Dask client.

    Results stay on the workers.  If a worker dies, the scheduler computes the results of its tasks
    again.  If a value that was sent with `put` is lost, :class:`WorkersLostError` is raised.
    """

    def __init__(self, client: Any = None, patience: float = 300.0) -> None:
        distributed = import_optional("distributed", PURPOSE, "dask")
        if client is None:
            try:
                client = distributed.default_client()
            except ValueError as error:
                raise ValueError(
                    "The 'client' parameter is None, and Dask has no current client. Make one "
                    "first, for example with distributed.Client()."
                ) from error
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise BadParameter("client", "a synchronous distributed.Client or None", client)
        self._client = client
        self._patience = patience
        self._distributed = distributed
        self._name = uuid.uuid4().hex[:12]
        self._counter = itertools.count()
        self._addresses: list[str] = []
        # a task that is bound to a worker, even loosely, never ends if that worker dies
        self._bound: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self.n_losses = 0
        self._longest_put = LONGEST_PUT
        self._shared: Any = None  # the last value that was sent with `put`
        self._look()
        self._check_versions()
        self._direct = False
        self._direct = self._reaches_workers()

    @property
    def n_workers(self) -> int:  # type: ignore[override]
        """Number of workers at present; waits if there are none."""
        self._look()
        return len(self._addresses)

    def threads(self) -> int:
        """Return the number of threads of the worker that has the fewest threads."""
        return min(self._threads.values())

    def put(self, value: Any) -> Handle:
        """Send a value to one worker, from which the other workers fetch it."""
        started = time.monotonic()
        self._shared = None
        # `broadcast` is not used: with it the scheduler never answers if a worker dies
        sending = self._client.scatter(value, hash=False, direct=self._direct, asynchronous=True)
        try:
            self._shared = self._ended(sending, self._longest_put)
        except SENDING_FAILED as e:
            if time.monotonic() - started > self._longest_put:
                self._longest_put *= 2
            self._look()
            raise WorkersLostError("a worker was lost while it received the topics") from e
        return self._shared

    def submit(
        self, function: Callable[..., Any], *arguments: Any, slot: int | None = None
    ) -> Handle:
        """Compute a function on a worker."""
        placement: dict[str, Any] = {}
        address = None if slot is None else self._addresses[slot % len(self._addresses)]
        if address is not None:
            placement = {"workers": [address], "allow_other_workers": True}
        computed = [
            self._client.compute(one, **placement) if type(one).__module__ in DELAYED else one
            for one in arguments
        ]
        key = f"annealvi-{function.__name__}-{self._name}-{next(self._counter)}"
        future = self._client.submit(function, *computed, key=key, pure=False, **placement)
        if address is not None:
            self._bound[future] = address
        return future

    def is_lost(self, handle: Handle) -> bool:
        """Return whether the worker of a result has died."""
        address = self._bound.get(handle)
        return address is not None and address not in self._threads

    def gather(self, handles: Sequence[Handle]) -> list[Any]:
        """Wait for results and return them."""
        handles = list(handles)
        lost = self._distributed.KilledWorker, CancelledError, _NotThereError
        try:
            gathering = self._client.gather(handles, direct=self._direct, asynchronous=True)
            return list(self._ended(gathering))
        except BaseException as error:
            failed = any(one.status == "error" for one in handles)
            self._client.cancel(handles)
            if isinstance(error, lost) or (isinstance(error, OSError) and not failed):
                raise WorkersLostError("a worker was lost") from error
            raise  # an error of the function, or an interrupt

    # ----------------------------------------------------------------- details

    def _ended(self, coroutine: Coroutine[Any, Any, Any], limit: float = math.inf) -> Any:
        """Wait for a coroutine of the client, and return its result; raise if a worker dies."""
        began = time.monotonic()
        job = asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)
        try:
            while wait([job], INTERVAL).not_done:
                self._check_losses()
                if time.monotonic() - began > limit:
                    raise TimeoutError
            return job.result()
        finally:
            job.cancel()

    def _check_losses(self) -> None:
        """Raise _NotThereError if workers have died, or if the value of `put` was lost."""
        losses = self.n_losses
        self._look()
        shared = self._shared
        addresses = {} if shared is None else self._client.who_has([shared])
        if self.n_losses > losses or not all(addresses.values()):
            raise _NotThereError  # tasks that need a lost value would never end

    def _look(self) -> None:
        """Update the list of workers; wait if there are none."""
        began = time.monotonic()
        while True:
            if self._client.status != "running":
                raise ValueError(
                    "The 'client' parameter must be a client that is connected to a scheduler. "
                    f"Got a client whose status is {self._client.status!r}. Make a new one."
                )
            self._threads: dict[str, int] = self._client.nthreads()
            if self._threads:
                break
            if time.monotonic() - began > self._patience:
                raise RuntimeError(
                    f"The scheduler has had no workers for {self._patience:.0f} seconds. Start "
                    "some, for example with `dask worker` and the scheduler's address."
                )
            time.sleep(0.1)
        self.n_losses += any(one not in self._threads for one in self._addresses)
        kept = [one for one in self._addresses if one in self._threads]
        self._addresses = kept + sorted(self._threads.keys() - set(kept))

    def _reaches_workers(self) -> bool:
        """Whether this process can send to workers directly, which takes half the time."""
        sending = self._client.scatter(0, hash=False, direct=True, asynchronous=True)
        try:
            self._ended(sending, LONGEST_PUT)
        except SENDING_FAILED:
            return False
        return True

    def _check_versions(self) -> None:
        """Raise an error if a worker has another version of annealvi than this process."""
        for address, version in self._client.run(_version, on_error="return").items():
            if isinstance(version, BaseException):
                raise ImportError(
                    f"The worker {address} cannot import annealvi. Install annealvi "
                    f"{__version__} in the worker's environment."
                ) from version
            if version != __version__:
                raise RuntimeError(
                    f"All workers must have annealvi {__version__}, the version that this process "
                    f"uses. The worker {address} has annealvi {version}."
                )


def _version() -> str:
    """The version of annealvi in a worker."""
    return __version__
