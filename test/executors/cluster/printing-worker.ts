import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { TerminationMessage } from "../../../src/contract/worker-protocol/messages.ts";
import { workerExit } from "../../../src/contract/worker-protocol/exit-codes.ts";
import { EventSender } from "../../../src/worker/reporter.ts";
import { findTerminationLog } from "../../../src/worker/job-end.ts";
import { createServiceConnection } from "../../../src/worker/service-connection.ts";
import { readWorkerSettings } from "../../../src/worker/worker-settings.ts";
import { killedExitCode, type StartProgram } from "./pod-program.ts";

const linesPerPart = 20;
const minute = 60_000;
const outages = { start: Infinity, events: Infinity, files: Infinity, token: minute };

type Place = Parameters<StartProgram>[0];

/**
 * Stands in for a pod's worker where what is tested is how its lines are recorded: it reports and
 * prints them as a worker does, in this process and without a model. The first worker of a job works
 * until it is stopped.
 */
export const startPrintingWorker: StartProgram = (place) => {
  const [stop, death] = [new AbortController(), new AbortController()];
  const killed = once(death.signal, "abort").then(() => killedExitCode);
  return {
    kill: (signal) => (signal === "SIGTERM" ? stop : death).abort(),
    closed: Promise.race([killed, work(place, stop.signal, death.signal)]),
  };
};

async function work(place: Place, stop: AbortSignal, death: AbortSignal): Promise<number> {
  const settings = readWorkerSettings(place.environment);
  if (!("MOS_JOB_TOKEN_FILE" in settings)) throw new Error("This worker is one of pods");
  const token = () => readFileSync(settings.MOS_JOB_TOKEN_FILE, "utf8").trim();
  const { MOS_SERVICE_URL: url, MOS_JOB_ID: jobId } = settings;
  const connection = createServiceConnection({ url, jobId, token, timeouts: outages });
  const { attempt } = await connection.findAssignment(death);
  let lastSeq = 0;
  const sender = new EventSender({
    connection,
    now: () => new Date(),
    record(json) {
      lastSeq++;
      place.print(json);
    },
    onCancelled: () => {},
    onFailure: () => {},
  });
  death.addEventListener("abort", () => sender.close());
  sender.add({ type: "status", status: "Sharding" });
  reportLines(sender, `begin of attempt ${attempt}`);
  if (attempt === 1 && !stop.aborted) await once(stop, "abort");
  reportLines(sender, `end of attempt ${attempt}`);
  const outcome = stop.aborted ? "Cancelled" : "Completed";
  if (outcome === "Completed") sender.add({ type: "status", status: "Optimizing" });
  sender.add({ type: "result", outcome });
  await sender.flush(stop.aborted ? settings.MOS_STOP_SECONDS * 1000 : minute);
  sender.close();
  if (death.aborted) return killedExitCode;
  const message: TerminationMessage = { outcome, lastSeq };
  writeFileSync(findTerminationLog(place.environment) ?? "", JSON.stringify(message));
  return workerExit[outcome === "Cancelled" ? "cancelled" : "completed"];
}

function reportLines(sender: EventSender, part: string): void {
  for (let line = 1; line <= linesPerPart; line++) {
    sender.add({ type: "log", stream: "stdout", text: `Line ${line} of the ${part}` });
  }
}
