"""Networks from the features of items to a determinantal point process.

Modules see the items of all ground sets as rows, without padding; a similarity sees
ground sets.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from variegate._typing import FloatArray, IntArray
from variegate.ensemble import LEnsemble
from variegate.ground_set import GroundSet, name_position_in_errors
from variegate.kernels.features import as_dense
from variegate.learning.examples import Example
from variegate.linalg.determinants import with_jitter
from variegate.torch.batches import ExampleBatch
from variegate.torch.similarities import KindsSimilarity

if TYPE_CHECKING:
    from variegate.torch.neural import NeuralDPP

#: The roles of modules.
ROLES = ("quality", "encoder", "similarity")

#: Standardized features further out than this are taken to be there.
_FURTHEST = 5.0


class Perceptron(nn.Module):
    """A linear map, which sees the norm of an item, plus a layer that normalizes it."""

    def __init__(self, n_features: int, n_hidden: int, n_outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(n_features, n_outputs)
        self.hidden = nn.Sequential(
            nn.Linear(n_features, n_hidden),
            nn.LayerNorm(n_hidden),
            nn.GELU(),
            nn.Linear(n_hidden, n_outputs),
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return the outputs (n, n_outputs) of items (n, n_features)."""
        return self.linear(features) + self.hidden(features)

    def start_at_zero(self) -> Perceptron:
        """Set the weights of the output layers, and so outputs, to 0; return self."""
        for layer in (self.linear, self.hidden[-1]):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        return self


@dataclass(frozen=True)
class Features:
    """The numbers of quality and similarity features that networks take."""

    n_quality: int
    # names and sizes of the similarity's blocks, in the order of their columns
    blocks: Mapping[str, int]

    @classmethod
    def of(cls, ground_set: GroundSet) -> Features:
        """Return the numbers of features of a ground set."""
        sizes = {name: int(block.shape[1]) for name, block in ground_set.blocks.items()}
        return cls(ground_set.n_features, sizes)

    @property
    def n_similarity(self) -> int:
        """The number of similarity features in all blocks."""
        return sum(self.blocks.values())

    def check(self, ground_set: GroundSet) -> None:
        """Refuse a ground set with other features; a single block may have any name."""
        if ground_set.n_features != self.n_quality:
            raise ValueError(
                f"it has {ground_set.n_features} quality features, but the model was "
                f"fitted with {self.n_quality}"
            )
        found = Features.of(ground_set).blocks
        alone = len(found) == len(self.blocks) == 1
        if alone and [*found.values()] == [*self.blocks.values()]:
            return
        if found != self.blocks:
            raise ValueError(
                f"it has the similarity features {_list_blocks(found)}, but the model "
                f"was fitted with {_list_blocks(self.blocks)}"
            )

    def check_all(self, examples: Sequence[Example]) -> None:
        """Raise an error that names the first example with other features."""
        for example in examples:
            with name_position_in_errors(example.position):
                self.check(example.ground_set)

    def stack_features(
        self, examples: Sequence[Example]
    ) -> tuple[FloatArray, FloatArray]:
        """Return quality (n, d) and similarity features (n, p) of all n items of sets.

        Several blocks are put side by side.
        """
        quality, similarity = [], []
        for example in examples:
            blocks = example.ground_set.blocks
            names = self.blocks if len(blocks) > 1 else blocks
            dense = [as_dense(blocks[name]) for name in names]
            quality.append(example.ground_set.quality)
            similarity.append(np.concatenate(dense, axis=1, dtype=np.float64))
        return np.concatenate(quality), np.concatenate(similarity)


def _list_blocks(blocks: Mapping[str, int]) -> str:
    """Return the names and sizes of blocks, for messages."""
    return ", ".join(f"{k!r} of {n}" if k else f"{n}" for k, n in blocks.items())


