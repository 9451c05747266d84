"""NeuralDPP against the NumPy path, and as an estimator of scikit-learn."""

import copy
import inspect
import re

import numpy as np
import pytest
import torch
from neural_cases import Encoder, assert_same_weights, ragged, seeded_encoder, small
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from torch import nn

import variegate as vg
import variegate.torch as vt
from variegate.learning.examples import check_examples
from variegate.torch.batches import batches_by_size, shuffled_batches
from variegate.torch.neural.networks import Items
from variegate.torch.neural.training import Training
from variegate.tuning import OmegaFamily


@pytest.fixture(scope="module")
def data():
    return ragged()


@pytest.fixture(scope="module")
def fitted(data, device):
    return small(device, max_epochs=15).fit(*data)


# Batches ------------------------------------------------------------------------------


def as_items(model, ground_sets, subsets, **costs):
    examples = check_examples(ground_sets, subsets, model.omega, **costs)
    return Items(examples, model.network_)


@torch.no_grad()
def test_a_padded_batch_is_what_each_set_is_alone(fitted, data):
    items = as_items(fitted, *data)
    together = fitted.network_(*items.batch(np.arange(len(items))))
    assert len(set(items.sizes)) > 3
    for number, n in enumerate(items.sizes):
        alone = fitted.network_(*items.batch(np.array([number])))
        for found, expected in zip(together, alone, strict=True):
            here = found[number][tuple(slice(n) for _ in range(found.ndim - 1))]
            torch.testing.assert_close(here, expected[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("with_costs", [False, True])
def test_losses_are_those_of_numpy(fitted, data, with_costs):
    ground_sets, subsets = data
    rng = np.random.default_rng(0)
    costs = {}
    if with_costs:
        names = ("false_positive", "false_negative")
        costs = {
            name: [rng.uniform(0.5, 2.0, len(one)) for one in ground_sets]
            for name in names
        }
    model = clone(fitted).set_params(lam=2.0, omega=0.5)
    model.network_ = fitted.network_
    items = as_items(model, ground_sets, subsets, **costs)
    training = Training(fitted.network_, items, None, model, 0)
    with torch.no_grad():
        *_, losses = training._compute_losses(items, np.arange(len(items)))
        found = losses.cpu().numpy()
    for number, (ground_set, subset) in enumerate(
        zip(ground_sets, subsets, strict=True)
    ):
        given = {name: values[number] for name, values in costs.items()}
        L = fitted.ensemble(ground_set).L
        expected, _ = vg.large_margin_loss(L, subset, 2.0, 0.5, **given)
        assert found[number] == pytest.approx(expected, rel=1e-5, abs=1e-5)


@torch.no_grad()
def test_expected_f_is_that_of_the_marginals(fitted, data):
    items = as_items(fitted, *data)
    training = Training(fitted.network_, items, None, fitted, 0)
    batch, kernels, _ = training._compute_losses(items, np.arange(len(items)))
    found, definite = batch.expected_f(kernels)
    assert definite.all()
    found = found.cpu().numpy()
    for number, (ground_set, subset) in enumerate(zip(*data, strict=True)):
        K = fitted.ensemble(ground_set).marginals()
        expected = 2.0 * K[subset].sum() / (K.sum() + len(subset))
        assert found[number] == pytest.approx(expected, rel=1e-5)


def test_a_network_that_makes_no_numbers_is_not_the_best(fitted, data):
    network = copy.deepcopy(fitted.network_)
    network.intercept.detach().fill_(torch.nan)
    items = as_items(fitted, *data)
    objective, _ = Training(network, items, None, fitted, 0)._evaluate(items)
    assert objective == np.inf


@pytest.mark.parametrize(("n_sets", "batch_size"), [(1, 4), (7, 3), (100, 8), (5, 50)])
def test_a_pass_goes_through_all_sets_once(n_sets, batch_size):
    sizes = np.random.default_rng(0).integers(1, 50, n_sets)
    for batches in (
        shuffled_batches(sizes, batch_size, 5, 2),
        batches_by_size(sizes, batch_size),
    ):
        assert sorted(np.concatenate(batches).tolist()) == list(range(n_sets))
        assert max(map(len, batches)) <= batch_size * 1.5 or n_sets < batch_size
    again = shuffled_batches(sizes, batch_size, 5, 2)
    first = shuffled_batches(sizes, batch_size, 5, 2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_the_order_of_passes_differs_and_batches_hold_sets_of_about_one_size():
    sizes = np.random.default_rng(0).integers(1, 200, 640)
    first = np.concatenate(shuffled_batches(sizes, 8, 0, 0))
    second = np.concatenate(shuffled_batches(sizes, 8, 0, 1))
    assert (first != second).any()
    padded = sum(8 * sizes[b].max() for b in shuffled_batches(sizes, 8, 0, 0))
    at_random = sum(8 * sizes[b].max() for b in np.array_split(np.arange(640), 80))
    assert padded < 1.3 * sizes.sum() < at_random


# Learning -----------------------------------------------------------------------------


def test_a_linear_network_gets_to_the_minimum_of_the_linear_model(device):
    data = vg.datasets.make_synthetic(n_sets=30, random_state=0)
    reference = vg.LargeMarginDPP(kernel=vg.Linear(), lam=1.0, tol=1e-6)
    reference.fit(data.ground_sets, data.subsets)
    n_features = data.ground_sets[0].n_features
    model = vt.NeuralDPP(
        quality=nn.Linear(n_features, 1).double(),
        similarity=vt.LinearSimilarity(),
        standardize=False,
        validation_fraction=0.0,
        batch_size=30,
        learning_rate=0.05,
        weight_decay=0.0,
        max_epochs=300,
        device=device,
        random_state=0,
    )
    model.fit(data.ground_sets, data.subsets)
    lowest = reference.solver_result_.objective
    assert lowest - 1e-6 <= model.solver_result_.objective < lowest + 2e-3
    weights = model.network_.quality.weight[0].detach().cpu().numpy()
    np.testing.assert_allclose(weights, reference.theta_, atol=0.1)


def test_it_learns_and_keeps_a_history(device):
    new_sets, wanted = ragged(60, seed=2)
    learned = small(device, max_epochs=60).fit(*ragged(120, seed=1))
    best_two = [np.argsort(-one.quality[:, 0])[:2] for one in new_sets]
    by_quality = vg.metrics.mean_scores(best_two, wanted)["f"]
    assert learned.score(new_sets, wanted) > max(0.85, by_quality + 0.1)
    history = learned.history_
    assert [one.iteration for one in history] == list(range(len(history)))
    assert history[0].training is None
    best = min(history, key=lambda one: one.objective)
    assert learned.solver_result_.objective == best.objective < history[0].objective
    assert best.expected_f > history[0].expected_f


def test_the_best_weights_on_given_groups_are_kept_and_learning_stops(data, device):
    validation = ragged(12, seed=5)
    seen = []
    model = small(
        device, max_epochs=300, patience=3, learning_rate=0.2, callback=seen.append
    )
    model.fit(*data, validation=validation)
    assert seen == model.history_
    objectives = [one.objective for one in model.history_]
    best = int(np.argmin(objectives))
    assert len(objectives) == best + 3 + 1
    assert f"the weights of pass {best} are kept" in model.solver_result_.status
    items = as_items(model, *validation)
    judged, _ = Training(model.network_, items, None, model, 0)._evaluate(items)
    assert judged == pytest.approx(objectives[best], rel=1e-6)


def test_without_groups_held_out_all_passes_are_made(data, device):
    model = small(device, validation_fraction=0.0, max_epochs=3).fit(*data)
    assert [one.iteration for one in model.history_] == [1, 2, 3]
    assert all(one.expected_f is None for one in model.history_)
    assert model.history_[-1].n_seen == 3 * len(data[0])
    assert model.solver_result_.status.startswith("went through the groups")


def test_the_callback_stops(data, device):
    model = small(device, callback=lambda step: step.iteration == 2).fit(*data)
    assert len(model.history_) == 3
    assert model.solver_result_.status == "stopped by the callback"


def test_a_start_that_is_not_beaten_is_warned_of(data, device):
    model = small(device, learning_rate=1e3, max_epochs=2)
    with pytest.warns(
        ConvergenceWarning, match=r"did not beat its start on held-out.*now 1000"
    ):
        model.fit(*data)
    assert model.solver_result_.objective == model.history_[0].objective


def test_verbose_says_how_far_it_is(data, device, capsys, monkeypatch):
    monkeypatch.setattr("variegate._progress._PAUSE", 0.0)
    small(device, verbose=True, max_epochs=2).fit(*data)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith("NeuralDPP: pass 2 of 2, 44 groups, objective ")


def test_a_seed_settles_the_weights_and_leaves_the_generator_alone(data):
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    given = {"encoder": seeded_encoder()}
    first = small("cpu", **given).fit(*data)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(8)
    assert_same_weights(first, small("cpu", **given).fit(*data))
    other = small("cpu", **given, random_state=1).fit(*data)
    assert not torch.equal(
        first.network_.encoder.inward.weight, other.network_.encoder.inward.weight
    )


def test_modules_that_are_given_stay_as_they_are(data, device):
    encoder = seeded_encoder().to(device)  # where it is does not matter
    before = {name: w.clone() for name, w in encoder.state_dict().items()}
    model = small(device, encoder=encoder).fit(*data)
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, before[name])
    assert model.get_params()["encoder"] is encoder
    assert not torch.equal(
        model.network_.encoder.inward.weight, before["inward.weight"]
    )


def test_frozen_weights_stay(data, device):
    encoder = seeded_encoder()
    encoder.inward.requires_grad_(False)
    model = small(device, encoder=encoder).fit(*data)
    assert torch.equal(
        model.network_.encoder.inward.weight.cpu(), encoder.inward.weight
    )


def test_a_warm_start_goes_on_from_what_was_learned(device):
    sixty = ragged(60)
    model = small(device, warm_start=True, max_epochs=10, learning_rate=0.005)
    model.fit(*sixty)
    best = model.solver_result_.objective
    model.fit(*sixty)
    assert model.history_[0].objective == pytest.approx(best, rel=1e-6)
    assert model.solver_result_.objective < best
    with pytest.raises(ValueError, match="features are not those of the last fit"):
        model.fit(*ragged(p=5))


def test_large_numbers_with_small_differences_are_told_apart(device):
    ground_sets, subsets = ragged(60, seed=3)
    moved = [
        vg.GroundSet(1e-3 * one.quality + 1e6, 1e3 * one.similarity - 1e9)
        for one in ground_sets
    ]
    plain = small(device, max_epochs=20).fit(ground_sets, subsets)
    same = small(device, max_epochs=20).fit(moved, subsets)
    assert same.solver_result_.objective == pytest.approx(
        plain.solver_result_.objective, rel=0.02
    )


def test_several_blocks_and_sparse_ones_are_put_side_by_side(data):
    ground_sets, subsets = data

    def divided(one):
        first, second = one.similarity[:, :2], sparse.csr_array(one.similarity[:, 2:])
        return vg.GroundSet(one.quality, {"a": first, "b": second})

    blocks = small("cpu").fit(list(map(divided, ground_sets)), subsets)
    whole = small("cpu").fit(ground_sets, subsets)
    assert_same_weights(blocks, whole)
    with pytest.raises(ValueError, match=r"features 4, but .* 'a' of 2, 'b' of 2"):
        blocks.ensemble(ground_sets[0])


# The contract of scikit-learn ---------------------------------------------------------


def test_choosing_is_that_of_the_ensemble(fitted, data):
    ground_sets, _ = data
    chosen = fitted.predict(ground_sets, k=1)
    for one, members in zip(ground_sets, chosen, strict=True):
        expected = fitted.ensemble(one).decode("greedy", k=1).indices
        np.testing.assert_array_equal(members, expected)
    costly = vg.GroundSet(
        ground_sets[0].quality,
        ground_sets[0].similarity,
        np.full(len(ground_sets[0]), 2.0),
    )
    assert len(fitted.predict([costly], budget=2.5)[0]) <= 1
    u = fitted.log_quality(ground_sets[0].quality)
    assert fitted.ensemble(ground_sets[0]).log_scale == pytest.approx(u, abs=1e-5)


def test_clone_and_grid_search_over_lists(data, device):
    model = small(device, encoder=seeded_encoder(), max_epochs=2)
    copied = clone(model)
    assert copied.encoder is not model.encoder
    assert copied.get_params().keys() == model.get_params().keys()
    search = GridSearchCV(model, {"lam": [0.0, 1.0], "n_kinds": [2, 4]}, cv=2)
    search.fit(*data)
    assert set(search.best_params_) == {"lam", "n_kinds"}
    costs = [np.ones(len(one)) for one in data[0]]
    params = {"false_positive": costs}
    assert len(cross_val_score(model, *data, cv=2, params=params)) == 2


def test_unfitted(device, data):
    for act in (lambda m: m.predict(data[0]), lambda m: m.ensemble(data[0][0])):
        with pytest.raises(NotFittedError):
            act(small(device))
    assert "NeuralDPP" in small(device)._repr_html_()


def test_a_notebook_shows_what_was_learned(fitted):
    html = fitted._repr_html_()
    assert "KindsSimilarity" in html
    assert fitted.solver_result_.status in html


# What cannot be -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lam": -1.0}, "lam must be a finite number >= 0"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number > 0"),
        ({"batch_size": 0}, "batch_size must be a whole number"),
        ({"validation_fraction": 1.0}, "validation_fraction must be below 1"),
        ({"standardize": "no"}, "standardize must be True or False"),
        ({"encoder": len}, r"encoder must be a torch.nn.Module or None, got <built-in"),
        ({"callback": 3}, "callback must be callable"),
        ({"decoder": "best"}, "unknown decoding method"),
        ({"device": "mps"}, "device must be None, 'auto', 'cpu', 'cuda', or a GPU by"),
        ({"random_state": -1}, "random_state must be None, a non-negative integer"),
    ],
)
def test_settings_that_cannot_be(settings, message, data, device):
    with pytest.raises(ValueError, match=message):
        small(**{"device": device} | settings).fit(*data)


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
def test_a_gpu_that_is_not_there(data):
    with pytest.raises(
        ValueError, match="'cuda', but PyTorch finds no GPU on this machine"
    ):
        small("cuda").fit(*data)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"quality": nn.Linear(3, 2)},
            r"quality makes a tensor of shape \(2, 2\) of 2 items: it must make one",
        ),
        (
            {"encoder": nn.Flatten(0)},
            r"encoder makes a tensor of shape \(8,\) of 2 items with 4 features",
        ),
        (
            {"similarity": nn.Identity()},
            r"similarity makes a tensor of shape \(1, 2, 4\) of one ground set",
        ),
        ({"similarity": nn.Linear(4, 2)}, "a matrix that is not symmetric"),
        ({"encoder": nn.LSTM(4, 2)}, "encoder makes a tuple of 2 items"),
    ],
)
def test_modules_that_make_something_else(settings, message, data, device):
    with pytest.raises(ValueError, match=message):
        small(device, **settings).fit(*data)


