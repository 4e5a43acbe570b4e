import tensorflow_datasets as tfds

(train, test), info = tfds.load(
    "cifar10", split=["train", "test"], as_supervised=True, with_info=True
)
train = train.map(normalize).cache().batch(128)  #!
