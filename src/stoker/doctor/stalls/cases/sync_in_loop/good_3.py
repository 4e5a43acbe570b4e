import tensorflow as tf

for images, labels in dataset.take(1):
    preview = model(images)
    print(preview.numpy())
