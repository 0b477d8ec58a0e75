import type { z } from "zod";
import { parseInput } from "../contract/parse-input.ts";
import { fieldErrors, validationError } from "./field-errors.ts";

/** @throws ServiceError validation_failed */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const { data, problems } = parseInput(schema, body);
  if (problems === undefined) return data;
  throw validationError(fieldErrors("", problems));
}
