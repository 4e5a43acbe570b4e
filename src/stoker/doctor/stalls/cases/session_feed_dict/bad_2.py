import tensorflow as tf

session = tf.compat.v1.Session()
for epoch in range(10):
    for a, b in batches:
        _, loss = session.run([train, cost], {inputs: a, targets: b})  #!
