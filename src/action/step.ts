import type { Writable } from "node:stream";
import type { Dispatcher } from "undici";
import type { CheckRunReporter } from "./check-run-reporter.ts";
import type { GitHub } from "./connect-github.ts";
import type { Inputs } from "./inputs.ts";
import type { StepIdentity, WorkflowContext, WorkflowRun } from "./workflow-run.ts";

/** What the runner and `main` pass to each phase of the step. */
export interface StepProcess {
  readonly environment: NodeJS.ProcessEnv;
  readonly context: WorkflowContext;
  /** The step's log. */
  readonly output: Writable;
  /** Aborted when the runner cancels the step. */
  readonly signal: AbortSignal;
  readonly dispatcher: Dispatcher;
}

/** A step that knows where it reports. */
export interface ReportingStep extends StepProcess {
  readonly run: WorkflowRun;
  readonly identity: StepIdentity;
  /** Undefined without the input `github-token`, as is the reporter. */
  readonly github: GitHub | undefined;
  readonly reporter: CheckRunReporter | undefined;
}

export interface Step extends ReportingStep {
  readonly inputs: Inputs;
}
