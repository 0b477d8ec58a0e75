import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { collectGarbage } from "./collect-garbage.ts";
import { readPeakOfProcess } from "./read-peak-memory-bytes.ts";
import { sessionReply, type SessionReply, type SessionRequest } from "./session-protocol.ts";
import { ServiceError } from "../../contract/errors.ts";

/** Characters at the end of a process's error output that the message of a crash has. */
const maxErrorOutputLength = 4000;

const sessionProcessPath = fileURLToPath(new URL("session-process.ts", import.meta.url));

/** Those that run now. */
const running = new Set<ChildProcess>();
/** Most memory of this process and those with the runtime, whenever one of these ended. */
let peakBytes = 0;

/** Most resident memory of this process and its processes with ONNX Runtime together, on Linux. */
export function peakWithRuntime(): number {
  return peakBytes;
}

async function notePeak(): Promise<void> {
  if (process.platform !== "linux") return;
  const pids = [...running].flatMap(({ pid }) => pid ?? []);
  // One that crashed is not there any more.
  const peaks = await Promise.all(pids.map(async (pid) => readPeakOfProcess(pid).catch(() => 0)));
  const bytes = peaks.reduce((sum, peak) => sum + peak, process.memoryUsage.rss());
  peakBytes = Math.max(peakBytes, bytes);
}

/**
 * A process with ONNX Runtime in it. Requests are sent one after the other. Errors are plain ones
 * with the runtime's message.
 */
export class RuntimeProcess implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #signal: AbortSignal;
  readonly #exit: Promise<unknown>;
  #errorOutput = "";

  constructor(signal: AbortSignal) {
    signal.throwIfAborted();
    // The peak is that of both processes together.
    collectGarbage();
    this.#signal = signal;
    this.#process = fork(sessionProcessPath, [], {
      serialization: "advanced",
      stdio: ["pipe", "ignore", "pipe", "ipc"],
      execArgv: ["--no-warnings"],
    });
    this.#exit = once(this.#process, "exit");
    running.add(this.#process);
    this.#process.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errorOutput = (this.#errorOutput + text).slice(-maxErrorOutputLength);
    });
  }

  async request<Kind extends SessionReply["is"]>(
    request: SessionRequest,
    kind: Kind,
  ): Promise<Extract<SessionReply, { is: Kind }>> {
    const reply = await this.#send(request);
    if (reply.is === "error") throw new Error(reply.message);
    if (!isReply(reply, kind)) {
      throw new Error(`Session process answered "${reply.is}" where "${kind}" was asked for`);
    }
    return reply;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await notePeak();
    running.delete(this.#process);
    this.#process.kill("SIGKILL");
    await this.#exit;
  }

  async #send(request: SessionRequest): Promise<SessionReply> {
    const { promise, resolve, reject } = Promise.withResolvers<SessionReply>();
    const onMessage = (message: unknown) => resolve(sessionReply.parse(message));
    const onClose = (code: number | null, signal: string | null) =>
      reject(this.#crashError(code, signal));
    const onAbort = () => {
      this.#process.kill("SIGKILL");
      reject(this.#signal.reason);
    };
    this.#signal.throwIfAborted();
    this.#signal.addEventListener("abort", onAbort, { once: true });
    this.#process.once("message", onMessage).once("close", onClose).once("error", reject);
    try {
      if (this.#process.connected) {
        this.#process.send(request, (error) => error && this.#process.kill("SIGKILL"));
      } else if (this.#process.exitCode !== null || this.#process.signalCode !== null) {
        onClose(this.#process.exitCode, this.#process.signalCode);
      }
      return await promise;
    } finally {
      this.#signal.removeEventListener("abort", onAbort);
      this.#process.off("message", onMessage).off("close", onClose).off("error", reject);
    }
  }

  #crashError(code: number | null, signal: string | null): Error {
    const errorOutput = this.#errorOutput.trim();
    const end = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
    const cause = signal === "SIGKILL" ? ", most likely because the machine ran out of memory" : "";
    return new RuntimeCrashError(
      `The runtime's process ${end}${cause}${errorOutput === "" ? "" : `: ${errorOutput}`}`,
    );
  }
}

function isReply<Kind extends SessionReply["is"]>(
  reply: SessionReply,
  kind: Kind,
): reply is Extract<SessionReply, { is: Kind }> {
  return reply.is === kind;
}

/** The runtime's process ended before it was asked to; no fault of what was sent to it. */
export class RuntimeCrashError extends ServiceError {
  constructor(message: string) {
    super("evaluation_failed", message);
  }
}
