"""Which D and which noise for sums under masks: how good the model is, and how much the total tells."""
