"""The OpenMP threads of other libraries; that forked children do not hang: test_fork.py."""

from threadpoolctl import threadpool_info, threadpool_limits

from annealvi._kernels.openmp import single_threaded_openmp


def limits():
    return [found["num_threads"] for found in threadpool_info() if found["user_api"] == "openmp"]


def test_other_libraries_use_one_thread_and_then_as_many_as_before():
    with threadpool_limits(2, user_api="openmp"):
        assert limits()
        assert set(limits()) == {2}
        with single_threaded_openmp():
            assert set(limits()) == {1}
        assert set(limits()) == {2}
