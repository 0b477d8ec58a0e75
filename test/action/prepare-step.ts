import path from "node:path";
import type { TestContext } from "node:test";
import { type RunningService, startRunningService } from "../support/running-service.ts";
import { type GitHub, startGitHub } from "./support/github-double.ts";
import { prepareRunner, type Runner, type StepEnd } from "./support/runner.ts";
import { writeWorkspaceModel } from "./workspace-models.ts";

const main = path.join(import.meta.dirname, "../../src/action/main.ts");

type StartOptions = Parameters<Runner["start"]>[1];

type GivenParts = Parameters<typeof startGitHub>[1] & {
  /** Of the service. */
  readonly environment?: Readonly<Record<string, string>>;
};

export interface PreparedStep {
  readonly service: RunningService;
  readonly gitHub: GitHub;
  readonly runner: Runner;
  /** Inputs that compress `a.onnx` of the workspace for `cpu`. */
  readonly inputs: Readonly<Record<string, string>>;
  readonly run: (
    inputs?: Readonly<Record<string, string>>,
    options?: StartOptions,
  ) => Promise<StepEnd>;
}

/** A step of a workflow with the action from its sources, the real service and the stand-in for GitHub. */
export async function prepareStep(
  t: TestContext,
  { environment = {}, ...given }: GivenParts = {},
): Promise<PreparedStep> {
  const service = await startRunningService(t, { environment });
  const gitHub = await startGitHub(t, given);
  const runner = await prepareRunner(t, { program: main, environment: gitHub.environment });
  await writeWorkspaceModel(runner.workspace, "a.onnx");
  const inputs = {
    "service-url": service.baseUrl,
    token: service.token,
    models: "a.onnx",
    targets: "cpu",
    recipe: "evaluation: { latencyBudgetSeconds: 0 }",
    "github-token": gitHub.token,
  };
  return {
    service,
    gitHub,
    runner,
    inputs,
    async run(more = {}, options = {}) {
      const step = await runner.start({ ...inputs, ...more }, options);
      return step.ended;
    },
  };
}
