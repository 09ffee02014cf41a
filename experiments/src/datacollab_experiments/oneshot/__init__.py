"""One-shot collaboration side by side: what each method predicts, and what its messages say of one person."""
