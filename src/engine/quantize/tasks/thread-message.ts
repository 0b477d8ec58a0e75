import type { TaskResult } from "./weight-task.ts";

/** What a thread reports: source bytes done, or the result of its task. */
export type ThreadMessage =
  | { readonly kind: "bytes"; readonly bytes: number }
  | { readonly kind: "result"; readonly result: TaskResult };
