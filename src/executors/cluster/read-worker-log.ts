import { workerContainer, type WorkerEvent, workerEvent } from "../../contract/worker.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { readPodLog } from "../../kubernetes/pod-log.ts";

/** What a line of a worker's output is: an event, or text of a process that did not end as it should. */
export type OutputLine = { readonly event: WorkerEvent } | { readonly text: string };

/** The output of a pod's worker until now. */
export async function* readWorkerLog(
  client: KubernetesClient,
  pod: string,
  signal?: AbortSignal,
): AsyncGenerator<OutputLine> {
  for await (const { text } of readPodLog(
    client,
    { pod, container: workerContainer },
    { ...(signal && { signal }) },
  )) {
    yield parseOutputLine(text);
  }
}

function parseOutputLine(text: string): OutputLine {
  try {
    return { event: workerEvent.parse(JSON.parse(text)) };
  } catch {
    return { text };
  }
}
