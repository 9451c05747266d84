"""Neural models in files, and checkpoints of their training.

A model file is JSON with the weights in base64.  Nothing in it is ever run: of a module
of the user's own it holds the weights and the name of the class, and the module is
given back when the file is loaded.  A checkpoint is a run store.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from variegate.files.atomic import plain
from variegate.files.model_format import (
    ENDED,
    HEAD,
    ModelFileError,
    decode_ending,
    decode_settings,
    encode_ending,
    encode_settings,
)
from variegate.files.models import NOTHING, Own, register
from variegate.files.run_store import CheckpointError, RunStore
from variegate.files.schema import Anything, MapOf, Maybe, Number, Record, String
from variegate.torch.neural.networks import ROLES, Features, make_network

if TYPE_CHECKING:
    from variegate.torch.neural import NeuralDPP

#: The type of these files.
TYPE = "neural-dpp"

#: The share of the time that writing checkpoints may take.
_SHARE = 0.1

#: Settings that are code, or are about the machine, and so are not in a file.
_NOT_STORED = (*ROLES, "callback", "device", "verbose")

_SIZE = Number(least=1, is_whole=True)
_SHAPE = Record(
    {
        "type": String((TYPE,)),
        "settings": MapOf(Anything()),
        "network": Record(
            {
                "quality_features": _SIZE,
                "similarity_features": MapOf(_SIZE),
                "modules": Record(dict.fromkeys(ROLES, Maybe(String()))),
            }
        ),
        "weights": String(),
    },
    HEAD | ENDED | {"omega": Number(least=0)},
)


def encode(model: NeuralDPP) -> dict[str, Any]:
    """Return a fitted model as plain values."""
    model._check_parameters()
    network = model.network_
    modules = ((role, getattr(model, role)) for role in ROLES)
    return {
        "type": TYPE,
        "settings": encode_settings(model, _NOT_STORED),
        "network": {
            "quality_features": network.features.n_quality,
            "similarity_features": dict(network.features.blocks),
            "modules": {role: m and type(m).__name__ for role, m in modules},
        },
        "weights": b64encode(_to_bytes(network.state_dict())).decode("ascii"),
        "training": encode_ending(model.solver_result_),
    }


def decode(document: Mapping[str, Any], own: Own = NOTHING) -> NeuralDPP:
    """Return the model that a file describes."""
    from variegate.torch.neural import NeuralDPP

    _SHAPE.check(document)
    section = document["network"]
    given = _given(section["modules"], own.modules)
    settings = decode_settings(document, NeuralDPP(), _NOT_STORED)
    model = NeuralDPP(**settings, **given)
    model._check_parameters()
    blocks = {str(k): int(n) for k, n in section["similarity_features"].items()}
    weights = _read(document["weights"])
    network = make_network(Features(section["quality_features"], blocks), model)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ModelFileError(
            f"the weights do not fit the network, or the modules given: {reason}"
        ) from None
    model._set_fitted(network, [], decode_ending(document, np.empty(0)))
    return model


def _given(
    names: Mapping[str, str | None], modules: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the modules that a file names, as they were given back."""
    if unknown := sorted(set(modules) - {role for role in ROLES if names[role]}):
        raise ModelFileError(f"this model has no {unknown[0]} of your own")
    given = {}
    for role in ROLES:
        name, module = names[role], modules.get(role)
        if name and not isinstance(module, nn.Module):
            raise ModelFileError(
                f"its {role} is a module of your own, {name}, of which the file has "
                "the weights only: give such a module back, "
                f'vg.load(path, modules={{"{role}": {name}(...)}})'
            )
        given[role] = module
    return given


def _read(text: str) -> dict[str, Tensor]:
    try:
        weights: dict[str, Tensor] = load(b64decode(text, validate=True))
    except (SafetensorError, ValueError) as error:
        raise ModelFileError(f"the weights are damaged: {error}") from None
    for name, value in weights.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise ModelFileError(f"the weights {name} hold NaN or infinite numbers")
    return weights


def _to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Return tensors in the format of safetensors, reading which runs nothing."""
    copies = {  # as it cannot hold two names of one tensor
        name: value.detach().to("cpu", copy=True).contiguous()
        for name, value in tensors.items()
    }
    content: bytes = save(copies)
    return content


#: Tensors by part and name.
Parts = Mapping[str, Mapping[str, Tensor]]


class Checkpoint:
    """The run store of one training; without a path nothing is written.

    ``run`` holds the settings and a description of the data, ``seed`` the seed of the
    run if the file is new.
    """

    def __init__(
        self, path: str | Path | None, run: Mapping[str, Any], seed: int
    ) -> None:
        self._last = time.monotonic()
        self._pause = 0.0
        self._store = RunStore(path, run)
        self.seed = seed

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self._store.close)
            first = str(self.seed).encode()
            self.seed = int(self._store.remember("seed", lambda: first))
            stack.pop_all()  # it stays open
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def read(self) -> tuple[Parts, Mapping[str, Any]] | None:
        """Return the tensors and the state that were written last, if any."""
        stored = {key: self._store.get(key) for key in self._store.keys()}  # noqa: SIM118
        state = stored.pop("state", None)
        if state is None:
            return None
        del stored["seed"]
        try:
            return {k: load(v) for k, v in stored.items()}, json.loads(state)
        except (SafetensorError, TypeError, ValueError) as error:
            raise CheckpointError(f"{self._store.path} is damaged: {error}") from None

    def is_due(self) -> bool:
        """Return whether it is time to write."""
        is_stored = self._store.path is not None
        return is_stored and time.monotonic() - self._last >= self._pause

    def write(self, parts: Parts, state: Mapping[str, Any]) -> None:
        """Write tensors and state, both or neither."""
        started = time.monotonic()
        stored = {"state": json.dumps(state, default=plain).encode()}
        stored |= {part: _to_bytes(values) for part, values in parts.items()}
        self._store.put_all(stored)
        self._last = time.monotonic()
        self._pause = (self._last - started) / _SHARE

    def remove(self) -> None:
        """Remove the file, as the run is complete."""
        self._store.remove()


register(TYPE, decode)
