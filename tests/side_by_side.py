"""Running functions in threads of their own at the same time."""

import sys
import threading
from contextlib import contextmanager

#: A thread that hangs fails its test after this many seconds.
PATIENCE = 60


@contextmanager
def frequent_switches():
    """Let Python switch threads as often as it can, so that a race shows soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def at_once(*functions):
    """Run functions in threads that start together; return what they returned."""
    results, errors = [None] * len(functions), []
    ready = threading.Barrier(len(functions))

    def run(number):
        try:
            ready.wait(PATIENCE)
            results[number] = functions[number]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(len(functions))]
    with frequent_switches():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def beside(work, *readers, at_least=3):
    """Run `work` in one thread, and each reader in another, again and again until work ends.

    Returns the result of work, and a list of the results of each reader.
    """
    done = threading.Event()

    def write():
        try:
            return work()
        finally:
            done.set()

    def repeat(reader):
        def read():
            found = []
            while not done.is_set() or len(found) < at_least:
                found.append(reader())
            return found

        return read

    result, *found = at_once(write, *map(repeat, readers))
    return result, found
