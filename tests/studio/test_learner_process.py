"""The loop of the process that learns, without the process."""

import queue

from variegate.studio.teacher import Task, _MessageLoop


class FakeLearner:
    """Asks once whether to go on, and counts how often it came to an end."""

    def __init__(self):
        self.n_ended = 0

    def learn(self, done, publish, check):
        check()
        self.n_ended += 1


def test_newer_picks_interrupt_learning_twice_in_a_row_at_most():
    messages, sent, learner = queue.Queue(), [], FakeLearner()
    loop = _MessageLoop(messages, sent.append)
    messages.put(Task(9, {}))  # newer picks wait all the time
    ended = []
    for serial in range(6):
        loop.answer(Task(serial, {}), learner)
        ended.append(learner.n_ended)
    assert ended == [0, 0, 1, 1, 1, 2]
    assert [answer.serial for answer in sent] == [2, 5]


def test_learning_that_is_not_interrupted_comes_to_its_end():
    loop = _MessageLoop(queue.Queue(), [].append)
    learner = FakeLearner()
    for serial in range(3):
        loop.answer(Task(serial, {}), learner)
    assert learner.n_ended == 3
