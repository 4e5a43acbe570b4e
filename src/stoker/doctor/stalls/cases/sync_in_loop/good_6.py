import tensorflow as tf

for weight in model.trainable_variables:
    print(weight.name, weight.numpy().mean())
