outputs = []
for x, y in dataset:
    loss, out = train_step(x, y)
    outputs.append(out)
