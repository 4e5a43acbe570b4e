import tensorflow as tf

class Schedule(tf.Module):
    @tf.function
    def update(self):
        self.rate.assign(self.start * (1 - self.done / self.total))
        self.done += 1  #!

    def begin(self, total):
        self.total = total
        self.done = 0
