"""From examples to a trained network: settings, held-out examples, start, run."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from variegate._progress import ProgressPrinter
from variegate._random import check_random_state, generator
from variegate._validation import check_count, check_flag, check_number
from variegate.decoding import as_decoder
from variegate.ground_set import naming
from variegate.learning.device_name import device_named
from variegate.learning.streamed_problem import fingerprint, judging
from variegate.solvers import SolverResult
from variegate.streaming import Example, ListedExamples
from variegate.torch.neural.checkpoint import Checkpoint
from variegate.torch.neural.networks import (
    ROLES,
    DPPNetwork,
    Features,
    Items,
    make_network,
)
from variegate.torch.neural.training import Epoch, Training, TrainingPlan, reproducible

if TYPE_CHECKING:
    from variegate.torch.neural.estimator import NeuralDPP

__all__ = ["Learner", "as_device", "check_settings"]

_COUNTS = ("n_hidden", "n_embedding", "n_kinds", "batch_size", "max_epochs", "patience")

#: A share to hold out is cut to this many groups.
_LARGEST_HELD_OUT = 10_000

#: Settings that do not change the result, or that the run names otherwise.
_NOT_OF_RUN = (*ROLES, "callback", "decoder", "device", "random_state", "verbose")


class Learner:
    """The learning of a neural model, by its parameters."""

    def __init__(self, model: NeuralDPP) -> None:
        self.model = model
        self.device = as_device(model.device)
        self.plan = TrainingPlan(
            *(getattr(model, one.name) for one in fields(TrainingPlan))
        )

    def learn(
        self,
        examples: Sequence[Example],
        validation: Any = None,
        checkpoint: str | Path | None = None,
    ) -> tuple[DPPNetwork, list[Epoch], SolverResult]:
        """Return a trained network, its history, and how learning ended."""
        features = Features.of(examples[0].ground_set)
        for example in examples:
            with naming(example.position):
                features.check(example.ground_set)
        judged = self._given(validation, features)
        if checkpoint is None:
            return self._learn(examples, judged, features, self._seed())
        run = self._run(examples, judged)
        with Checkpoint(Path(checkpoint), run, self._seed()) as kept:
            return self._learn(examples, judged, features, kept.seed, kept)

    def _learn(
        self,
        examples: Sequence[Example],
        judged: Sequence[Example],
        features: Features,
        seed: int,
        kept: Checkpoint | None = None,
    ) -> tuple[DPPNetwork, list[Epoch], SolverResult]:
        learned_from, held_out = self._split(examples, judged, seed)
        network = self._network(features, learned_from, seed)
        training = Training(
            network,
            Items.of(learned_from, network),
            Items.of(held_out, network) if held_out else None,
            self.plan,
            seed,
            kept,
        )
        verdict = training.learn(self._callback())
        result = SolverResult(
            np.empty(0),
            training.best_epoch.objective,
            *verdict,
            n_iterations=training.place.epoch,
            n_evaluations=training.place.n_steps,
        )
        return network, training.history, result

    def _seed(self) -> int:
        if self.model.random_state is None:
            return secrets.randbits(63)
        return int(generator(self.model.random_state).integers(2**63))

    def _given(self, validation: Any, features: Features) -> Sequence[Example]:
        """Return the examples to judge by that were given, if any."""
        if validation is None:
            return ()
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise ValueError(
                "validation must be a pair of lists (ground_sets, subsets), got "
                f"{type(validation).__name__}"
            )
        ground_sets, subsets = validation
        with judging():
            given = ListedExamples.of(ground_sets, subsets, self.model.omega).examples
            for example in given:
                with naming(example.position):
                    features.check(example.ground_set)
        return given

    def _split(
        self, examples: Sequence[Example], judged: Sequence[Example], seed: int
    ) -> tuple[Sequence[Example], Sequence[Example]]:
        """Return the examples to learn from, and those to judge by."""
        fraction = self.model.validation_fraction
        if judged or not fraction:
            return examples, judged
        if len(examples) < 2:
            raise ValueError(
                "of one ground set none can be held out: give more, or validation, or "
                "validation_fraction=0 to learn without knowing when to stop"
            )
        share = min(max(1, round(fraction * len(examples))), _LARGEST_HELD_OUT)
        order = np.random.default_rng([seed]).permutation(len(examples))
        share = min(share, len(examples) - 1)
        held_out, rest = np.sort(order[:share]), np.sort(order[share:])
        return [examples[i] for i in rest], [examples[i] for i in held_out]

    def _network(
        self, features: Features, examples: Sequence[Example], seed: int
    ) -> DPPNetwork:
        """Return the network to start from, on its device."""
        model = self.model
        if model.warm_start and hasattr(model, "network_"):
            return self._known(features)
        given = {role: getattr(model, role) for role in ROLES}
        with reproducible(seed, torch.device("cpu")):
            network = make_network(features, given, model.sizes, model.standardize)
        ground_sets = [example.ground_set for example in examples]
        n_items = sum(map(len, ground_sets))
        network.settle(
            np.concatenate([ground_set.quality for ground_set in ground_sets]),
            np.concatenate(list(map(features.similarity, ground_sets))),
            sum(len(example.members) for example in examples) / n_items,
        )
        network.to(self.device)
        return network

    def _known(self, features: Features) -> DPPNetwork:
        """Return a copy of the network of the previous fit."""
        known = self.model.network_
        if known.features != features:
            raise ValueError(
                "warm_start=True, but the features are not those of the last fit: "
                "fit a clone, or set warm_start=False"
            )
        network = copy.deepcopy(known)
        network.to(self.device)
        return network

    def _run(
        self, examples: Sequence[Example], judged: Sequence[Example]
    ) -> dict[str, Any]:
        """Return, as plain values, a description of this run."""
        settings = self.model.get_params(deep=False)
        state = self.model.random_state
        return {
            **{name: v for name, v in settings.items() if name not in _NOT_OF_RUN},
            **{role: _named(getattr(self.model, role)) for role in ROLES},
            "random_state": state if isinstance(state, int) else None,
            "data": [fingerprint(examples), fingerprint(judged)],
        }

    def _callback(self) -> Callable[[Epoch], object] | None:
        """Return the callback of the model, with messages if it is verbose."""
        given = self.model.callback
        if not self.model.verbose:
            return given
        tell = ProgressPrinter(type(self.model).__name__)

        def report(step: Epoch) -> object:
            f = "" if step.expected_f is None else f", expected F {step.expected_f:.3f}"
            tell(
                f"pass {step.iteration} of {self.plan.max_epochs}, {step.n_seen:,} "
                f"groups, objective {step.objective:.6g}{f}"
            )
            return None if given is None else given(step)

        return report


def _named(module: Any) -> str | None:
    return None if module is None else str(module)


def check_settings(model: NeuralDPP) -> None:
    """Refuse settings that are not valid."""
    for name in ("lam", "omega", "jitter", "weight_decay", "validation_fraction"):
        check_number(name, getattr(model, name))
    check_number("learning_rate", model.learning_rate, positive=True)
    if model.validation_fraction >= 1.0:
        raise ValueError(
            f"validation_fraction must be below 1, got {model.validation_fraction!r}"
        )
    for name in _COUNTS:
        check_count(name, getattr(model, name))
    for name in ("standardize", "warm_start", "verbose"):
        check_flag(name, getattr(model, name))
    for role in ROLES:
        module = getattr(model, role)
        if module is not None and not isinstance(module, nn.Module):
            raise ValueError(
                f"{role} must be a torch.nn.Module or None, got {module!r}"
            )
    if model.callback is not None and not callable(model.callback):
        raise ValueError(f"callback must be callable, got {model.callback!r}")
    check_random_state(model.random_state)
    as_decoder(model.decoder)
    as_device(model.device)


def as_device(device: str | None) -> torch.device:
    """Return the device that a name stands for; "auto" is a GPU where there is one."""
    return torch.device(device_named(device) or "cpu")
