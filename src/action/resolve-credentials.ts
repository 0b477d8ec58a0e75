import { InputError } from "./input-error.ts";
import type { Inputs } from "./inputs.ts";
import type { WorkflowRun } from "./workflow-run.ts";

/** A token of the service, or the audience of the OIDC token that is exchanged for one. */
export type Credentials = { readonly token: string } | { readonly audience: string };

/**
 * The credentials of the step; undefined where GitHub gives the workflow none.
 * @throws InputError where the workflow's author could give some
 */
export function resolveCredentials(
  inputs: Pick<Inputs, "token" | "audience" | "service-url">,
  { untrusted }: Pick<WorkflowRun, "untrusted">,
  environment: NodeJS.ProcessEnv,
): Credentials | undefined {
  if (inputs.token !== undefined) return { token: inputs.token };
  if (environment["ACTIONS_ID_TOKEN_REQUEST_URL"]) {
    return { audience: inputs.audience ?? inputs["service-url"].replace(/\/v1$/, "") };
  }
  if (untrusted) return undefined;
  const found = 'Input "token" is missing, and the workflow has no OIDC token';
  const advice = "give the job `permissions: id-token: write`, or `token` a secret";
  throw new InputError([{ message: `${found}: ${advice}` }]);
}
