import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import {
  assignment,
  type UnnumberedEvent,
  workerEventsAnswer,
} from "../../../../src/contract/worker-protocol/messages.ts";

/** Does what the name of its job's model says, over the real protocol. */
const { MOS_SERVICE_URL, MOS_JOB_ID, MOS_JOB_TOKEN, MOS_WORK_DIR = "" } = process.env;
const url = `${MOS_SERVICE_URL}/worker/v1/jobs/${MOS_JOB_ID}`;
const headers = { authorization: `Bearer ${MOS_JOB_TOKEN}`, "content-type": "application/json" };

process.stdin.resume();
process.stdin.on("end", () => process.exit(70));

const { model, attempt } = assignment.parse(await (await fetch(url, { headers })).json());
let seq = 1;

async function sendEvents(...events: UnnumberedEvent[]): Promise<void> {
  const at = new Date().toISOString();
  const body = JSON.stringify({ events: events.map((event) => ({ ...event, seq: seq++, at })) });
  workerEventsAnswer.parse(
    await (await fetch(`${url}/events`, { method: "POST", headers, body })).json(),
  );
}

function line(text: string): UnnumberedEvent {
  return { type: "log", stream: "stdout", text };
}

async function complete(): Promise<void> {
  await sendEvents(
    { type: "status", status: "Optimizing" },
    { type: "result", outcome: "Completed" },
  );
  process.exit(0);
}

await sendEvents(
  { type: "status", status: "Sharding" },
  line(`attempt ${attempt} of process ${process.pid}`),
);
writeFileSync(`${MOS_WORK_DIR}/scratch`, Object.keys(process.env).toSorted().join(" "));
const behaviour = attempt > 1 && model.name === "restarts" ? "completes" : model.name;
switch (behaviour) {
  case "completes":
    await complete();
    break;
  case "logs-environment":
    await sendEvents(line(Object.keys(process.env).toSorted().join(" ")));
    await complete();
    break;
  case "fails":
    await sendEvents({
      type: "result",
      outcome: "Failed",
      error: { code: "model_invalid", message: "No model" },
    });
    process.exit(10);
    break;
  case "ignores-sigterm":
    process.on("SIGTERM", () => {});
    await sendEvents(line("waiting"));
    break;
  case "has-children": {
    const script =
      "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('ready')";
    const child = spawn(process.execPath, ["-e", script]);
    await new Promise((resolve) => child.stdout.once("data", resolve));
    await sendEvents(line(`child ${child.pid}`));
    break;
  }
  case "hangs":
    await sendEvents(line("waiting"));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    break;
  case "crashes":
    process.stderr.write("terminate called after throwing an instance of 'Ort::Exception'\n");
    process.abort();
    break;
  case "runs-out-of-memory":
    process.stderr.write("x\n".repeat(300));
    process.stderr.write("FATAL ERROR: Reached heap limit - JavaScript heap out of memory\n");
    process.abort();
    break;
  case "exits-early":
    process.exit(0);
    break;
  default:
    await sendEvents(line("waiting"));
}
