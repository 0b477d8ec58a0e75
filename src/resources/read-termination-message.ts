import { jsonValue } from "../contract/text/json-value.ts";
import { terminationMessage, type TerminationMessage } from "../contract/jobs/worker.ts";

const schema = jsonValue.pipe(terminationMessage);

/**
 * Parses the termination message of a worker in the status of its pod; undefined where the text is
 * another one, such as the end of the container's output.
 */
export function readTerminationMessage(text: string | undefined): TerminationMessage | undefined {
  return text === undefined ? undefined : schema.safeParse(text).data;
}
