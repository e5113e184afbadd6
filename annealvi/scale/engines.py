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
        """`n_threads` is the number of threads of each task."""
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
        """Compute a function, whose arguments are values or handles of other results.

        `slot` is a number that other engines map to a worker.
        """
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


class _ValueLostError(Exception):
    """A value that was sent to the workers has been lost."""


#: The errors that sending a value may raise if a worker dies or cannot be reached.
SENDING_FAILED = OSError, TimeoutError, CancelledError, RuntimeError, KeyError, _ValueLostError


class DaskEngine(SerialEngine):
    """Computes functions on the workers of a Dask client.

    Results stay on the workers.  If a worker dies, the scheduler computes the results of its tasks
    again.  If a value that was sent with `put` is lost, :class:`WorkersLostError` is raised.
    """

    def __init__(self, client: Any = None, patience: float = 300.0) -> None:
        """`patience` is for how many seconds the engine waits if there are no workers."""
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
        # together they name the tasks of this engine
        self._name = uuid.uuid4().hex[:12]
        self._counter = itertools.count()
        self._addresses: list[str] = []
        # the address of the worker to which a task is bound: such a task, even if it may run
        # elsewhere, never ends if that worker dies
        self._worker_of_result: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self.n_losses = 0
        self._put_limit = LONGEST_PUT
        self._shared: Any = None  # the last value that was sent with `put`
        self._update_workers()
        self._check_versions()
        self._sends_directly = False  # until the next line has tried it
        self._sends_directly = self._reaches_workers()

    @property
    def n_workers(self) -> int:  # type: ignore[override]
        """Number of workers at present; waits if there are none."""
        self._update_workers()
        return len(self._addresses)

    def threads(self) -> int:
        """Return the number of threads of the worker that has the fewest threads."""
        return min(self._threads.values())

    def put(self, value: Any) -> Handle:
        """Send a value to one worker, from which the other workers fetch it."""
        started = time.monotonic()
        self._shared = None
        # `broadcast` is not used: with it the scheduler never answers if a worker dies
        sending = self._client.scatter(
            value, hash=False, direct=self._sends_directly, asynchronous=True
        )
        try:
            self._shared = self._result_of(sending, self._put_limit)
        except SENDING_FAILED as e:
            if time.monotonic() - started > self._put_limit:
                self._put_limit *= 2  # the value may just be large
            self._update_workers()
            raise WorkersLostError("a worker was lost while it received the topics") from e
        return self._shared

    def submit(
        self, function: Callable[..., Any], *arguments: Any, slot: int | None = None
    ) -> Handle:
        """Compute a function on a worker, if possible on the one of this `slot`."""
        worker_options: dict[str, Any] = {}
        if slot is not None:  # otherwise any worker
            address = self._addresses[slot % len(self._addresses)]
            worker_options = {"workers": [address], "allow_other_workers": True}
        # delayed arguments are computed as tasks of their own
        argument_handles = [
            self._client.compute(argument, **worker_options)
            if type(argument).__module__ in DELAYED
            else argument
            for argument in arguments
        ]
        # pure=False and a new key: a result is not taken from an earlier call
        key = f"annealvi-{function.__name__}-{self._name}-{next(self._counter)}"
        future = self._client.submit(
            function, *argument_handles, key=key, pure=False, **worker_options
        )
        if slot is not None:
            self._worker_of_result[future] = address
        return future

    def is_lost(self, handle: Handle) -> bool:
        """Return whether the worker of a result has died."""
        address = self._worker_of_result.get(handle)
        return address is not None and address not in self._threads

    def gather(self, handles: Sequence[Handle]) -> list[Any]:
        """Wait for results and return them."""
        errors_of_losses = self._distributed.KilledWorker, CancelledError, _ValueLostError
        try:
            results = self._client.gather(handles, direct=self._sends_directly, asynchronous=True)
            return list(self._result_of(results))
        except BaseException as error:
            function_failed = any(handle.status == "error" for handle in handles)
            self._client.cancel(handles)  # the step is computed again, or ends
            if isinstance(error, errors_of_losses) or (
                isinstance(error, OSError) and not function_failed
            ):
                raise WorkersLostError("a worker was lost") from error
            raise  # an error of the function, or an interrupt

    # ----------------------------------------------------------------- details

    def _result_of(self, coroutine: Coroutine[Any, Any, Any], limit: float = math.inf) -> Any:
        """Wait for a coroutine of the client, and return its result; raise if a worker dies."""
        start_time = time.monotonic()
        # the client's event loop runs in another thread
        future = asyncio.run_coroutine_threadsafe(coroutine, self._client.loop.asyncio_loop)
        try:
            while wait([future], INTERVAL).not_done:
                self._check_losses()
                if time.monotonic() - start_time > limit:
                    raise TimeoutError
            return future.result()
        finally:
            future.cancel()  # does nothing if it has ended

    def _check_losses(self) -> None:
        """Raise _ValueLostError if workers have died, or if the value of `put` was lost."""
        n_losses_before = self.n_losses
        self._update_workers()
        shared_value = self._shared
        workers_with_value = {} if shared_value is None else self._client.who_has([shared_value])
        if self.n_losses > n_losses_before or not all(workers_with_value.values()):
            raise _ValueLostError  # tasks that need a lost value would never end

    def _update_workers(self) -> None:
        """Update the list of workers; wait if there are none."""
        start_time = time.monotonic()
        while True:
            if self._client.status != "running":
                raise ValueError(
                    "The 'client' parameter must be a client that is connected to a scheduler. "
                    f"Got a client whose status is {self._client.status!r}. Make a new one."
                )
            self._threads: dict[str, int] = self._client.nthreads()
            if self._threads:
                break
            if time.monotonic() - start_time > self._patience:
                raise RuntimeError(
                    f"The scheduler has had no workers for {self._patience:.0f} seconds. Start "
                    "some, for example with `dask worker` and the scheduler's address."
                )
            time.sleep(0.1)
        remaining = [address for address in self._addresses if address in self._threads]
        # counts updates in which workers were lost
        self.n_losses += len(remaining) < len(self._addresses)
        # workers keep their places, so that the slots of the data stay on them
        self._addresses = remaining + sorted(self._threads.keys() - set(remaining))

    def _reaches_workers(self) -> bool:
        """Whether this process can send to workers directly, which takes half the time."""
        sending = self._client.scatter(0, hash=False, direct=True, asynchronous=True)
        try:
            self._result_of(sending, LONGEST_PUT)
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
