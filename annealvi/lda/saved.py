"""The state of a fit of TemperedLDA as a tree for a file, and back."""

from __future__ import annotations

from typing import Any

from annealvi.checks import check_priors
from annealvi.files import Node
from annealvi.files.parameters import parameter_tree
from annealvi.lda.results import Results
from annealvi.lda.state import LDAState, Prior
from annealvi.models.lda.saved import load_model, load_partition, model_of, model_tree
from annealvi.temperature import Temperature
from annealvi.temperature.parameters import (
    parameter_value,
    restored_temperature,
    temperature_tree,
)


def state_tree(state: LDAState) -> dict[str, Any]:
    """Return all that the next step depends on, as a tree; see :mod:`annealvi.files`."""
    settings, attached = state.settings, state.attached
    if settings is not None:
        settings = {name: parameter_tree(settings[name], name, state.owner) for name in settings}
    return {
        "model": model_tree(state.model),
        "priors": list(state.checked_priors()),
        "assigned": state.priors_assigned(),
        "attached": None if attached is None else list(attached),
        "temperature": temperature_tree(state.temperature),
        "planned_for": parameter_tree(state.planned_for, "temperature", state.owner),
        "monitor": state.monitor.state_dict(),
        "settings": settings,
        "n_passes": state.n_passes,
        "results": state.results.state_dict(),
    }


def state_of(owner: str, node: Node) -> LDAState:
    """Return the state of a tree that :func:`state_tree` returned."""
    model = model_of(node.node("model"))
    state = LDAState(owner, model, 1.0, 1.0)
    state.temperature = restored_temperature(node.node("temperature"), model=model)
    _load(state, node)
    return state


def load_state(state: LDAState, node: Node) -> None:
    """Take over the tree of a fit with the same plan, whose model has the same K and V."""
    load_model(state.model, node.node("model"))
    part = node.node("temperature")
    saved = parameter_value(part, "temperature")
    if not (isinstance(saved, Temperature) and saved == state.temperature):
        raise part.error("temperature", "that of the fit", part.plain("temperature"))
    state.temperature.load_state_dict(part.node("state"))
    _load(state, node)


def _load(state: LDAState, node: Node) -> None:
    """Take over what is neither the model nor the temperature."""
    model = state.model
    load_partition(model, node.node("model"))
    state.monitor.load_state_dict(node.node("monitor"))
    state.n_passes = node.integer("n_passes")
    state.results = Results.of(node.node("results"), model.n_features, model.dtype)
    shown = _priors(state, node, "priors")
    state.doc_topic_prior, state.topic_word_prior = shown
    state.in_use = None if node.boolean("assigned") else shown
    state.attached = None if node.is_none("attached") else _priors(state, node, "attached")
    state.planned_for = parameter_value(node, "planned_for")
    if not isinstance(state.planned_for, Temperature | None):
        raise node.error("planned_for", "a temperature or None", state.planned_for)
    state.settings = None
    if not node.is_none("settings"):
        settings = node.node("settings")
        state.settings = {name: parameter_value(settings, name) for name in settings}


def _priors(state: LDAState, node: Node, name: str) -> tuple[Prior, Prior]:
    pair = node.items(name)
    if len(pair) != 2:
        raise node.error(name, "a list of two priors", pair)
    shape = state.model.n_topics, state.model.n_features
    dtype = state.model.dtype
    return check_priors(pair[0], pair[1], shape, dtype, suffix="_")
