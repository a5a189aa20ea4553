"""Names of the columns of a study's tables other than objectives, which therefore may not have these names."""

ORDER, ARCHITECTURE, KEY, GENOTYPE, FEASIBLE = OF_HISTORY = ("order", "architecture", "key", "genotype", "feasible")
DECIDED = ("status", "batch", "stage", "reason")  # of a guided search: attributes of entries of its ledger
SPACE = "space"  # of results to learn from
EVALUATION = "evaluation"  # of front.csv: the number of a member's evaluation, counted from 1
SOFT_MET = "soft_met"  # of front.csv: whether all soft constraints are met

RESERVED = (*OF_HISTORY, *DECIDED, SPACE, EVALUATION, SOFT_MET)
