"""The parts of the comparison: cells, training, evaluation, scheduling, statistics, figures and pages."""
