import tensorflow as tf

class Agent:
    def __init__(self):
        self.optimizer = tf.keras.optimizers.Adam(1e-3)

    # @tf.function
    def learn(self, states, targets):
        with tf.GradientTape() as tape:  #!
            loss = tf.reduce_mean((self.net(states) - targets) ** 2)
        grads = tape.gradient(loss, self.net.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.net.trainable_variables))
        self.steps.append(1)

    def train(self, memory):
        for _ in range(5000):
            self.learn(*memory.sample())
