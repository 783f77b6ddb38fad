"""Who takes part in the benchmarks."""
