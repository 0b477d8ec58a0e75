import type { Writable } from "node:stream";
import type { Dispatcher } from "undici";
import type { GitHub } from "./connect-github.ts";
import type { Inputs } from "./read-inputs.ts";
import type { Reporter } from "./reporter.ts";
import type { StepIdentity } from "./step-identity.ts";
import type { WorkflowRun } from "./workflow-run.ts";

/** What the process has from the runner. */
export interface Surroundings {
  readonly environment: NodeJS.ProcessEnv;
  /** The step's log. */
  readonly output: Writable;
  /** Aborted when the runner asks the step to end. */
  readonly signal: AbortSignal;
  readonly dispatcher: Dispatcher;
}

/** All that the parts of a step need to know. */
export interface Step extends Surroundings {
  readonly inputs: Inputs;
  readonly run: WorkflowRun;
  readonly identity: StepIdentity;
  /** Absent where there is no token for it, as is the reporter. */
  readonly github: GitHub | undefined;
  readonly reporter: Reporter | undefined;
}