class _Scale(nn.Module):
    """The mean and standard deviation of features, kept with the network."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_features, dtype=torch.float64))
        self.register_buffer("deviation", torch.ones(n_features, dtype=torch.float64))

    def fit_scale(self, X: FloatArray) -> None:
        """Set mean and deviation to those of items (n, d); 1 for a constant feature."""
        deviation = X.std(axis=0)
        deviation[deviation <= 1e-12 * np.abs(X).max(axis=0)] = 1.0
        self.mean.copy_(torch.from_numpy(X.mean(axis=0)))
        self.deviation.copy_(torch.from_numpy(deviation))

    def forward(self, X: Tensor) -> Tensor:
        """Return features (n, d) scaled to mean 0, deviation 1, and clipped at ±5."""
        return ((X - self.mean) / self.deviation).clamp(-_FURTHEST, _FURTHEST)


class DPPNetwork(nn.Module):
    """Log-qualities and similarities of ground sets, by three modules.

    From quality features (n, d) to (n,) or (n, 1), from similarity features (n, p) to
    embeddings (n, D), and from embeddings (B, N, D) to similarities (B, N, N).  The
    first two work in the precision of their weights; their results are made double, for
    the determinants of near copies.
    """

    def __init__(
        self,
        features: Features,
        quality: nn.Module,
        encoder: nn.Module,
        similarity: nn.Module,
        standardize: bool,
    ) -> None:
        super().__init__()
        self.features = features
        self.quality = quality
        self.encoder = encoder
        self.similarity = similarity.double()
        self.intercept = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.quality_scale = _Scale(features.n_quality) if standardize else None
        self.similarity_scale = _Scale(features.n_similarity) if standardize else None

    def fit_scale(
        self, quality: FloatArray, similarity: FloatArray, share: float
    ) -> None:
        """Set the scales of features by items (n, d), (n, p), and the intercept.

        The latter is such that ``share`` of items unlike each other is chosen.
        """
        if self.quality_scale is not None and self.similarity_scale is not None:
            self.quality_scale.fit_scale(quality)
            self.similarity_scale.fit_scale(similarity)
        share = min(max(share, 1e-3), 1.0 - 1e-3)
        with torch.no_grad():
            self.intercept.fill_(0.5 * float(np.log(share / (1.0 - share))))

    @torch.no_grad()
    def prepare_features(self, X: FloatArray, *, of_quality: bool) -> Tensor:
        """Return features (n, d) scaled, on the device and in the module's precision.

        They are those of ``quality``, or of ``encoder`` if not ``of_quality``.
        """
        module = self.quality if of_quality else self.encoder
        scale = self.quality_scale if of_quality else self.similarity_scale
        numbers = torch.tensor(X, device=self.intercept.device)
        return _match_precision(module, numbers if scale is None else scale(numbers))

    def log_quality(self, items: Tensor) -> Tensor:
        """Return log-qualities (n,), with intercept, of prepared quality features."""
        return self.quality(items).double().reshape(len(items)) + self.intercept

    def forward(
        self, quality: Tensor, similarity: Tensor, batch: ExampleBatch
    ) -> tuple[Tensor, Tensor]:
        """Return log-qualities (B, N) and similarities (B, N, N) of a batch.

        Features (n, d) and (n, p), of all its items, are those prepared by
        :meth:`prepare_features`.
        """
        u = self.log_quality(quality)
        embedding = self.encoder(similarity).double()
        return batch.pad_rows(u), self.similarity(batch.pad_rows(embedding))


class Items:
    """All examples, and the features of their items on a device."""

    def __init__(self, examples: Sequence[Example], network: DPPNetwork) -> None:
        quality, similarity = network.features.stack_features(examples)
        self.examples = examples
        self.quality = network.prepare_features(quality, of_quality=True)
        self.similarity = network.prepare_features(similarity, of_quality=False)
        self.sizes = np.array([len(example.ground_set) for example in examples])
        self.rows = np.split(np.arange(len(quality)), np.cumsum(self.sizes)[:-1])

    def __len__(self) -> int:
        return len(self.examples)

    def batch(self, numbers: IntArray) -> tuple[Tensor, Tensor, ExampleBatch]:
        """Return quality and similarity features (n, d), (n, p) and batch of some sets.

        ``numbers`` are the positions of these sets among all examples.
        """
        device = self.quality.device
        rows = torch.from_numpy(np.concatenate([self.rows[i] for i in numbers]))
        rows = rows.to(device, non_blocking=True)
        batch = ExampleBatch([self.examples[i] for i in numbers], device)
        quality, similarity = self.quality, self.similarity
        return quality.index_select(0, rows), similarity.index_select(0, rows), batch


def make_ensemble(
    network: DPPNetwork, ground_set: GroundSet, jitter: float
) -> LEnsemble:
    """Return the ensemble of a ground set's candidates, on the CPU.

    ``jitter`` is a ridge relative to the diagonal of the similarity.
    """
    network.features.check(ground_set)
    alone = Example(0, ground_set, np.zeros(0, dtype=np.intp), 1.0, 1.0)
    with torch.no_grad():
        found = network(*Items([alone], network).batch(np.array([0])))
    u, S = (part[0].double().cpu().numpy() for part in found)
    S, given = with_jitter((S + S.T) / 2.0, jitter), ground_set.given
    if len(given) == 0:
        return LEnsemble.from_quality(S, u)
    u[given] = 0.0  # it cancels
    return LEnsemble.from_quality(S, u).condition(include=given)


def _match_precision(module: nn.Module, numbers: Tensor) -> Tensor:
    """Return numbers in the precision of a module's weights, single without weights."""
    kinds = (p.dtype for p in module.parameters() if p.is_floating_point())
    return numbers.to(next(kinds, torch.float32))


