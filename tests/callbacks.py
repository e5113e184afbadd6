"""Callbacks of fits."""


def stop_at(step, error=StopIteration, path=None):
    """A callback that raises an error at a step, and saves the state first if there is a path."""

    def callback(estimator, monitor):
        if monitor.step == step:
            if path is not None:
                estimator.save_state(path)
            raise error

    return callback


class Log:
    """A callback of scikit-learn's that writes down what it is told."""

    def __init__(self, stop_at=None, fail_at=None):
        self.events, self.offered, self.stop_at, self.fail_at = [], [], stop_at, fail_at

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.events.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        if fitted_estimator is not None:
            seen = self.look(fitted_estimator, X)
            self.offered.append((context.task_name, fitted_estimator, seen))
        if context.task_name == "step" and context.task_id == self.fail_at:
            raise ZeroDivisionError
        return context.task_name == "step" and context.task_id == self.stop_at

    def look(self, estimator, X):
        """What is kept of an estimator that is offered, beside its task and itself."""
        return estimator.score(X)
