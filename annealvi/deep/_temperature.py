"""The temperatures that a deep fit can run at: those with a plan."""

from __future__ import annotations

from typing import Any

from annealvi.temperature import LocalVariational, Temperature, Variational, as_temperature


def plan_temperature(value: Any, n_steps: int, steps_per_pass: float, owner: str) -> Temperature:
    """What a `temperature` parameter means for a fit of so many steps.

    Parameters
    ----------
    value : float, str or Temperature
    n_steps : int
    steps_per_pass : float
    owner : str
        The estimator, for the messages.

    Raises
    ------
    ValueError
        If it is no temperature, or one that is learned from log C(T), which deep models do
        not have.
    """
    temperature = as_temperature(value, owner)
    if isinstance(temperature, (Variational, LocalVariational)):
        raise ValueError(
            f"The 'temperature' parameter of {owner} must be one that follows a plan, a float, "
            f"'annealed', Fixed or Annealed: what is learned needs log C(T) of the model. Got "
            f"{value!r} instead."
        )
    return temperature.plan(n_steps, steps_per_pass, owner=owner)