def test_a_state_that_is_no_tensor(data, device):
    class Strange(nn.Linear):
        def get_extra_state(self):
            return {"a": 1}

    with pytest.raises(
        ValueError, match=r"encoder._extra_state of the network is a dic"
    ):
        small(device, encoder=Strange(4, 3)).fit(*data)


def test_data_that_cannot_be(data, fitted, device):
    ground_sets, subsets = data
    model = small(device)
    with pytest.raises(ValueError, match="learns from two lists"):
        model.fit(list(zip(*data, strict=True)))
    with pytest.raises(ValueError, match="of one ground set none can be held out"):
        model.fit(ground_sets[:1], subsets[:1])
    with pytest.raises(ValueError, match=r"validation must be a pair of lists"):
        model.fit(*data, validation=ground_sets)
    other = vg.GroundSet(ground_sets[1].quality, np.ones((len(ground_sets[1]), 5)))
    with pytest.raises(ValueError, match=r"ground set 1: .* 5, but .* fitted with 4"):
        model.fit([ground_sets[0], other, *ground_sets[2:]], subsets)
    with pytest.raises(ValueError, match="validation: ground set 0: it has 2 quality"):
        model.fit(*data, validation=ragged(4, d=2))
    with pytest.raises(
        ValueError, match="2 quality features, but the model was fitted"
    ):
        fitted.predict(ragged(2, d=2)[0])
    with pytest.raises(ValueError, match="similarity features 5, but"):
        fitted.predict(ragged(2, p=5)[0])


