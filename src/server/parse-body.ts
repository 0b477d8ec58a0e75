import type { z } from "zod";
import { fieldErrors, validationError } from "./field-errors.ts";

/** @throws ServiceError validation_failed */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw validationError(fieldErrors("", parsed.error));
}
