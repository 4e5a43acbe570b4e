"""STK104: Session.run is fed through feed_dict."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.rule import Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import Call

_RUNS = frozenset({"session.run", "session.partial_run"})


class SessionFeedDict(Rule):
    """`session.run(..., feed_dict=...)` in a loop."""

    kind = "session-feed-dict"
    severity = "warning"
    page = Page(
        what="Reports `run` and `eval` with a `feed_dict` in a loop of steps.",
        why="Every value in the dictionary is converted and copied from Python at each step, on the thread that also "
        "drives the session, and nothing of it overlaps with the computation.",
        known_problems="A dictionary that only feeds a learning rate or a flag costs little.",
    )
    bad = (
        bad(
            """
            import tensorflow.compat.v1 as tf

            x = tf.placeholder(tf.float32, [None, 784])
            with tf.Session() as sess:
                for i in range(1000):
                    batch = mnist.train.next_batch(100)
                    sess.run(train_op, feed_dict={x: batch[0], y: batch[1]})  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            session = tf.compat.v1.Session()
            for epoch in range(10):
                for a, b in batches:
                    _, loss = session.run([train, cost], {inputs: a, targets: b})  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            def fit(sess, steps):
                for step in range(steps):
                    sess.run(train_op, feed_dict=feed(step))  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            class Net:
                def __init__(self):
                    self.sess = tf.compat.v1.InteractiveSession()

                def step(self, x):
                    return self.sess.run(self.out, feed_dict={self.x: x})  #!

                def loop(self, data):
                    while data.more():
                        self.step(data.next())
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow.compat.v1 as tf

            next_batch = tf.data.make_one_shot_iterator(dataset).get_next()
            train_op = build(next_batch)
            with tf.Session() as sess:
                for i in range(1000):
                    sess.run(train_op)
            """
        ),
        good(
            """
            import tensorflow.compat.v1 as tf

            with tf.Session() as sess:
                print(sess.run(accuracy, feed_dict={x: test_x, y: test_y}))
            """
        ),
        good(
            """
            import tensorflow.compat.v1 as tf

            with tf.Session() as sess:
                for i in range(1000):
                    sess.run(train_op)
                    if i % 100 == 0:
                        print(sess.run(accuracy, feed_dict={x: test_x}))
            """
        ),
        good(
            """
            import subprocess
            import tensorflow as tf

            for command in commands:
                subprocess.run(command, check=True)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Runs with a dictionary, at each step."""
        for fact in analysis.facts:
            if isinstance(fact, Call) and fact.name in _RUNS and fact.at.hot and _is_fed(fact):
                yield self.problem(fact.at, "values are fed from Python through feed_dict at every step")


def _is_fed(fact: Call) -> bool:
    return len(fact.call.args) > 1 or any(keyword.arg == "feed_dict" for keyword in fact.call.keywords)


RULE = SessionFeedDict()