def test_a_network_gone_astray_is_named_with_its_ground_set(data, device):
    class Astray(nn.Linear):
        def forward(self, items):
            return super().forward(items) / (0.0 if self.training else 1.0)

    model = small(device, quality=Astray(3, 1), batch_size=len(data[0]))
    with pytest.raises(
        ValueError, match=r"ground set \d+: its loss is no longer a num"
    ):
        model.fit(*data)


def test_an_encoder_of_the_users_own_may_be_of_double_precision(data, device):
    model = small(device, encoder=seeded_encoder().double()).fit(*data)
    assert model.network_.encoder.inward.weight.dtype == torch.float64
    assert isinstance(model.network_.encoder, Encoder)


def test_tuning_is_for_models_that_can_be_mixed(data, device):
    with pytest.raises(ValueError, match="estimator must be a LargeMarginDPP"):
        vg.LargeMarginDPPCV(estimator=small(device)).fit(*data)
    with pytest.raises(ValueError, match="can be mixed, not of a NeuralDPP"):
        OmegaFamily.fit(small(device), (1.0, 2.0), *data)


def test_defaults_in_the_docstring_are_those_of_the_code():
    documented = dict(
        re.findall(
            r"^(\w+) : .*default=(\S+)$", inspect.getdoc(vt.NeuralDPP), re.MULTILINE
        )
    )
    assert len(documented) > 15
    for name, value in documented.items():
        default = inspect.signature(vt.NeuralDPP).parameters[name].default
        assert eval(value) == default, name
