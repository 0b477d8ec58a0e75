import { flushCompileCache } from "node:module";
import { Worker } from "node:worker_threads";
import type { SessionRequest } from "./session-protocol.ts";
import { freeArrays, handleSessionRequest } from "./session-requests.ts";
import { errorMessage } from "../../log/error-message.ts";

// ONNX Runtime's binding takes a Float16Array for empty; without the class, it takes the bits.
Reflect.deleteProperty(globalThis, "Float16Array");

/** Ends the process at the end of its standard input, a pipe that the parent never writes to. */
const exitWithParent = `
  require("node:fs")
    .createReadStream("", { fd: 0 })
    .on("close", () => process.kill(process.pid, "SIGKILL"))
    .resume();
`;
// A run blocks this thread, so another one waits. It starts in half the time without a file.
new Worker(exitWithParent, { eval: true }).unref();

// The process ends by a signal, after which Node keeps nothing of what it has compiled.
flushCompileCache();

// What the parent sends is not parsed: to load what parses takes longer than all else at the start.
process.on("message", (message) => {
  handleSessionRequest(message as SessionRequest).then(
    (reply) => {
      process.send?.(reply);
      // It is serialized now.
      if (reply.is === "outputs") freeArrays(reply.tensors.map(({ bytes }) => bytes));
    },
    (error: unknown) => process.send?.({ is: "error", message: errorMessage(error) }),
  );
});
