import threading

import numpy as np
import tensorflow as tf

class Player:
    def __init__(self, game, policy_net):
        self.game = game
        self.policy_net = policy_net

    def choose(self, board):
        board = board[np.newaxis, :]
        scores = self.policy_net(board)  #!
        chances = tf.nn.softmax(scores).numpy()[0]
        return np.random.choice(len(chances), p=chances), chances

    def play_many(self, games):
        def play():
            entropy, over, board = 0.0, False, self.game.reset()
            while not over:
                move, chances = self.choose(board)
                entropy += tf.reduce_sum(tf.math.log(chances))  #!
                board, over = self.game.step(move)

        for _ in range(games):
            threading.Thread(target=play).start()
