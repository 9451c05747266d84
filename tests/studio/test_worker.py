"""The loop of the process that learns, without the process."""

import io
import pickle
import queue

from variegate.studio.worker import Teach, _Worker


class FakePupil:
    """Asks once whether to go on, and counts how often it came to an end."""

    def __init__(self):
        self.n_ended = 0

    def learn(self, done, publish, check):
        check()
        self.n_ended += 1


def test_newer_picks_cut_learning_short_twice_in_a_row_at_most():
    inbox, out, pupil = queue.Queue(), io.BytesIO(), FakePupil()
    worker = _Worker(inbox, out)
    inbox.put(Teach(9, {}))  # newer picks wait all the time
    ended = []
    for serial in range(6):
        worker._answer(Teach(serial, {}), pupil)
        ended.append(pupil.n_ended)
    assert ended == [0, 0, 1, 1, 1, 2]
    out.seek(0)
    assert [pickle.load(out).serial for _ in range(2)] == [2, 5]


def test_what_is_not_interrupted_comes_to_its_end():
    worker = _Worker(queue.Queue(), io.BytesIO())
    pupil = FakePupil()
    for serial in range(3):
        worker._answer(Teach(serial, {}), pupil)
    assert pupil.n_ended == 3
