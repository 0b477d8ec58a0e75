import { z } from "zod";
import { terminationMessage, type TerminationMessage } from "../contract/worker.ts";

const schema = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue("is not JSON");
      return z.NEVER;
    }
  })
  .pipe(terminationMessage);

/** A worker's last words in the status of its pod; undefined where something else stands there, such as the end of its output. */
export function readTerminationMessage(text: string | undefined): TerminationMessage | undefined {
  return text === undefined ? undefined : schema.safeParse(text).data;
}
