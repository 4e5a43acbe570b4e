import tensorflow as tf

class Net:
    def __init__(self):
        self.sess = tf.compat.v1.InteractiveSession()

    def step(self, x):
        return self.sess.run(self.out, feed_dict={self.x: x})  #!

    def loop(self, data):
        while data.more():
            self.step(data.next())
