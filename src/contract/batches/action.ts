import { describeChoices } from "../text/describe-choices.ts";
import { jobKindTable } from "../jobs/status.ts";

export interface ActionInput {
  readonly description: string;
  readonly required?: true;
  /** The value where the workflow sets none; the runner evaluates an expression. */
  readonly default?: string;
}

/** What can make the step fail. */
export const failOnTable = {
  gates: "a job failed, or a gate",
  warnings: "as `gates`, or a gate warns, such as one without a baseline to compare with",
  jobs: "a job failed",
  nothing: "never because of a job's result",
} as const;
export type FailOn = keyof typeof failOnTable;

/** Which jobs get check runs of their own. */
export const jobChecksTable = {
  auto: "all of at most 12 jobs, the failed ones of more",
  all: "all jobs",
  failed: "jobs that failed or failed a gate",
  none: "none",
} as const;
export type JobChecks = keyof typeof jobChecksTable;

/** Every input of the GitHub Action. */
export const actionInputs = {
  "service-url": {
    description: "Address of the service, such as `https://mos.example.com`.",
    required: true,
  },
  token: {
    description:
      "Access token of the service with the scopes `jobs:read`, `jobs:write` and " +
      "`models:write`. Without it the workflow's OIDC token is exchanged for one, which needs " +
      "`permissions: id-token: write` and a trust policy at the service.",
  },
  audience: {
    description:
      "Audience of the OIDC token, as the service's trust policy demands it; `service-url` by " +
      "default.",
  },
  "batch-file": {
    description:
      "YAML or JSON file in the repository with a batch: the fields of `POST /batches`, in " +
      "which a model may also be a glob of files. Inputs are laid over its fields.",
  },
  models: {
    description:
      "Models to compress, one a line: a glob of ONNX files in the workspace, which are " +
      "uploaded, or a source that the service reads itself (`https://…`, `s3://…`, `gs://…`, " +
      "`hf://…`, `file:///…`, `upload:sha256:…`). `NAME=` before it names the model; a file is " +
      "named after its path otherwise. A line that starts with `!` takes files out again.",
  },
  targets: {
    description:
      "Names of the targets to compress each model for, separated by commas or line breaks.",
  },
  kind: {
    description:
      "Kind of the jobs; by default the batch file's, else `compress`. " +
      `${describeChoices(jobKindTable)}`,
  },
  recipe: {
    description:
      "Fields of a recipe as YAML, laid over each target's own; `preset` names one of the " +
      "target's presets.",
  },
  gates: {
    description: "Limits on what is measured for each job as YAML, such as `maxSizeRatio: 0.5`.",
  },
  suite: {
    description:
      "Name under which results of the same models are compared over time; by default that of " +
      "the repository and of the check.",
  },
  baseline: {
    description:
      "Branch whose results are compared with, `none` for no comparison. By default the base " +
      "branch of a pull request, the branch itself for pushes to the default branch and to " +
      "protected ones, and the default branch for all others. Results of the default branch " +
      "and of protected branches are recorded where the token has the scope `baselines:write`.",
  },
  "fail-on": {
    description: `When the step and its check fail. ${describeChoices(failOnTable)}`,
    default: "gates",
  },
  wait: {
    description:
      "`false` ends the step as soon as the batch is submitted. The service then writes the " +
      "check runs itself, which needs its GitHub App in the repository.",
    default: "true",
  },
  timeout: {
    description:
      "Time after which the batch is cancelled: minutes, or with a unit, such as `90s` or `2h`.",
    default: "330",
  },
  "check-name": {
    description:
      "Name of the check run of the whole batch, for branch protection to require. By default " +
      "`Model compression`, with the values of the job's matrix after it. A dry run's is " +
      "`NAME (dry run)`. Several steps that run for one commit need a name each: by it the comment " +
      "and the suite are found, too.",
  },
  "job-checks": {
    description:
      "Which jobs get check runs of their own, at most 100 of them. " +
      `${describeChoices(jobChecksTable)}`,
    default: "auto",
  },
  comment: {
    description:
      "`true` keeps a comment with the results on the pull request, which needs " +
      "`pull-requests: write`.",
    default: "false",
  },
  "dry-run": {
    description:
      "`true` only plans: reports the sizes that the results would have, without compressing " +
      "anything.",
    default: "false",
  },
  download: {
    description: "`true` downloads the artifacts of all completed jobs.",
    default: "false",
  },
  "github-token": {
    description:
      "Token for check runs (`checks: write`) and comments; without these permissions the " +
      "results are in the job's summary only. A personal access token writes no check runs.",
    default: "${{ github.token }}",
  },
  matrix: {
    description: "Do not set it: it distinguishes the jobs of a matrix.",
    default: "${{ toJson(matrix) }}",
  },
} as const satisfies Record<string, ActionInput>;

export type ActionInputName = keyof typeof actionInputs;

/** Every output of the GitHub Action, and its description. */
export const actionOutputs = {
  "batch-id":
    "Identifier of the batch; several, separated by spaces, where a repeated run had only " +
    "some jobs left, and none where all had passed in an earlier run.",
  "batch-url": "Address of the batch's page at the service; the workflow run's without a batch.",
  conclusion:
    "`success`, `failure`, `neutral`, `cancelled` or `timed_out`; `pending` where `wait` is " +
    "`false`.",
  jobs: "Number of jobs.",
  completed: "Number of jobs that are Completed.",
  failed: "Number of jobs that are Failed.",
  "gates-failed": "Number of jobs with a gate that failed.",
  "report-json": "Path of the report as JSON.",
  "report-markdown": "Path of the report as Markdown.",
  artifacts:
    "Path of the folder with the downloaded artifacts, `<model>-<target>/` for each job, " +
    "and `-2` after it where another job has that name, where `download` is `true`.",
} as const;

export type ActionOutputName = keyof typeof actionOutputs;
