interface ActionInput {
  readonly description: string;
  readonly required?: true;
  /** What holds where the workflow gives nothing; an expression is evaluated by the runner. */
  readonly default?: string;
}

/** Every input of the GitHub Action. */
export const actionInputs = {
  "service-url": {
    description: "Address of the service, such as `https://mos.example.com`.",
    required: true,
  },
  token: {
    description: "Access token of the service with the scopes `jobs:read`, `jobs:write` and `models:write`.",
    required: true,
  },
  models: {
    description:
      "Models to compress, one a line: a glob of ONNX files in the workspace, which are uploaded, or a source that the service reads itself (`https://…`, `file:///…`, `upload:sha256:…`). `name=` before it names the model; a file is named after its path otherwise. A line that starts with `!` takes files out again.",
    required: true,
  },
  targets: {
    description: "Names of the targets to compress each model for, separated by commas or line breaks.",
    required: true,
  },
  recipe: {
    description: "Fields of a recipe as YAML, laid over each target's own; `preset` names one of the target's presets.",
  },
  gates: {
    description: "Limits on what is measured for each job as YAML, such as `maxSizeRatio: 0.5`.",
  },
  suite: {
    description: "Name under which results of the same models are compared over time.",
  },
  timeout: {
    description: "Minutes after which the batch is cancelled.",
    default: "330",
  },
  "dry-run": {
    description: "`true` only plans: tells the sizes that the results would have, without compressing anything.",
    default: "false",
  },
  download: {
    description: "`true` downloads the artifacts of all completed jobs.",
    default: "false",
  },
} as const satisfies Record<string, ActionInput>;

export type ActionInputName = keyof typeof actionInputs;

/** Every output of the GitHub Action, with what it holds. */
export const actionOutputs = {
  "batch-id": "Identifier of the batch.",
  "batch-url": "Address of the batch at the service.",
  conclusion: "`success`, `failure`, `neutral`, `cancelled` or `timed_out`.",
  jobs: "Number of jobs.",
  completed: "Number of jobs that are Completed.",
  failed: "Number of jobs that are Failed.",
  "gates-failed": "Number of jobs with a gate that failed.",
  "report-json": "Path of the report as JSON.",
  "report-markdown": "Path of the report as Markdown.",
  artifacts:
    "Path of the folder with the downloaded artifacts, `<model>-<target>/` for each job, where `download` is `true`.",
} as const;

export type ActionOutputName = keyof typeof actionOutputs;
