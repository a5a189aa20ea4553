"""New objectives from a few labels (``adapt``), and known costs as sums over operators (``refine``).

``adapt`` fits small models to the few labels, predicts with them the labels of all texts of a pool, and fits a readout
to these predictions. A readout predicts an objective from a text alone, by a kernel machine instead of the decoder.
In an unknown space, one from which the checkpoint has learned no labels, its own predictions are called guesses.

Every objective:

- ``adaptable_labels`` refuses or warns of labels; ``repeated_labels`` averages those of equal texts.
- ``stray_labels`` (6 to 300 labels) finds labels far from what all others predict, such as failed measurements.
  ``adapt`` only warns of them, ``without_strays`` removes them.
- ``readout_fit`` fits the readout; its features are the encoder's states and counts of the text's operators.

An accuracy of texts that are networks, in known and unknown spaces alike:

- ``group_process``: a Gaussian process whose features are counts of the network's operators and the checkpoint's
  predictions of other accuracies. The scale of each group of features is fitted to the labels.
- ``boosted_trees``: similar features; trees fit steps that a process smooths. The prediction is the mean of both.
- ``graph_network_fit`` (10 labels or more): reads which operator feeds which. The prediction moves towards it by a
  share that minimises the error on held-out labels; the network is dropped if its share is below 0.25 after the first
  of three held-out parts, or 0 after any.

A cost, or any objective if the texts are no networks:

- ``averaged_process``: Gaussian processes on the checkpoint's predictions and on sizes and operators of the networks,
  averaged over the labels' noise, over their spread, and over what the new cost follows: one known objective, the
  multiply-accumulates (MACs), the activations, in an unknown space also the number of operators, or nothing. For an
  unknown space ``pool`` gives guesses a tenth of the variance, and sizes four times more.
- ``group_process``, if the texts are networks: counts, predictions that are no guesses, and the same sizes. The
  prediction is a weighted mean of both processes.
- ``nasrlm.model.row_sum`` (30 labels or more, and more labels than rows that vary independently): the sum of what the
  rows of a text cost; a row is an operator with its attributes and place. The prediction moves towards the sum by a
  share that left-out labels decide; the sum is dropped if its share is below 0.1.
- ``readout_fit``, in an unknown space: slopes along the logarithms of the MACs and activations; the kernel machine
  learns the residual.
- ``readout_fit.LeftOut``: scales intervals until 80 % of them contain a label that was left out of the fit.

``refine`` needs many labels of a known space, 20 of them in valid rows: it replaces costs that the decoder predicts by
row sums where these are closer to the labels.
"""
