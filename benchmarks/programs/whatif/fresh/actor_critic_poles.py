"""An actor-critic agent balances sixteen hand-written cart-poles, with clipped policy updates after each rollout."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(8)
rng = np.random.default_rng(8)
ENVS, HORIZON = 16, 2


class CartPoles:
    def __init__(self):
        self.s = rng.uniform(-0.05, 0.05, size=(ENVS, 4))

    def move(self, actions):
        x, v, th, w = self.s.T
        force = np.where(actions == 1, 10.0, -10.0)
        temp = (force + 0.05 * w**2 * np.sin(th)) / 1.1
        th_acc = (9.8 * np.sin(th) - np.cos(th) * temp) / (0.5 * (4 / 3 - 0.1 * np.cos(th) ** 2 / 1.1))
        x_acc = temp - 0.05 * th_acc * np.cos(th) / 1.1
        self.s = np.stack([x + 0.02 * v, v + 0.02 * x_acc, th + 0.02 * w, w + 0.02 * th_acc], axis=1)
        fell = (np.abs(self.s[:, 0]) > 2.4) | (np.abs(self.s[:, 2]) > 0.21)
        self.s[fell] = rng.uniform(-0.05, 0.05, size=(int(fell.sum()), 4))
        return 1.0 - fell


inp = tf.keras.Input((4,))
h = tf.keras.layers.Dense(128, activation="tanh")(inp)
agent = tf.keras.Model(inp, [tf.keras.layers.Dense(2)(h), tf.keras.layers.Dense(1)(h)])
opt = tf.keras.optimizers.Adam(3e-4)
fast_agent = tf.function(agent)


def act(states):
    if "predict-in-loop" in REPAIRED:
        return [out.numpy() for out in fast_agent(tf.constant(states, tf.float32))]
    return agent.predict(states.astype("float32"), verbose=0)  # stall: predict-in-loop


def update(states, actions, old_logp, returns, advantages):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        logits, values = agent(states)
        ratio = tf.exp(tf.gather(tf.nn.log_softmax(logits), actions, batch_dims=1) - old_logp)
        gain = tf.reduce_mean(tf.minimum(ratio * advantages, tf.clip_by_value(ratio, 0.8, 1.2) * advantages))
        loss = -gain + 0.5 * tf.reduce_mean((values[:, 0] - returns) ** 2)
    opt.apply(tape.gradient(loss, agent.trainable_variables), agent.trainable_variables)


if "eager-train-step" in REPAIRED:
    update = tf.function(update)
env = CartPoles()
for step in range(64):
    S, A, P, R, V = [], [], [], [], []
    for _ in range(HORIZON):
        logits, values = act(env.s)
        probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        A.append((rng.uniform(size=ENVS) < probs[:, 1]).astype("int32"))
        S, P, V = [*S, env.s], [*P, np.log(probs[np.arange(ENVS), A[-1]])], [*V, values[:, 0]]
        R.append(env.move(A[-1]))
    returns = np.cumsum(np.array(R)[::-1], axis=0)[::-1] + 0.9 * V[-1]
    floats = [np.concatenate(P), returns.ravel(), (returns - V).ravel()]
    rollout = [tf.constant(np.concatenate(S), tf.float32), tf.constant(np.concatenate(A))]
    rollout += [tf.constant(r, tf.float32) for r in floats]
    for _ in range(6):
        update(*rollout)
    if step % 20 == 0:
        print("rollout", step, "mean reward", np.mean(R))