def make_first_network(
    model: NeuralDPP, features: Features, examples: Sequence[Example], seed: int
) -> DPPNetwork:
    """Return the network that training starts from.

    A new one, its feature scales and intercept fitted to the examples, or with
    ``warm_start`` a copy of that of the last fit.
    """
    if model.warm_start and hasattr(model, "network_"):
        if model.network_.features != features:
            raise ValueError(
                "warm_start=True, but the features are not those of the last fit: "
                "fit a clone, or set warm_start=False"
            )
        return copy.deepcopy(model.network_)
    network = make_network(features, model, seed)
    _, similarity = features.stack_features(examples)
    quality = np.concatenate([each.ground_set.candidate_quality for each in examples])
    n_wanted = sum(len(example.members) for example in examples)
    network.fit_scale(quality, similarity, n_wanted / len(quality))
    return network


def make_network(features: Features, model: NeuralDPP, seed: int = 0) -> DPPNetwork:
    """Return a new network, on the CPU, of copies of a model's modules.

    Missing ones are made, with random weights by the seed; but without an encoder, a
    similarity that is given sees the features themselves.
    """
    given = (copy.deepcopy(getattr(model, role)) for role in ROLES)
    quality, encoder, similarity = (m if m is None else m.cpu() for m in given)
    with seeded_random(seed, torch.device("cpu")):
        if quality is None:
            quality = Perceptron(features.n_quality, model.n_hidden, 1).start_at_zero()
        if encoder is None and similarity is not None:
            encoder = nn.Identity()
        elif encoder is None:
            sizes = (features.n_similarity, model.n_hidden, model.n_embedding)
            encoder = Perceptron(*sizes)
        if similarity is None:
            n_embedding = _find_embedding_size(encoder, features.n_similarity)
            similarity = KindsSimilarity(n_embedding, model.n_kinds)
        modules = (quality, encoder, similarity)
        network = DPPNetwork(features, *modules, model.standardize)
        _check_output_shapes(network)
    return network


@contextmanager
def seeded_random(seed: int, device: torch.device) -> Iterator[None]:
    """Seed PyTorch's generators, of the CPU and a GPU, for the block alone."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@torch.no_grad()
def _find_embedding_size(encoder: nn.Module, n_features: int) -> int:
    """Return how many outputs an encoder, put in evaluation mode, has per item."""
    encoder.eval()
    embedding = encoder(_match_precision(encoder, torch.zeros(2, n_features)))
    if not isinstance(embedding, Tensor) or embedding.shape[:-1] != (2,):
        raise ValueError(
            f"encoder makes {_shape_of(embedding)} of 2 items with {n_features} "
            "features: it must make one row an item"
        )
    return int(embedding.shape[-1])


@torch.no_grad()
def _check_output_shapes(network: DPPNetwork) -> None:
    """Refuse wrong output shapes, asymmetric similarities, and state not in tensors."""
    network.eval()
    for name, weight in network.state_dict().items():
        if not isinstance(weight, Tensor):
            raise ValueError(
                f"{name} of the network is a {type(weight).__name__}, not a tensor, "
                "and cannot be kept in a file: leave it out of the state of your module"
            )
    features = network.features
    items = _match_precision(network.quality, torch.zeros(2, features.n_quality))
    u = network.quality(items)
    if not isinstance(u, Tensor) or u.shape not in ((2,), (2, 1)):
        raise ValueError(
            f"quality makes {_shape_of(u)} of 2 items: it must make one number an item"
        )
    n_embedding = _find_embedding_size(network.encoder, features.n_similarity)
    items = torch.eye(2, n_embedding, dtype=torch.float64)[None]
    S = network.similarity(items)
    if not isinstance(S, Tensor) or S.shape != (1, 2, 2):
        raise ValueError(
            f"similarity makes {_shape_of(S)} of one ground set of 2 items: it must "
            "make a matrix (1, 2, 2)"
        )
    if not torch.allclose(S, S.mT):
        raise ValueError("similarity makes a matrix that is not symmetric")


def _shape_of(found: object) -> str:
    """Return the shape of a tensor, or the type of another output, for messages."""
    if isinstance(found, Tensor):
        return f"a tensor of shape {tuple(found.shape)}"
    return f"a {type(found).__name__}"
