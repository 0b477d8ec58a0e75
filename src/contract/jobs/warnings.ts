/** Every code of a job's `telemetry.warnings`, and what it means. */
export const warningTable = {
  accuracy_below_floor:
    "An output differs from the original's by more than `recipe.evaluation.minCosine` allows, " +
    "on generated data.",
  baseline_not_recorded:
    "The job did not become a baseline as its batch's `revision` asks: the suite belongs to a " +
    "repository, and the batch comes from another one or was created as a resource of a cluster.",
  baseline_not_timed:
    "The baseline's own result could not be timed beside the job's, so `maxLatencyRegression` " +
    "compares figures that were measured at different times.",
  calibration_unused:
    "The recipe has a calibration, and the result has no weight in blocks that a product takes, " +
    "which rounding could be fitted for, no product in integers of what a normalization gives, " +
    "which could be smoothed, and no rounded weight beside a bias whose correction gives a higher SQNR.",
  calibrated_on_generated:
    "The rounding was fitted to generated samples: give some of the model's use as " +
    "`recipe.calibration.data`.",
  calibrated_on_one_sample:
    "The rounding was fitted to a single sample, which says little of others.",
  files_missing:
    "Files of the result are not stored: the job was recorded again from its resource and its " +
    "pod's log, after a restoration from a backup that is older than they are. Retry the job to get them.",
  goal_missed:
    "No result that the search found reaches the goals of `recipe.auto`; the nearest is kept. " +
    "`telemetry.search.missed` has how near it came: lower the goal, or allow more bytes.",
  inputs_fixed:
    "Inputs of the model with default values became constants, since they are weights that " +
    "changed, or say how such weights are taken: callers of the result cannot give them. Other " +
    "inputs keep their defaults.",
  latency_noisy:
    "The interval of the latency's ratio stayed wider than ±1.5 %: the machine was busy, or " +
    "`recipe.evaluation.latencyBudgetSeconds` was over before enough sessions were timed.",
  latency_not_timed:
    "Latency was not measured: the recipe gives it no time, the models do not fit into the " +
    "machine's or the GPU's memory beside each other, or the result is for a runtime that is not " +
    "the one here (`recipe.dialect`). " +
    "`telemetry.latency` is absent.",
  nodes_on_cpu:
    "Nodes of a model ran on the CPU though the target has another execution provider, since that " +
    "provider does not have their operators, or not for their types. Nodes that compute shapes are " +
    "not counted.",
  output_not_compared: "An output is not a tensor of numbers and was not compared.",
  output_not_exercised:
    "An output of the original hardly differs between the samples, such as that of a detector that " +
    "finds nothing. It was not compared: give `recipe.evaluation.data` that it responds to.",
  output_not_finite:
    "An output of the original has NaN or infinite elements. They are compared by whether the " +
    "result has the same; `telemetry.accuracy` is absent if there are no others.",
  output_shape_differs:
    "An output's shape differs from the original's in some samples, which count as zeros.",
  outputs_left_out:
    "The model has more outputs than telemetry reports; those with the lowest SQNR are reported.",
  patterns_unmatched:
    "Patterns of `recipe.exclude` or `recipe.overrides` match no name of a weight or of a node that takes one, so they " +
    "had no effect.",
  qdq_unfused:
    "The runtime of `recipe.dialect` would not make all QuantizeLinear and DequantizeLinear a part of " +
    "operators in integers: some cost time and accuracy for nothing. `telemetry.qdq` names their " +
    "nodes: put the weights that they take into `recipe.exclude`.",
  samples_left_out:
    "The evaluation data has more samples than `recipe.evaluation.samples`; the first are used.",
  text_not_tokenized:
    "The checkpoint's tokenizer is of a kind that is not known here, or does not know English words, so " +
    "the models were run on generated tokens, and perplexities are not known.",
  search_out_of_budget:
    "`recipe.auto.budgetSeconds` ended the search: the result is the best until then, and a longer " +
    "search may find a better one.",
} as const;

export type WarningCode = keyof typeof warningTable;
