import { z } from "zod";

/** HTTP without TLS does not prove who answers at an address, but on this machine. */
export const secureUrl = z
  .string()
  .max(500)
  .regex(/^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1\])([:/]|$))/, {
    error: "must be https://…",
  });
