import type { Writable } from "node:stream";
import type { Dispatcher } from "undici";
import type { GitHub } from "./connect-github.ts";
import type { Inputs } from "./read-inputs.ts";
import type { CheckRunReporter } from "./check-run-reporter.ts";
import type { StepIdentity } from "./step-identity.ts";
import type { WorkflowRun } from "./workflow-run.ts";

/** What the process has from the runner. */
export interface RunnerContext {
  readonly environment: NodeJS.ProcessEnv;
  /** The step's log. */
  readonly output: Writable;
  /** Aborted when the runner asks the step to end. */
  readonly signal: AbortSignal;
  readonly dispatcher: Dispatcher;
}

/** All that the parts of a step need to know. */
export interface Step extends RunnerContext {
  readonly inputs: Inputs;
  readonly run: WorkflowRun;
  readonly identity: StepIdentity;
  /** Absent where there is no token for it, as is the reporter. */
  readonly github: GitHub | undefined;
  readonly reporter: CheckRunReporter | undefined;
}
