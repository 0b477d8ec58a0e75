import { after, type TestContext } from "node:test";
import { createClient } from "../../src/client/create-client.ts";
import { createdToken } from "../../src/contract/people/token.ts";
import { routes } from "../../src/contract/routes/routes.ts";
import { type RunningService, startRunningService } from "../support/running-service.ts";
import { type GitHub, startGitHub } from "./support/github-double.ts";
import { prepareRunner, type Runner, type StepEnd } from "./support/runner.ts";
import { writeWorkspaceModel } from "./workspace-models.ts";

type StartOptions = Parameters<Runner["start"]>[1];

type GivenParts = Parameters<typeof startGitHub>[1] & {
  /** Of a service of the test's own. */
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

const used = new AsyncDisposableStack();
const file = { after: (work: () => unknown) => used.defer(async () => void (await work())) };
after(() => used.disposeAsync());
let shared: Promise<RunningService> | undefined;
let projects = 0;

/**
 * A step of a workflow with the stand-in for GitHub and the real service: a project of its own in
 * that of the file, where it names no environment.
 */
export async function prepareStep(
  t: TestContext,
  { environment, ...given }: GivenParts = {},
): Promise<PreparedStep> {
  const service =
    environment === undefined ? await makeProject() : await startRunningService(t, { environment });
  const gitHub = await startGitHub(t, given);
  const runner = await prepareRunner(t, { environment: gitHub.environment });
  await writeWorkspaceModel(runner.workspace, "a.onnx");
  const inputs = {
    "service-url": service.baseUrl,
    token: service.token,
    models: "a.onnx",
    targets: "cpu",
    recipe: "evaluation: { level: none }",
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

async function makeProject(): Promise<RunningService> {
  shared ??= startRunningService(file);
  const service = await shared;
  const project = `test-${++projects}`;
  await service.client.call("createProject", { params: { project } });
  const body = { name: project, scopes: ["admin" as const], project };
  const { token } = createdToken.parse(await service.client.call("createToken", { body }));
  const { baseUrl } = service;
  return { ...service, token, client: createClient({ routes, baseUrl, token }) };
}
