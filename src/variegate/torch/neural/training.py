"""Training: one step a batch, judged after every pass by groups that are held out.

The state of a run is its weights, the state of the optimizer, and a few plain values.
Random numbers (the order of batches, dropout) follow from a seed and the number of the
step.  So a run that resumes from a checkpoint ends with the same weights as one that
was never killed, on one machine with as many threads.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from variegate._typing import IntArray
from variegate.files.run_store import CheckpointError, RunStore
from variegate.ground_set import GroundSetError
from variegate.learning.examples import Example
from variegate.solvers import Stop
from variegate.solvers.result import STOPPED, Verdict, wants_to_stop
from variegate.torch.batches import ExampleBatch, batches_by_size, shuffled_batches
from variegate.torch.inputs import Kernels
from variegate.torch.neural.networks import DPPNetwork, Items, seeded_random

if TYPE_CHECKING:
    from variegate.torch.neural import NeuralDPP

#: The most groups of a share that is held out: judging takes time.
_LARGEST_VALIDATION = 10_000

#: The share of the time that writing checkpoints may take.
_SHARE = 0.1


class Epoch(NamedTuple):
    """One pass over the training groups, as kept in the history.

    Attributes
    ----------
    iteration : int
        The number of the pass; 0 is the start.
    objective : float
        Mean loss of the groups held out, else of the training groups in this pass.
    training : float or None
        Mean loss of the training groups in this pass; None at the start.
    n_seen : int
        Groups learned from so far, every pass counted.
    expected_f : float or None
        The expected F-score of the groups held out.
    """

    iteration: int
    objective: float
    training: float | None
    n_seen: int
    expected_f: float | None


def split_held_out(
    examples: Sequence[Example], fraction: float, seed: int
) -> tuple[Sequence[Example], Sequence[Example]]:
    """Return examples to learn from, and those held out: a random ``fraction``."""
    if len(examples) < 2:
        raise ValueError(
            "of one ground set none can be held out: give more, or validation, or "
            "validation_fraction=0 to learn without knowing when to stop"
        )
    share = max(1, round(fraction * len(examples)))
    share = min(share, _LARGEST_VALIDATION, len(examples) - 1)
    order = np.random.default_rng([seed]).permutation(len(examples))
    held_out, rest = np.sort(order[:share]), np.sort(order[share:])
    return [examples[i] for i in rest], [examples[i] for i in held_out]


@dataclass
class _Progress:
    """How far training has come: a pass is over all training groups, in batches."""

    epoch: int = 0  # passes done
    batch: int = 0  # batches done of the current pass
    n_steps: int = 0  # steps of the optimizer
    n_seen: int = 0  # groups learned from, every pass counted
    total: float = 0.0  # sum of the losses of the current pass
    n_worse: int = 0  # passes since the best one
    best_epoch: int = 0  # index of the best one in the history


@dataclass(eq=False)
class Training:
    """One run, which resumes from its checkpoint, a run store.

    ``held_out`` may be None; then the last weights are kept, else the best.
    """

    network: DPPNetwork
    data: Items
    held_out: Items | None
    model: NeuralDPP  # its settings
    seed: int
    checkpoint: RunStore = field(default_factory=RunStore)
    place: _Progress = field(default_factory=_Progress)
    history: list[Epoch] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the optimizer, and restore a checkpoint if there is one."""
        self.optimizer = _make_optimizer(self.network, self.model)
        self.best = _copy_weights(self.network)
        self._unread: list[tuple[IntArray, Tensor]] = []
        self._next_write = 0.0
        self._restore_checkpoint()

    # Learning ---------------------------------------------------------------------

    def learn(self, callback: Callable[[Epoch], object] | None = None) -> Verdict:
        """Train, keep the best weights, remove the checkpoint; return why it ended."""
        with seeded_random(self.seed, self.data.quality.device):
            if self.held_out is not None and not self.history:
                self._report_epoch(callback, training=None)
            verdict = self._check_for_end()
            while verdict is None:
                verdict = self._train_epoch(callback) or self._check_for_end()
        if self.held_out is not None:
            self.network.load_state_dict(self.best)
        self.network.eval()
        self.checkpoint.remove()
        return verdict

    @property
    def best_epoch(self) -> Epoch:
        """The pass whose weights are kept."""
        if self.held_out is None:
            return self.history[-1]
        return self.history[self.place.best_epoch]

    def _check_for_end(self) -> Verdict | None:
        """Return why training ends here, or None if it goes on."""
        model, place = self.model, self.place
        if self.held_out is not None and place.n_worse >= model.patience:
            stop = Stop.EARLY
            status = (
                "stopped early: the objective on held-out groups has not fallen for "
                f"patience={model.patience} passes; the weights of pass "
                f"{place.best_epoch} are kept"
            )
        elif place.epoch >= model.max_epochs:
            stop = Stop.DATA_USED
            status = (
                f"went through the groups max_epochs={model.max_epochs} times, in "
                f"{place.n_steps} steps"
            )
        else:
            return None
        remedy = (
            "Learning did not beat its start on held-out groups, and the network is as "
            f"it was then: lower learning_rate (now {model.learning_rate:g}), give "
            "more groups or a smaller network, or learn with LargeMarginDPP, which "
            "has fewer numbers to learn"
        )
        has_won = self.held_out is None or place.best_epoch > 0
        return Verdict(stop, status, "" if has_won else remedy)

    def _train_epoch(
        self, callback: Callable[[Epoch], object] | None
    ) -> Verdict | None:
        """Train to the end of a pass and report it; return a verdict if that stops."""
        place = self.place
        batches = shuffled_batches(
            self.data.sizes, self.model.batch_size, self.seed, place.epoch
        )
        self.network.train()
        while place.batch < len(batches):
            numbers = batches[place.batch]
            self._train_step(numbers)
            place.batch += 1
            place.n_steps += 1
            place.n_seen += len(numbers)
            self._save_if_due()
        self._read_losses()
        training = place.total / len(self.data)
        place.epoch += 1
        place.batch, place.total = 0, 0.0
        is_over = self._report_epoch(callback, training)
        self._save_if_due()
        return STOPPED if is_over else None

    def _train_step(self, numbers: IntArray) -> None:
        """Seed PyTorch and take a step of the optimizer on groups of these indices."""
        seeds = np.random.SeedSequence([self.seed, self.place.n_steps])
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
        *_, losses = self._compute_losses(self.data, numbers)
        self.optimizer.zero_grad(set_to_none=True)
        losses.mean().backward()
        self._unread.append((numbers, losses.detach()))
        if losses.device.type == "cpu":  # to ask a GPU is to wait for it
            self._read_losses()
        self.optimizer.step()

    def _compute_losses(
        self, items: Items, numbers: IntArray
    ) -> tuple[ExampleBatch, Kernels, Tensor]:
        """Return the batch of the groups of these indices, its kernels, losses (B,)."""
        *features, batch = items.batch(numbers)
        u, S = self.network(*features, batch)
        targets = batch.targets
        kernels = Kernels(
            S,
            log_quality=u,
            mask=targets.mask,
            given=targets.is_given,
            jitter=self.model.jitter,
        )
        return batch, kernels, kernels.losses(targets, self.model.lam)[0]

    def _read_losses(self) -> None:
        """Add the losses of the latest steps to the total; refuse any not finite."""
        unread, self._unread = self._unread, []
        for numbers, losses in unread:
            values = losses.cpu().numpy()
            if not np.isfinite(values).all():
                wrong = numbers[np.flatnonzero(~np.isfinite(values))[0]]
                raise GroundSetError(
                    self.data.examples[wrong].position,
                    "its loss is no longer a number: learning diverged, or its subset "
                    "has probability zero. Lower learning_rate (now "
                    f"{self.model.learning_rate:g}) or raise jitter (now "
                    f"{self.model.jitter:g})",
                )
            self.place.total += float(values.sum())

    # Judging ----------------------------------------------------------------------

    def _report_epoch(
        self, callback: Callable[[Epoch], object] | None, training: float | None
    ) -> bool:
        """Add a pass of mean loss ``training`` to the history; keep the best weights.

        Return whether the callback stops.
        """
        place = self.place
        objective, expected_f = training, None
        if self.held_out is not None:
            objective, expected_f = self._evaluate(self.held_out)
            known = [one.objective for one in self.history]
            if not known or objective < known[place.best_epoch]:
                place.best_epoch, place.n_worse = len(known), 0
                self.best = _copy_weights(self.network)
            else:
                place.n_worse += 1
        assert objective is not None  # of held-out groups, or of a pass
        step = Epoch(place.epoch, objective, training, place.n_seen, expected_f)
        self.history.append(step)
        return wants_to_stop(callback, step)

    @torch.no_grad()
    def _evaluate(self, items: Items) -> tuple[float, float]:
        """Return the mean loss, inf if not finite, and mean expected F-score."""
        self.network.eval()
        total = score = 0.0
        for numbers in batches_by_size(items.sizes, self.model.batch_size):
            batch, kernels, losses = self._compute_losses(items, numbers)
            total += float(losses.sum())
            score += float(batch.expected_f(kernels)[0].sum())
        # NaN would compare as neither better nor worse.
        mean = total / len(items)
        return mean if np.isfinite(mean) else np.inf, score / len(items)

    # Resuming ---------------------------------------------------------------------

    def _restore_checkpoint(self) -> None:
        """Load weights, optimizer, progress and history from a checkpoint, if any."""
        state = self.checkpoint.get("state")
        if state is None:
            return
        try:
            stored = torch.load(BytesIO(state), "cpu", weights_only=True)
            self.network.load_state_dict(stored["network"])
            self.optimizer.load_state_dict(stored["optimizer"])
            self.best = stored["best"]
            self.place = _Progress(**stored["place"])
            self.history = [Epoch(*one) for one in stored["history"]]
        except (KeyError, RuntimeError, TypeError, pickle.UnpicklingError) as error:
            raise CheckpointError(
                f"{self.checkpoint.path} does not fit the network, or is damaged: "
                f"{error}"
            ) from None

    def _save_if_due(self) -> None:
        """Write a checkpoint, unless writing takes more than a tenth of the time."""
        started = time.monotonic()
        if self.checkpoint.path is None or started < self._next_write:
            return
        self._read_losses()
        state = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": self.best,
            "place": asdict(self.place),
            "history": list(map(tuple, self.history)),
        }
        content = BytesIO()
        torch.save(state, content)
        self.checkpoint.put("state", content.getvalue())
        ended = time.monotonic()
        self._next_write = ended + (ended - started) / _SHARE


def _make_optimizer(network: DPPNetwork, model: NeuralDPP) -> torch.optim.Optimizer:
    """Return AdamW for a network, in which only matrices of weights decay."""
    learned = [p for p in network.parameters() if p.requires_grad]
    return torch.optim.AdamW(
        [
            {"params": [p for p in learned if p.ndim > 1]},
            {"params": [p for p in learned if p.ndim <= 1], "weight_decay": 0.0},
        ],
        lr=model.learning_rate,
        weight_decay=model.weight_decay,
    )


def _copy_weights(network: DPPNetwork) -> dict[str, Tensor]:
    """Return copies of the parameters and buffers of a network, by name."""
    return {name: value.clone() for name, value in network.state_dict().items()}
