"""A determinantal point process whose quality and similarity are networks."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import nn

from variegate._progress import ProgressPrinter
from variegate._random import as_generator, check_random_state
from variegate._typing import FloatArray, RandomState
from variegate._validation import check_count, check_flag, check_number
from variegate.decoding import Decoder, as_decoder
from variegate.ensemble import LEnsemble
from variegate.estimator import DPPEstimator
from variegate.estimator.base import LearnedDisplay
from variegate.files.run_store import RunStore
from variegate.ground_set import GroundSet
from variegate.learning.device_name import resolve_device
from variegate.learning.examples import (
    Example,
    check_examples,
    check_validation,
    fingerprint,
    label_validation_errors,
)
from variegate.report.notebook import format_number, html_card
from variegate.solvers import SolverResult
from variegate.torch.neural.networks import (
    ROLES,
    DPPNetwork,
    Features,
    Items,
    make_ensemble,
    make_first_network,
)
from variegate.torch.neural.storage import encode
from variegate.torch.neural.training import Epoch, Training, split_held_out

__all__ = ["Epoch", "NeuralDPP"]

_COUNTS = ("n_hidden", "n_embedding", "n_kinds", "batch_size", "max_epochs", "patience")

#: Settings that do not change the result, or have descriptions of their own in a run.
_NOT_OF_RUN = (*ROLES, "callback", "decoder", "device", "random_state", "verbose")


class NeuralDPP(LearnedDisplay, DPPEstimator):
    r"""Determinantal point process whose quality and similarity are networks.

    As :class:`variegate.LargeMarginDPP`, with ``q_i = exp(g(x_i) + b)`` for a network
    ``g`` of the quality features and ``S_ij = s(e(φ_i), e(φ_j))`` for an encoder ``e``
    of the similarity features and a similarity ``s`` of embeddings.  All of it is
    learned together, by AdamW on batches of ground sets, with the same objective

    .. math::

        \frac{1}{n} \sum_n \Bigl[ -\log P(y_n; L_n) + \lambda \log \Bigl(
            \sum_{i \notin y_n} K_{ii} + \omega \sum_{i \in y_n} (1 - K_{ii})
        \Bigr) \Bigr]_+

    for as long as it falls on ground sets that are held out.

    Parameters
    ----------
    lam : float, default=1.0
        Weight ``λ`` of the margin; 0 is maximum likelihood.
    omega : float, default=1.0
        Cost of missing an item relative to choosing a wrong one.
    quality : torch.nn.Module, optional
        From quality features (n, d) to one number an item, (n,) or (n, 1).  By default
        a linear map plus one hidden layer.
    encoder : torch.nn.Module, optional
        From similarity features (n, p) to embeddings (n, D).  Rows are the items of a
        batch of ground sets, so a network for pictures begins with
        ``torch.nn.Unflatten(1, (1, 8, 8))``.  By default a linear map plus one hidden
        layer.
    similarity : torch.nn.Module, optional
        From embeddings of ground sets (B, N, D) to similarities (B, N, N), such as
        :class:`~variegate.torch.GaussianSimilarity`.  Without an encoder it sees the
        features themselves.  By default :class:`~variegate.torch.KindsSimilarity`.
    n_hidden : int, default=128
    n_embedding : int, default=32
    n_kinds : int, default=32
        Sizes of the networks that are made by default.
    standardize : bool, default=True
        Whether features are scaled to mean 0 and standard deviation 1 over the training
        items, and clipped at ±5; the scales are kept with the network.
    decoder : name or decoder object, default="mbr"
        How ``predict`` chooses; see :meth:`variegate.LEnsemble.decode`.
    jitter : float, default=1e-6
        Ridge on ``S`` relative to its diagonal.
    batch_size : int, default=16
        Ground sets a step.
    learning_rate : float, default=0.02
        Of AdamW.  Large, for the networks that are made by default; take a hundredth of
        it for an encoder that was trained before.
    weight_decay : float, default=0.01
        Of AdamW, for matrices of weights.
    max_epochs : int, default=200
        The largest number of passes over the training ground sets.
    patience : int, default=15
        Stop after this many passes without a better objective on held-out ground sets.
    validation_fraction : float, default=0.1
        Share of the ground sets to hold out; with 0, all passes are made and the last
        weights kept.
    warm_start : bool, default=False
        Start from the network of the previous ``fit``.
    device : str, default="auto"
        Where networks work: "cpu", "cuda", "cuda:1", or a GPU where there is one.
    callback : callable, optional
        Called with an :class:`~variegate.torch.Epoch` a pass; a true result stops.
    random_state : None, int or numpy.random.Generator
        For the held-out ground sets, the first weights (of networks made by default),
        the order of batches, dropout, and the decoder.  A seed gives the same weights
        on the same CPU with as many threads.
    verbose : bool, default=False
        Whether to print progress on standard error.

    Attributes
    ----------
    network_ : torch.nn.Module
        With ``quality``, ``encoder`` and ``similarity``: trained copies of the modules
        that were given, or default ones.
    history_ : list of Epoch
    solver_result_ : SolverResult
        How learning ended, and the best objective; its ``parameters`` are empty.
    n_features_in_ : int

    Examples
    --------
    >>> import variegate as vg
    >>> import variegate.torch as vt
    >>> data = vg.datasets.make_synthetic(n_sets=40, random_state=0)
    >>> model = vt.NeuralDPP(n_hidden=16, max_epochs=5, random_state=0, device="cpu")
    >>> model = model.fit(data.ground_sets, data.subsets)
    >>> len(model.predict(data.ground_sets[:3], k=4))
    3
    """

    _fitted = "network_"

    def __init__(
        self,
        lam: float = 1.0,
        omega: float = 1.0,
        quality: nn.Module | None = None,
        encoder: nn.Module | None = None,
        similarity: nn.Module | None = None,
        n_hidden: int = 128,
        n_embedding: int = 32,
        n_kinds: int = 32,
        standardize: bool = True,
        decoder: str | Decoder = "mbr",
        jitter: float = 1e-6,
        batch_size: int = 16,
        learning_rate: float = 0.02,
        weight_decay: float = 0.01,
        max_epochs: int = 200,
        patience: int = 15,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        device: str | None = "auto",
        callback: Callable[[Epoch], object] | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.lam = lam
        self.omega = omega
        self.quality = quality
        self.encoder = encoder
        self.similarity = similarity
        self.n_hidden = n_hidden
        self.n_embedding = n_embedding
        self.n_kinds = n_kinds
        self.standardize = standardize
        self.decoder = decoder
        self.jitter = jitter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.device = device
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    # Learning ---------------------------------------------------------------------

    def fit(
        self,
        ground_sets: Sequence[GroundSet],
        subsets: Sequence[Any] | None = None,
        *,
        false_positive: Sequence[Any] | None = None,
        false_negative: Sequence[Any] | None = None,
        validation: tuple[Sequence[GroundSet], Sequence[Any]] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Learn from wanted subsets.

        Parameters
        ----------
        ground_sets : list of GroundSet
            A bare array stands for ``GroundSet(array)``.  Several blocks of similarity
            features are put side by side.  Beside ``given`` items, networks learn to
            choose from the candidates.
        subsets : list
            For each ground set, the wanted item numbers or a boolean mask.
        false_positive, false_negative : list of arrays of shape (N,), optional
            Costs of choosing each item wrongly and of missing it, in place of 1 and
            ``omega``.
        validation : (list of GroundSet, list of subsets), optional
            The held-out ground sets, in place of a share of the others.
        checkpoint : path, optional
            A file that keeps the state of learning, and resumes it: on the same CPU
            with the same weights as without interruption.  It is removed at the end.

        Returns
        -------
        self

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If learning did not beat its start on the ground sets held out.
        """
        self._check_parameters()
        if subsets is None:
            raise ValueError(
                "NeuralDPP learns from two lists, ground sets and subsets, that are in "
                "memory; LargeMarginDPP learns from streams"
            )
        examples = check_examples(
            ground_sets, subsets, self.omega, false_positive, false_negative
        )
        self._learn(examples, validation, checkpoint)
        result = self.solver_result_
        if result.remedy:
            warnings.warn(
                f"{result.status}. {result.remedy}", ConvergenceWarning, stacklevel=2
            )
        return self

    def _learn(
        self, examples: Sequence[Example], validation: Any, checkpoint: Any
    ) -> None:
        """Train on examples, other arguments as of ``fit``; set fitted attributes."""
        features = Features.of(examples[0].ground_set)
        features.check_all(examples)
        held_out = self._check_held_out(validation, features)
        run = {} if checkpoint is None else self._describe_run(examples, held_out)
        with RunStore(checkpoint, run) as store:
            seed = int(store.remember("seed", self._draw_seed))
            if not held_out and self.validation_fraction:
                examples, held_out = split_held_out(
                    examples, self.validation_fraction, seed
                )
            network = make_first_network(self, features, examples, seed)
            network.to(self._torch_device())
            judged = Items(held_out, network) if held_out else None
            items = Items(examples, network)
            training = Training(network, items, judged, self, seed, store)
            verdict = training.learn(self._make_callback())
        objective, place = training.best_epoch.objective, training.place
        counts = (place.epoch, place.n_steps)
        result = SolverResult(np.empty(0), objective, *verdict, *counts)
        self._set_fitted(network, training.history, result)

    def _draw_seed(self) -> bytes:
        """Return a seed from ``random_state``, random for None, as decimal digits."""
        state = self.random_state
        seed = secrets.randbits(63)
        if state is not None:
            seed = int(as_generator(state).integers(2**63))
        return str(seed).encode()

    def _check_held_out(self, validation: Any, features: Features) -> Sequence[Example]:
        """Return the examples of ``fit``'s ``validation``, checked; () for None."""
        if validation is None:
            return ()
        given = check_validation(validation, self.omega)
        with label_validation_errors():
            features.check_all(given)
        return given

    def _describe_run(
        self, examples: Sequence[Example], held_out: Sequence[Example]
    ) -> dict[str, Any]:
        """Return settings and fingerprints of data that a checkpoint must match."""
        settings = self.get_params(deep=False)
        state, modules = self.random_state, ((role, settings[role]) for role in ROLES)
        return {
            **{name: v for name, v in settings.items() if name not in _NOT_OF_RUN},
            **{role: None if m is None else str(m) for role, m in modules},
            "random_state": state if isinstance(state, int) else None,
            "data": [fingerprint(examples), fingerprint(held_out)],
        }

    def _make_callback(self) -> Callable[[Epoch], object] | None:
        """Return the callback or None; if verbose, one that prints progress as well."""
        if not self.verbose:
            return self.callback
        tell = ProgressPrinter(type(self).__name__)

        def report(step: Epoch) -> object:
            """Print a pass, and return the result of the callback."""
            f = "" if step.expected_f is None else f", expected F {step.expected_f:.3f}"
            tell(
                f"pass {step.iteration} of {self.max_epochs}, {step.n_seen:,} groups, "
                f"objective {step.objective:.6g}{f}"
            )
            return None if self.callback is None else self.callback(step)

        return report

    def _set_fitted(
        self, network: DPPNetwork, history: list[Epoch], result: SolverResult
    ) -> None:
        """Set the fitted attributes: network, history, result, number of features."""
        self.network_, self.history_, self.solver_result_ = network, history, result
        self.n_features_in_ = network.features.n_quality

    def _check_parameters(self) -> None:
        """Refuse parameters of a wrong type or range."""
        for name in ("lam", "omega", "jitter", "weight_decay", "validation_fraction"):
            check_number(name, getattr(self, name))
        check_number("learning_rate", self.learning_rate, positive=True)
        if self.validation_fraction >= 1.0:
            raise ValueError(
                f"validation_fraction must be below 1, got {self.validation_fraction!r}"
            )
        for name in _COUNTS:
            check_count(name, getattr(self, name))
        for name in ("standardize", "warm_start", "verbose"):
            check_flag(name, getattr(self, name))
        for role in ROLES:
            module = getattr(self, role)
            if module is not None and not isinstance(module, nn.Module):
                raise ValueError(
                    f"{role} must be a torch.nn.Module or None, got {module!r}"
                )
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be callable, got {self.callback!r}")
        check_random_state(self.random_state)
        as_decoder(self.decoder)
        self._torch_device()

    def _torch_device(self) -> torch.device:
        """Return the device of the setting ``device``; refuse one that is not there."""
        return torch.device(resolve_device(self.device) or "cpu")

    # Choosing ---------------------------------------------------------------------

    def _ensemble(self, ground_set: GroundSet) -> LEnsemble:
        """Return the ensemble of a ground set, on the CPU, jitter included.

        Beside given items it is that of the candidates.
        """
        return make_ensemble(self._network_on_device(), ground_set, self.jitter)

    @torch.no_grad()
    def _log_quality(self, features: FloatArray) -> FloatArray:
        """Return log-qualities (n,) of quality features (n, d), intercept included."""
        network = self._network_on_device()
        u = network.log_quality(network.prepare_features(features, of_quality=True))
        return np.asarray(u.cpu().numpy(), dtype=np.float64)

    def _network_on_device(self) -> DPPNetwork:
        """Return the network, moved to the device and in evaluation mode."""
        self.network_.to(self._torch_device()).eval()
        return self.network_

    # Showing and keeping ----------------------------------------------------------

    def _learned_html(self) -> str:
        """Return HTML on the learned networks, for notebooks."""
        check_is_fitted(self, self._fitted)
        n_weights = sum(weight.numel() for weight in self.network_.parameters())
        facts = {role: type(getattr(self.network_, role)).__name__ for role in ROLES}
        facts |= {"numbers learned": format_number(n_weights)}
        return html_card("Learned", facts | {"fit": self.solver_result_.status})

    def encode(self) -> dict[str, Any]:
        """Return the fitted model as the plain values of a file."""
        return encode(self)
