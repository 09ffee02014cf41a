"""One-shot collaboration side by side: the predictions of each method, and the risk of its messages."""
