/** Every code of a job's `telemetry.warnings`, and what it means. */
export const warningTable = {
  accuracy_below_floor:
    "An output differs from the original's by more than `recipe.evaluation.minCosine` allows, " +
    "on generated data.",
  latency_noisy:
    "The interval of the latency's ratio stayed wider than ±1.5 %: the machine was busy, or " +
    "`recipe.evaluation.latencyBudgetSeconds` was over before enough sessions were timed.",
  latency_not_timed: "`recipe.evaluation.latencyBudgetSeconds` is 0, so no latency was measured.",
  output_not_compared: "An output is no tensor of numbers and was not compared.",
  output_shape_differs:
    "An output's shape differs from the original's in some samples, which count as zeros.",
  outputs_left_out:
    "The model has more outputs than telemetry reports; those with the lowest SQNR are reported.",
} as const;

export type WarningCode = keyof typeof warningTable;
