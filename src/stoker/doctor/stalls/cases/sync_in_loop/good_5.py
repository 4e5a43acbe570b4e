import tensorflow as tf

for step in range(1000):
    loss = train_step(batch)
    if step % 50 != 0:
        continue
    print("loss", float(loss))
