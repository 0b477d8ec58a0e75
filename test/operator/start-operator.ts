import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { inheritedEnvironment } from "../support/inherited-environment.ts";
import { failWaits } from "../support/until.ts";

export interface OperatorOptions {
  readonly kubeconfig: string;
  readonly namespace: string;
  /** The operator itself by default. */
  readonly command?: readonly string[];
  /** Of the settings, those that a test wants otherwise. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface OperatorProcess extends AsyncDisposable {
  /** Everything logged so far. */
  readonly log: readonly string[];
  /** Resolves when a line with this text is logged, or has been. */
  logged(text: string): Promise<string>;
  /** The exit code, or the signal. */
  readonly ended: Promise<number | string | null>;
  /** Ends the process and resolves with its exit code, or the signal. */
  end(signal: "SIGTERM" | "SIGKILL"): Promise<number | string | null>;
}

interface StartedOperator {
  readonly namespace: string;
  readonly log: readonly string[];
}

/** Operators of this process that have not ended. */
const running = new Set<StartedOperator>();

/**
 * Ends waits with the operator's output when it has led and ended by itself, such as without its
 * Lease, and no other is left in its namespace.
 */
function failWaitsUnlessReplaced(
  { namespace, log }: StartedOperator,
  status: number | string | null,
): void {
  const isReplaced = Array.from(running).some((other) => other.namespace === namespace);
  if (isReplaced || !log.some((line) => line.includes(greeting))) return;
  failWaits(new Error(`The operator ended by itself with ${status}:\n${log.join("\n")}`));
}

/** Logged when it leads. */
const greeting = "Leading";
const main = fileURLToPath(new URL("../../operator/main.ts", import.meta.url));

/** The operator as a process of its own. */
export function spawnOperator({
  kubeconfig,
  namespace,
  command = [],
  environment = {},
}: OperatorOptions): OperatorProcess {
  const child = spawn(process.execPath, [main, ...command], {
    stdio: ["ignore", "inherit", "pipe"],
    env: {
      ...inheritedEnvironment(),
      KUBECONFIG: kubeconfig,
      MOS_NAMESPACE: namespace,
      MOS_SERVICE_URL: "http://model-optimization:8080",
      MOS_WORKER_IMAGE: "example.com/worker:1",
      MOS_WORKER_SERVICE_ACCOUNT: "default",
      MOS_HOST: "127.0.0.1",
      MOS_HEALTH_PORT: "0",
      ...environment,
    },
  });
  const { promise: exited, resolve } = Promise.withResolvers<number | string | null>();
  child.once("close", (code, signal) => resolve(code ?? signal));
  const log: string[] = [];
  const lines = createInterface(child.stderr);
  lines.on("line", (line) => log.push(line));
  const started = { namespace, log };
  running.add(started);
  let isEnding = false;
  void exited.then((status) => {
    running.delete(started);
    if (!isEnding) failWaitsUnlessReplaced(started, status);
  });
  const end = async (signal: "SIGTERM" | "SIGKILL") => {
    isEnding = true;
    child.kill(signal);
    return exited;
  };
  return {
    log,
    ended: exited,
    end,
    [Symbol.asyncDispose]: async () => void (await end("SIGKILL")),
    async logged(text) {
      for (;;) {
        const found = log.find((line) => line.includes(text));
        if (found !== undefined) return found;
        const ended = await Promise.race([once(lines, "line").then(() => undefined), exited]);
        if (ended === undefined) continue;
        throw new Error(
          `The operator ended with ${ended} before it logged "${text}":\n${log.join("\n")}`,
        );
      }
    },
  };
}

/** The operator, as soon as it works. */
export async function startOperator(options: OperatorOptions): Promise<OperatorProcess> {
  const operator = spawnOperator(options);
  await operator.logged(greeting);
  return operator;
}
