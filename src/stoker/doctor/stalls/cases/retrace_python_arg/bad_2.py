import tensorflow as tf

class Agent:
    def __init__(self):
        self.epsilon = 1.0

    @tf.function
    def act(self, state, epsilon):
        return tf.where(tf.random.uniform(()) < epsilon, 0, 1)

    def play(self, env):
        while True:
            action = self.act(env.state, self.epsilon)  #!
            self.epsilon *= 0.995
