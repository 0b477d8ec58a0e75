import { workerContainer, type WorkerEvent, workerEvent } from "../../contract/jobs/worker.ts";
import type { KubernetesClient } from "../../kubernetes/kubernetes-client.ts";
import { readPodLog } from "../../kubernetes/pod-log.ts";

/** A line of a worker's output: an event, or other text, for instance of a crash. */
type OutputLine = { readonly event: WorkerEvent } | { readonly text: string };

/** The output of a pod's worker until now. Its last event is the result. */
export async function* readWorkerLog(
  client: KubernetesClient,
  pod: string,
): AsyncGenerator<OutputLine> {
  const log = { pod, container: workerContainer };
  let hasResult = false;
  for await (const { text } of readPodLog(client, log, () => hasResult)) {
    const line = parseOutputLine(text);
    hasResult ||= "event" in line && line.event.type === "result";
    yield line;
  }
}

function parseOutputLine(text: string): OutputLine {
  try {
    return { event: workerEvent.parse(JSON.parse(text)) };
  } catch {
    return { text };
  }
}
