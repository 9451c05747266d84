from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from variegate.video.evaluation import evaluate_keyframes
from variegate.video.oracle import oracle_keyframes


def test_what_all_users_chose():
    red, green, blue, grey = np.eye(4)
    frames = [grey, red, green, blue]
    assert oracle_keyframes(frames, [[red, green], [red, green]]).tolist() == [1, 2]
    # One user in three wants blue: F with it is (1 + 2/3 + 2/3) / 3, without 8/9.
    users = [[red, blue], [red], [red]]
    assert oracle_keyframes(frames, users).tolist() == [1]


def test_no_frame_agrees():
    red, green = np.eye(2)
    assert oracle_keyframes([red], [[green]]).tolist() == []
    assert oracle_keyframes(np.zeros((0, 2)), [[green]]).tolist() == []


@given(seed=st.integers(0, 10**6), n=st.integers(1, 5))
def test_no_single_frame_is_better_and_none_more_helps(seed, n):
    rng = np.random.default_rng(seed)
    frames = rng.dirichlet(np.ones(3), n)
    users = [rng.dirichlet(np.ones(3), rng.integers(1, 4)) for _ in range(2)]
    chosen = oracle_keyframes(frames, users)

    def f(members):
        return evaluate_keyframes(users, frames[list(members)]).f

    best_single = max(f(one) for one in combinations(range(n), 1))
    assert f(chosen) >= best_single - 1e-12
    for i in set(range(n)) - set(chosen.tolist()):
        assert f([*chosen, i]) <= f(chosen) + 1e-12
