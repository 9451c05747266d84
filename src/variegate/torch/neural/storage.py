"""Neural models in files.

A model file is JSON with the weights in base64.  Nothing in it is ever run: of a module
of the user's own it holds the weights and the name of the class, and the module is
passed in again when the file is loaded.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from variegate.files.model_format import (
    ENDED,
    HEAD,
    ModelFileError,
    decode_ending,
    decode_settings,
    encode_ending,
    encode_settings,
)
from variegate.files.models import NOTHING, Own, register_reader
from variegate.files.schema import ANYTHING, MapOf, Maybe, Number, Record, String
from variegate.torch.neural.networks import ROLES, Features, make_network

if TYPE_CHECKING:
    from variegate.torch.neural import NeuralDPP

#: The type of these files.
TYPE = "neural-dpp"

#: Settings that are code, or about the machine: a file does not hold them.
_NOT_STORED = (*ROLES, "callback", "device", "verbose")

_SIZE = Number(least=1, is_whole=True)
_SHAPE = Record(
    {
        "type": String((TYPE,)),
        "settings": MapOf(ANYTHING),
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
    """Return a fitted model as plain values for a JSON file, of the form ``_SHAPE``."""
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
        "weights": b64encode(to_bytes(network.state_dict())).decode("ascii"),
        "training": encode_ending(model.solver_result_),
    }


def decode(document: Mapping[str, Any], own: Own = NOTHING) -> NeuralDPP:
    """Return the fitted model of a file's plain values, with the user's own modules."""
    from variegate.torch.neural import NeuralDPP

    _SHAPE.check(document)
    section = document["network"]
    given = _match_modules(section["modules"], own.modules)
    settings = decode_settings(document, NeuralDPP(), _NOT_STORED)
    model = NeuralDPP(**settings, **given)
    model._check_parameters()
    blocks = {str(k): int(n) for k, n in section["similarity_features"].items()}
    weights = _read_tensors(document["weights"])
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


def _match_modules(
    names: Mapping[str, str | None], modules: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a given module, or None, for each role; refuse missing and unknown ones.

    ``names`` are the class names in the file by role, None for modules made by default.
    """
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


def _read_tensors(text: str) -> dict[str, Tensor]:
    """Return tensors by name from the base64 of safetensors; refuse infinite ones."""
    try:
        weights: dict[str, Tensor] = load(b64decode(text, validate=True))
    except (SafetensorError, ValueError) as error:
        raise ModelFileError(f"the weights are damaged: {error}") from None
    for name, value in weights.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise ModelFileError(f"the weights {name} hold NaN or infinite numbers")
    return weights


def to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """Return tensors in the format of safetensors, which holds no code."""
    copies = {  # the format refuses two names of one tensor
        name: value.detach().to("cpu", copy=True).contiguous()
        for name, value in tensors.items()
    }
    content: bytes = save(copies)
    return content


register_reader(TYPE, decode)
