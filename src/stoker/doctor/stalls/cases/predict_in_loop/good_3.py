import tensorflow as tf
from sklearn.linear_model import LogisticRegression

model = LogisticRegression()
for row in rows:
    print(model.predict([row]))
