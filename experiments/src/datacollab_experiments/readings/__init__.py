"""Readings of the paper's protocol and of documents: accuracies, published figures, hyperparameters, a walkthrough."""
