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

/**
 * Parses the termination message of a worker in the status of its pod; undefined where the text is
 * another one, such as the end of the container's output.
 */
export function readTerminationMessage(text: string | undefined): TerminationMessage | undefined {
  return text === undefined ? undefined : schema.safeParse(text).data;
}
