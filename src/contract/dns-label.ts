import { z } from "zod";

/** The name of a label of the DNS, and so of a namespace. */
export const dnsLabel = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, {
    error: "must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at an end",
  });
