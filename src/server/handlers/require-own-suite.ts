import type { Caller } from "../../auth/authenticate.ts";
import { requirePermission } from "../../contract/people/may.ts";
import type { BatchRequest } from "../../contract/batches/batch.ts";
import { validationError } from "../http/field-errors.ts";
import type { ServerContext } from "../http/server-context.ts";

/**
 * Requires that the caller may record a batch's results as baselines of its suite. A workflow
 * records them only for its own branch and commit.
 * @throws ServiceError missing_scope, validation_failed
 */
export async function requireOwnSuite(
  { records }: ServerContext,
  caller: Caller,
  { suite = "", revision }: Pick<BatchRequest, "suite" | "revision">,
): Promise<void> {
  requirePermission(caller, "recordBaselines");
  const owner = await records.baselines.findOwner(caller.project, suite);
  if (owner !== undefined) {
    const message = "Belongs to another repository, whose workflow recorded it first";
    const notFound = () => validationError([{ pointer: "/suite", message }]);
    requirePermission(caller, "recordBaselines", { owner, notFound });
  }
  const { workflow } = caller;
  if (workflow === null || revision === undefined) return;
  const isOwn =
    revision.sha === workflow.commit && `refs/heads/${revision.branch}` === workflow.ref;
  if (isOwn) return;
  const own = `commit ${workflow.commit} of ${workflow.ref}`;
  const message = `Must be what the workflow runs for to record baselines: ${own}`;
  throw validationError([{ pointer: "/revision", message }]);
}
