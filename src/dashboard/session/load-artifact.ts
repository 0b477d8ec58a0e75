import { toConnectionError } from "./service.ts";
import type { JobDetail } from "../../contract/jobs/job.ts";
import { artifactAddress } from "../shared/addresses.ts";

type Files = Pick<JobDetail, "id" | "artifacts">;

/** The content of a job's file of JSON; undefined where the job has none of the kind. */
export async function loadArtifact(
  { id, artifacts }: Files,
  kind: JobDetail["artifacts"][number]["kind"],
): Promise<unknown> {
  const file = artifacts.find((artifact) => artifact.kind === kind);
  if (file === undefined) return undefined;
  const answer = await fetch(artifactAddress(id, file.name)).catch(toConnectionError);
  if (!answer.ok) throw new Error(`${file.name} cannot be loaded: status ${answer.status}`);
  return answer.json();
}
