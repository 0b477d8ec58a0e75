import type { JobReport } from "../../contract/custom-resources/compression-job.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import type { ReconcileRun } from "../../controller-runtime/controller.ts";
import { requireNamespace } from "../../kubernetes/namespaces.ts";
import type { Stored } from "../../kubernetes/resources.ts";
import type { ClusterJob } from "../../records/jobs/cluster-records.ts";
import type { CompressionJobObject } from "../../resources/custom-resources.ts";
import { namespaceProject } from "../../resources/served-namespaces.ts";
import { limitMessage, resourceStatus, writeReport } from "./job-report.ts";
import { describeRefusedSpec } from "./records-from-resources.ts";
import type { SyncContext } from "./sync-context.ts";

type Resource = Stored<CompressionJobObject>;

/** Fails the resources with a job's id that cannot be it, and says so in each. */
export async function refuseResources(
  context: SyncContext,
  { resources, record }: { resources: readonly Resource[]; record: ClusterJob | undefined },
  run: ReconcileRun,
): Promise<void> {
  for (const resource of resources) {
    const message = refusal(context, resource, record);
    if (message !== undefined) await refuse(context, resource, limitMessage(message), run);
  }
}

function refusal(
  { namespaces }: SyncContext,
  resource: Resource,
  record: ClusterJob | undefined,
): string | undefined {
  const namespace = requireNamespace(resource);
  if (namespaceProject(namespaces, namespace) === undefined) {
    return `Namespace "${namespace}" has no project: create the resource in another namespace`;
  }
  if (record === undefined) return describeRefusedSpec(resource);
  if (record.resource.namespace === namespace) return undefined;
  return `The id "${record.job.id}" is that of another job: create the resource without its label`;
}

async function refuse(
  context: SyncContext,
  resource: Resource,
  message: string,
  run: ReconcileRun,
): Promise<void> {
  const { status, report } = resourceStatus(resource);
  if (report?.recorded === true) return;
  const code = "resource_invalid";
  const at = context.now().toISOString();
  const failure: JobReport = {
    transitions: [{ status: "Failed", at, reason: code, message }],
    error: { code, message },
  };
  const refusal = { ...(isTerminal(status) ? report : failure), recorded: true };
  await writeReport(context, resource, refusal, run);
}
