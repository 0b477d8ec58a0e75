import path from "node:path";
import { ServiceError } from "../../contract/errors.ts";
import type { DecoderFacts } from "./decoder-facts.ts";

/** What the operator GroupQueryAttention takes of a head, and rotates of it, at a time. */
const headStep = 16;

/** How a checkpoint spells the sizes of its attention. */
interface AttentionFields {
  readonly heads: string;
  readonly kvHeads: string;
  readonly headSize: string;
  readonly rotated: string;
}

/**
 * Checks that ONNX Runtime's attention takes the sizes.
 * @param file names the checkpoint in messages
 * @throws ServiceError model_unsupported with the field, its value and what it may be
 */
export function checkAttention(file: string, facts: DecoderFacts, fields: AttentionFields): void {
  const { heads, kvHeads, headSize, rotary } = facts;
  const require = (field: string, value: number, divisor: number, what: string) => {
    if (value >= divisor && value % divisor === 0) return;
    const message = `${path.basename(file)}: ${field} is ${value}, and may be a multiple of ${what}`;
    throw new ServiceError("model_unsupported", message);
  };
  require(fields.heads, heads, kvHeads, `${fields.kvHeads}, ${kvHeads}`);
  require(fields.headSize, headSize, headStep, `${headStep}`);
  require(fields.rotated, rotary.dimensions, headStep, `${headStep}`);
}
