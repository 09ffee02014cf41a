"""Solvers of KTI: time, memory and exactness, against the paper's algorithm and other libraries; and by landmarks."""
