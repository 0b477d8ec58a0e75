import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect, type NetConnectOpts } from "node:net";
import { networkInterfaces } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { Agent, request } from "undici";
import {
  assignment,
  type UnnumberedEvent,
} from "../../../../src/contract/worker-protocol/messages.ts";

/** Tries everything that a worker must not be able to do, logs what it did, and crashes. */
const { MOS_SERVICE_URL, MOS_JOB_ID = "", MOS_JOB_TOKEN, MOS_STORAGE_DIR = "" } = process.env;
const { MOS_WORK_DIR = "", MOS_SERVICE_SOCKET = "" } = process.env;
const dispatcher = new Agent({ connect: { socketPath: MOS_SERVICE_SOCKET } });
/** The service's key, which lies beside its data folder. */
const secretFile = `${dirname(dirname(MOS_WORK_DIR))}.key`;
const ownPath = `/worker/v1/jobs/${MOS_JOB_ID}`;
const base = `${MOS_SERVICE_URL}/worker/v1/jobs`;
const headers = { authorization: `Bearer ${MOS_JOB_TOKEN}`, "content-type": "application/json" };
const ownUrl = `${base}/${MOS_JOB_ID}`;
const answer = await (await request(ownUrl, { headers, dispatcher })).body.json();
const { model } = assignment.parse(answer);
const [servicePid = "", foreign = "", otherJob = "", port = "", ...hostAddress] =
  model.name.split(".");
const data = dirname(dirname(MOS_WORK_DIR));
const own = model.source.slice("upload:sha256:".length);
const blob = (root: string, sha256: string) => join(root, "blobs", sha256.slice(0, 2), sha256);

const lines: string[] = [];
async function attempt(what: string, act: () => unknown): Promise<void> {
  try {
    lines.push(`did ${what} ${String(await act())}`);
  } catch {
    lines.push(`could not ${what}`);
  }
}

const readSecret = () => {
  const secret = readFileSync(secretFile, "utf8");
  if (secret === "") throw new Error("It is empty");
  return secret;
};
const usual = new Set(["fd", "full", "null", "random", "urandom", "zero"]);
const listDevices = () => {
  const devices = readdirSync("/dev").filter((name) => !usual.has(name));
  if (devices.length === 0) throw new Error("There are none");
  return devices.join(" ");
};
const useDevices = () => {
  writeFileSync("/dev/null", "x");
  return `${readFileSync("/dev/null").length} of /dev/null`;
};
const refused = async (
  url: string,
  init: { method?: "POST" | "PUT" | "DELETE"; body?: string } = {},
) => {
  const answer = await request(url, { headers, dispatcher, ...init });
  if (answer.statusCode >= 300) throw new Error(String(answer.statusCode));
  return answer.body.text();
};
/** Unlike other clients it sends the path as it is. */
const askForPath = async (path: string) => {
  const asked = httpRequest({ socketPath: MOS_SERVICE_SOCKET, path, headers }).end();
  const [answer] = await once(asked, "response");
  const body = await text(answer);
  if (answer.statusCode >= 300) throw new Error(body);
  return body;
};
const reach = async (to: NetConnectOpts) => {
  const socket = connect({ timeout: 3_000, ...to });
  try {
    await Promise.race([
      once(socket, "connect"),
      once(socket, "timeout").then(() => Promise.reject(new Error("Nothing answers"))),
    ]);
  } finally {
    socket.destroy();
  }
  return "it";
};
const seeInterfaces = () => {
  const names = Object.keys(networkInterfaces());
  if (names.length === 0) throw new Error("There are none");
  return names.join(" ");
};
const run = (command: string, ...args: string[]) =>
  execFileSync(command, args, { stdio: "pipe" }).toString();
const kill = (pid: string) => process.kill(Number(pid), "SIGKILL");

await attempt("read", () => readFileSync(blob(MOS_STORAGE_DIR, own), "utf8"));
await attempt("read", () => readFileSync(join(data, "models/allowed.onnx"), "utf8"));
await attempt("read", useDevices);
await attempt("read the service's key", readSecret);
await attempt("see the machine's devices", listDevices);
await attempt("read the records", () => readFileSync(join(data, "records.db")));
await attempt("read a foreign blob", () => readFileSync(blob(join(data, "storage"), foreign)));
await attempt("list the blobs", () => readdirSync(join(data, "storage")));
await attempt("change its model", () => writeFileSync(blob(MOS_STORAGE_DIR, own), "changed"));
await attempt("make its model writable", () => run("chmod", "777", blob(MOS_STORAGE_DIR, own)));
await attempt("change an allowed model", () => {
  writeFileSync(join(data, "models/allowed.onnx"), "changed");
});
await attempt("write the service's code", () => writeFileSync(`${import.meta.filename}.new`, ""));
await attempt("kill the service", () => kill(servicePid));
await attempt("see the service's memory", () => readFileSync(`/proc/${servicePid}/environ`));
await attempt("unhide the data", () => run("umount", data));
await attempt("unhide the data as root", () => run("unshare", "-Urm", "umount", data));
await attempt("read another job's files", () => readFileSync(join(data, "work", otherJob, "file")));
await attempt("read the machine's users", () => readFileSync("/etc/passwd"));
await attempt("read the machine's temporary files", () => readFileSync(`${data}.open`));
await attempt("reach a port of the machine", () => reach({ host: "127.0.0.1", port: +port }));
await attempt("reach it by IPv6", () => reach({ host: "::1", port: +port }));
await attempt("reach the machine's address", () =>
  reach({ host: hostAddress.join("."), port: +port }),
);
await attempt("reach the cloud's metadata", () => reach({ host: "169.254.169.254", port: 80 }));
await attempt("reach a socket of the machine", () => reach({ path: `${data}.sock` }));
await attempt("reach an abstract socket", () => reach({ path: `\0hostile-${servicePid}` }));
await attempt("see the network", seeInterfaces);
await attempt("ask for other routes", () => refused("http://service/healthz"));
await attempt("ask for other routes by a path", () => askForPath(`${ownPath}/../../../../healthz`));
await attempt("learn where its sources are", () =>
  refused(`${ownUrl}/sources`, { method: "POST", body: JSON.stringify(model) }),
);
await attempt("read another job", () => refused(`${base}/${otherJob}`));
await attempt("end another job", () =>
  refused(`${base}/${otherJob}/events`, { method: "POST", body: '{"events":[]}' }),
);
for (let i = 0; i < 50; i++) {
  spawn("/bin/sh", ["-c", "f() { f | f & }; f; sleep 600"], { detached: true, stdio: "ignore" })
    .on("error", () => {})
    .unref();
}

const at = new Date().toISOString();
const events: readonly UnnumberedEvent[] = [
  { type: "status", status: "Sharding" },
  ...lines.map((text) => ({ type: "log", stream: "stdout", text }) as const),
];
const body = JSON.stringify({ events: events.map((event, i) => ({ ...event, seq: i + 1, at })) });
await request(`${ownUrl}/events`, { method: "POST", headers, body, dispatcher });
process.abort();
