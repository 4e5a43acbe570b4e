import tensorflow as tf

class Metric(tf.keras.metrics.Metric):
    def update_state(self, y, p, sample_weight=None):
        self.total.assign_add(tf.py_function(score, [y, p], tf.float32))
