import tensorflow as tf

def report(loss, step):
    print(f"{step}: {loss:.4f}")  #!

def loop(step_fn):
    compiled = tf.function(step_fn)
    for step in range(10000):
        loss = compiled(tf.constant(1.0))
        report(loss, step)
