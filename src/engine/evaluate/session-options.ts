import type { InferenceSession } from "onnxruntime-node";
import type { SessionRequest } from "./session-protocol.ts";

export type OpenRequest = Extract<SessionRequest, { do: "open" }>;

/** Options of ONNX Runtime for a request to open a model. */
export function sessionOptions(request: OpenRequest): InferenceSession.SessionOptions {
  const { executionProvider, threads, optimize, profilePrefix } = request;
  const options: InferenceSession.SessionOptions = {
    executionProviders: executionProvider === "cpu" ? ["cpu"] : [executionProvider, "cpu"],
    intraOpNumThreads: threads,
    graphOptimizationLevel: optimize ? "all" : "disabled",
    logSeverityLevel: 3,
    // Threads that spin after a run would slow the other model down, which runs next.
    extra: { session: { force_spinning_stop: "1" } },
  };
  if (profilePrefix === undefined) return options;
  return { ...options, enableProfiling: true, profileFilePrefix: profilePrefix };
}
