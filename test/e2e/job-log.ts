import { printedLines } from "../executors/cluster/printed-lines.ts";
import type { Installation } from "./installation.ts";

/** Lines of a job's log as `curl` shows them, piece by piece while the job runs. */
export async function* streamLog(
  { baseUrl, token }: Installation,
  jobId: string,
): AsyncGenerator<string> {
  const url = `${baseUrl}/jobs/${jobId}/logs`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  if (!answer.ok || answer.body === null)
    throw new Error(`${url} answers ${answer.status}: ${await answer.text()}`);
  yield* answer.body.pipeThrough(new TextDecoderStream());
}

/** The whole log of a job that has ended. */
export async function readFullLog(installation: Installation, jobId: string): Promise<string> {
  return (await Array.fromAsync(streamLog(installation, jobId))).join("");
}

/** What the worker in a pod printed for the log, read from the node. */
export async function printedLog({ kubectl }: Installation, pod: string): Promise<string> {
  const output = (await kubectl(["logs", pod])).trimEnd().split("\n");
  return printedLines(output)
    .map((text) => `${text}\n`)
    .join("");
}
