"""A worker as everyone else starts it: an interpreter of its own. Prints when its all-reduce was done."""

from cluster_start import first_all_reduce

print(first_all_reduce()[0])
